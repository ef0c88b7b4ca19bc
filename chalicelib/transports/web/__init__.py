"""Pages for people: the base that the blog, the console and the reference share, and public ones.

``assets`` are the style sheets and icons, ``texts`` what pages say, ``render`` makes pages of
templates.
"""

"""Web pages: the base that blog, console and reference share, and the public pages.

``assets`` has style sheets and icons, ``texts`` has the texts of pages, and ``render`` renders
templates.
"""

"""The public web pages, and the base that blog, console and reference share.

``assets`` has style sheets and icons, ``texts`` has the translations, and ``render`` renders
templates.
"""

"""Pages for people: the base that the blog, the console and the reference share, and public ones.

``assets`` are the style sheets and icons, ``texts`` what pages say, ``render`` makes pages of
templates. ``ROUTES`` are the pages that need nobody to sign in.
"""

from collections.abc import Callable, Mapping

from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import assets, blog, render, sites

ROUTES: Mapping[str, Callable[[HttpRequest], HttpResponse]] = {
    "/blog": render.with_pages(blog.index),
    "/blog/{slug}": render.with_pages(blog.post),
    "/blog/rss.xml": blog.rss,
    "/sitemap.xml": blog.sitemap,
    "/robots.txt": blog.robots,
    assets.PATH: assets.serve,
    "/s/{site}": render.with_pages(sites.page),
    "/s/{site}/{page}": render.with_pages(sites.page),
}
"""What answers a GET, and a HEAD, on each path."""

"""The blog's public pages, which need no JavaScript."""

import re
from datetime import timedelta
from email.utils import format_datetime
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

from chalicelib.core.settings import settings
from chalicelib.domains.blog.operations import reading
from chalicelib.domains.blog.store import posts
from chalicelib.domains.blog.store.posts import PostRow
from chalicelib.lib.markup import markdown
from chalicelib.transports.http import CACHED, HttpRequest, HttpResponse
from chalicelib.transports.web import render, texts
from chalicelib.transports.web.texts import Language

POSTS_PER_PAGE = 10
FEED = "rss.xml"  # Name of the feed next to the posts.
FEED_POSTS = 30
OTHER_POSTS = 3  # Number of other posts that a post or an error page links to.
SITEMAP_URLS = 50_000  # Largest number of URLs in a sitemap (sitemaps.org).
TAGS_SHOWN = 16
# A post shows the date of its last change if it changed more than a day after publication.
UPDATED_AFTER = timedelta(days=1)


@render.failures_as_pages
def index(request: HttpRequest) -> HttpResponse:
    """Show a page of the published posts, latest first. The query may set ``page`` and ``tag``."""
    number, tag = _page_number(request), _query_value(request, "tag") or None
    if number is None:
        return _not_found(request)
    post_page = reading.published(number, size=POSTS_PER_PAGE, tag=tag)
    page_count = max(1, -(-post_page.total // POSTS_PER_PAGE))
    if number > page_count:
        return _not_found(request)

    def path(page: int) -> str:
        parameters: dict[str, Any] = {"tag": tag} if tag else {}
        parameters |= {"page": page} if page > 1 else {}
        return "/blog" + (f"?{urlencode(parameters, quote_via=quote)}" if parameters else "")

    tags = dict.fromkeys([*([tag] if tag else []), *(t for p in post_page.records for t in p.tags)])
    return render.page(
        request,
        "blog/index.html",
        posts=post_page.records,
        thumbnails=reading.thumbnails(post_page.records),
        total=post_page.total,
        number=number,
        count=page_count,
        tag=tag,
        tag_names=list(tags) if post_page.total else [],
        shown=TAGS_SHOWN,
        path=path,
        language_of=_language,
    )


@render.failures_as_pages
def post(request: HttpRequest) -> HttpResponse:
    """Show a published post, or the feed. A former slug redirects to the current one."""
    # A slug has no dot, and each path is a resource of API Gateway.
    if request.path["slug"] == FEED:
        return rss(request)
    post_match = reading.find(request.path["slug"])
    if post_match is None:
        return _not_found(request)
    if isinstance(post_match, reading.Moved):
        headers = {"Location": f"/blog/{quote(post_match.slug)}", "Cache-Control": CACHED}
        return HttpResponse(301, b"", headers)
    row, content = post_match
    from markupsafe import Markup

    return render.page(
        request,
        "blog/post.html",
        post=row,
        text=Markup(markdown.to_html(content)),  # noqa: S704  sanitised (``lib.markup.markdown``)  # nosec B704
        post_lang=texts.language_of(f"{row.title} {content[:2000]}"),
        updated=row.published_at + UPDATED_AFTER < row.updated_at,
        others=_other_posts(row.id),
        language_of=_language,
    )


def rss(request: HttpRequest) -> HttpResponse:
    """Return the feed of the latest posts (RSS 2.0)."""
    posts = reading.published(1, size=FEED_POSTS).records
    language = render.preferred_language(request)
    text = render.document(language, "blog/rss.xml", posts=posts, rfc_date=format_datetime)
    return render.xml(text, kind="application/rss+xml", caching=CACHED, Vary="Accept-Language")


def sitemap(_request: HttpRequest) -> HttpResponse:
    """Return the sitemap with the URLs of the blog and its posts (sitemaps.org)."""
    rows = islice(posts.every_published(), SITEMAP_URLS - 1)
    return render.xml(
        render.document("en", "blog/sitemap.xml", posts=rows),
        kind="application/xml",
        caching=render.CACHED_LONGER,
    )


def robots(_request: HttpRequest) -> HttpResponse:
    """Return ``robots.txt`` with the sitemap's URL. The longest matching path wins (RFC 9309)."""
    lines = ("User-agent: *", "Disallow: /api/", "Allow: /api/docs", "Disallow: /console")
    return render.robots(lines, f"{settings().public_url}/sitemap.xml")


def _not_found(request: HttpRequest) -> HttpResponse:
    return render.page(
        request,
        "blog/missing.html",
        404,
        cached=False,
        others=_other_posts(),
        language_of=_language,
    )


def _other_posts(excluded_id: str = "") -> list[PostRow]:
    latest = reading.published(1, size=OTHER_POSTS + 1).records
    return [row for row in latest if row.id != excluded_id][:OTHER_POSTS]


def _language(row: PostRow) -> Language:
    return texts.language_of(f"{row.title} {row.description or row.excerpt or ''}")


def _page_number(request: HttpRequest) -> int | None:
    text = _query_value(request, "page") or "1"
    return int(text) if re.fullmatch("[1-9][0-9]{0,8}", text, re.ASCII) else None


def _query_value(request: HttpRequest, name: str) -> str:
    values = request.query.get(name) or [""]
    return values[-1]

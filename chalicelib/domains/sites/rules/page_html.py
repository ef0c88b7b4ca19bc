"""Add missing elements to a page's HTML when it is served, without changing the author's HTML."""

import re
from html import escape
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic_core import to_json

from chalicelib.domains.sites.rules import third_parties
from chalicelib.lib.markup.markup_urls import is_web, resolve

_ATTRIBUTES = r"""(?:[^>"']|"[^"]*+"|'[^']*+')*+"""
# Content that may precede the first element in a head (HTML, section 13.1).
_PROLOGUE = re.compile(
    rf"\ufeff?(?:\s++|<!--.*?-->|<!doctype\b[^>]*+>|<html\b{_ATTRIBUTES}>|<head\b{_ATTRIBUTES}>)*+",
    re.IGNORECASE | re.DOTALL,
)
# In the search for the end of the head, for a page without a body tag.
_MAX_TOKENS = 2_000
_MAIN_END = re.compile(r"</main\s*>", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)

_IMAGES = frozenset({"og:image", "og:image:url", "og:image:secure_url"})
# Names of ``<meta>`` that search engines obey.
_ROBOTS = frozenset({"robots", "googlebot", "yandex", "bingbot"})

_NOINDEX = '<meta name="robots" content="noindex">'
_TEST_BAND = (
    '<div role="note" style="all:initial;position:fixed;z-index:2147483647;left:0;right:0;bottom:0;'
    "padding:.25rem;background:#fde68a;color:#422006;font:600 1rem/1.5 system-ui,sans-serif;"
    'text-align:center">Test</div>\n'
)
_REPORT = (
    '<p style="all:initial;display:block;padding:.5rem;font:.875rem/1.5 system-ui,sans-serif;'
    'text-align:center"><a href="{url}" rel="nofollow noopener" style="color:#57534e">{text}</a>'
    "</p>\n"
)
# The layout of a new page. Composed pages are recognised by it.
STARTER_STYLE = (
    "<style>\nbody { margin: 0 auto; max-width: 40rem; padding: 2rem 1rem;"
    " font: 1.0625rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere; }\n"
    "h1 { line-height: 1.2; }\n</style>"
)


class Metadata(NamedTuple):
    """What a page's head has: a title, a description, and orders to search engines."""

    title: bool
    description: bool
    canonical: str | None  # the URL that they list instead of the page, or ""
    noindex: bool  # forbids them to list the page
    icon: bool  # shown by browsers
    image: bool  # shown where the page is shared (ogp.me)


def complete(  # noqa: PLR0913  the elements
    html: str,
    *,
    title: str,
    description: str | None,
    canonical: str | None = None,
    icon: str | None = None,
    image: str | None = None,
) -> str:
    """Return a page with those of the given elements that its HTML lacks."""
    has = find_metadata(html)
    elements = "" if has.title else f"<title>{escape(title)}</title>"
    if description and not has.description:
        elements += f'<meta name="description" content="{escape(description)}">'
    if canonical and has.canonical is None:
        elements += f'<link rel="canonical" href="{escape(canonical)}">'
    if icon and not has.icon:
        elements += f'<link rel="icon" href="{escape(icon)}">'
    if image and not has.image:
        elements += f'<meta property="og:image" content="{escape(image)}">'
    return _at_head(html, elements)


def mark_as_test(html: str) -> str:
    """Return a page that says that it is a test, and that search engines do not list."""
    return before_body_end(_at_head(html, _NOINDEX), addition=_TEST_BAND)


def add_report(html: str, *, url: str, text: str) -> str:
    """Return a page with a link at its end, by which readers report it to the operator."""
    return before_body_end(html, addition=_REPORT.format(url=escape(url), text=escape(text)))


def find_metadata(html: str) -> Metadata:
    """Return what a page's head has."""
    from turbohtml import TokenType, tokenize

    title = description = noindex = icon = image = False
    canonical, open_svgs = None, 0
    for token in islice(tokenize(html), _MAX_TOKENS):
        if token.type is TokenType.START_TAG:
            if token.tag == "body":
                break
            open_svgs += token.tag == "svg" and not token.self_closing
            title |= token.tag == "title" and not open_svgs
            if token.tag == "meta":
                name = (token.attr("name") or "").strip().lower()
                description |= name == "description"
                rules = re.split(r"[\s,;]+", (token.attr("content") or "").lower())
                image |= (token.attr("property") or name).strip().lower() in _IMAGES
                noindex |= name in _ROBOTS and not {"noindex", "none"}.isdisjoint(rules)
            relations = (token.attr("rel") or "").lower().split() if token.tag == "link" else ()
            icon |= "icon" in relations
            if "canonical" in relations and canonical is None:
                canonical = (token.attr("href") or "").strip()
        elif token.tag == "head":
            break
        else:
            open_svgs -= token.tag == "svg" and open_svgs > 0
    return Metadata(title, description, canonical, noindex, icon, image)


def first_image(html: str, *, url: str) -> str | None:
    """Return the absolute URL of a page's first image that programs can show, or None."""
    from turbohtml import TokenType, tokenize

    # Drawings (SVG), images inside of the HTML, and pixels that count visits do not count.
    if "<img" not in html.lower():
        return None
    for token in islice(tokenize(html), _MAX_TOKENS):
        if token.type is not TokenType.START_TAG or token.tag != "img":
            continue
        attributes = dict(token.attrs or ())
        if third_parties.is_pixel(attributes):
            continue
        # Scripts that load images late store the URL in another attribute.
        for source in (attributes.get("src"), attributes.get("data-src")):
            image = resolve(source or "", base=url)
            if not source or not is_web(image) or third_parties.is_counter(image):
                continue
            if not urlsplit(image).path.lower().endswith(".svg"):
                return image
    return None


def add_beacon(html: str, *, hit_url: str, project_id: str, page_id: str) -> str:
    """Return a page with a script at its end that reports the visit and stores nothing."""
    url, site, page = (_script_literal(text) for text in (hit_url, project_id, page_id))
    script = (
        f"<script>navigator.sendBeacon({url},JSON.stringify({{projectId:{site},pageId:{page},"
        "referrer:document.referrer}))</script>\n"
    )
    return before_body_end(html, addition=script)


def add_snippet(html: str, *, snippet: str, begins: str, ends: str) -> str:
    """Return a page with a snippet, such as a form, before the end of the body.

    An earlier version of the snippet, from ``begins`` through ``ends``, is replaced where it is.
    """
    head, _, remainder = html.partition(begins)
    _, closed, tail = remainder.partition(ends)
    if closed:
        return head + snippet + tail
    return before_body_end(html, addition=f"{snippet}\n")


def add_to_content(html: str, *, addition: str) -> str:
    """Return a page with HTML at the end of its ``<main>``, or else of its body."""
    *_, last = (None, *_MAIN_END.finditer(html))
    if last is None:
        return before_body_end(html, addition=addition)
    return html[: last.start()] + addition + html[last.start() :]


def starter(title: str, *, language: str) -> str:
    """Return the HTML of a new page, with a heading, readable text and a layout for any screen."""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"{STARTER_STYLE}\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n</main>\n</body>\n</html>\n"
    )


def _at_head(html: str, elements: str) -> str:
    prologue = _PROLOGUE.match(html)
    end = prologue.end() if prologue else 0
    return html[:end] + elements + html[end:]


def before_body_end(html: str, *, addition: str) -> str:
    """Return a page with HTML at the end of its body."""
    *_, last = (None, *_BODY_END.finditer(html))
    position = last.start() if last else len(html)
    return html[:position] + addition + html[position:]


def _script_literal(text: str) -> str:
    return to_json(text).decode().replace("<", "\\u003c")

"""Web pages taken over from elsewhere: their URLs made absolute, their images found.

turbohtml (MIT, 1.8 MiB, a release a month) finds the tags: it reads HTML as the WHATWG standard
says, in C, in one linear pass and without recursion, says where each tag stood, and knows the
encodings of the web. So a page is written back letter by letter, but for the tags and style sheets
with a URL to change. Parsers that build a tree (selectolax, lxml, justhtml, html5lib under
Beautiful Soup) write back their own idea of the page: elements moved, references and white space
rewritten; and lxml is no HTML 5 parser, html5lib has had no release since 2020.
"""

import codecs
import re
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from chalicelib.domains.files.rules.file_types import sniff
from chalicelib.lib.markup.markup_urls import (
    UrlRewriter,
    is_relative,
    is_web,
    normalize_base,
    resolve,
    rewrite_css,
    rewrite_refresh,
    rewrite_srcset,
)
from chalicelib.lib.public_urls import MAX_LENGTH

if TYPE_CHECKING:
    from turbohtml import Token

_LINKS = {"href", "src", "action", "formaction", "data", "cite", "poster", "background", "longdesc"}
_LINKS |= {"xlink:href"}
_LAZY = {"data-src", "data-lazy-src", "data-original", "data-bg", "data-background"}
_LAZY |= {"data-content-cover-bg"}
"""Where scripts that load images late keep URLs."""
_SETS = frozenset({"srcset", "imagesrcset", "data-srcset"})
_PICTURES = {("img", "src"), ("video", "poster"), ("image", "href"), ("image", "xlink:href")}
_PICTURE_METAS = {"og:image", "og:image:url", "og:image:secure_url", "twitter:image", "image"}
_PICTURE_METAS |= {"twitter:image:src", "msapplication-tileimage"}
_NO_PICTURES = (".woff", ".woff2", ".ttf", ".otf", ".eot", ".css", ".ico")
"""What stands in ``url()`` and icon links but is no image that we could take over."""
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNSURE_TYPES = frozenset({"", "text/plain", "application/octet-stream", "application/xml"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARSET = re.compile(r"(charset\s*+=\s*+)(?!utf-8)[^\s;]+", re.IGNORECASE)

MAX_GROWTH = 4 << 20
"""Characters that absolute URLs may add: a long base and many short links multiply."""


class PageTooLargeError(Exception):
    """A page that would grow beyond all measure: to more than ``size`` characters."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class ImportedHtml(NamedTuple):
    """A page whose URLs are absolute, where a base to join them with was known."""

    html: str
    """Encodable in UTF-8, and saying so where it names an encoding."""
    title: str | None
    description: str | None
    relative: int
    """How many distinct relative URLs there are that no base was known for."""
    images: tuple[str, ...]
    """The distinct http and https URLs of images, without fragments, as they come."""

    def replaced(self, urls: Mapping[str, str]) -> str:
        """Return the page with URLs (such as those of ``images``) replaced by others.

        They are found wherever they stand: in links to an image and in style sheets, too.

        Raises:
            PageTooLargeError: if it grows by more than ``MAX_GROWTH``.
        """

        @cache
        def change(url: str) -> str:
            full, mark, fragment = resolve(url, "").partition("#")
            return urls[full] + mark + fragment if full in urls else url

        return _Pass(change, change).page(self.html)


def read(
    html: bytes | str, *, base_url: str | None = None, charset: str | None = None
) -> ImportedHtml:
    """Read a page.

    Bytes are decoded by their byte-order mark, else by ``charset`` (what the server declared), else
    by the page's ``<meta>``, else as what they look like: UTF-8 if they can be.

    Relative URLs are joined with the page's ``<base href>``, itself relative to ``base_url``,
    or with ``base_url``; the ``href`` of ``<base>`` is dropped after that. With neither they stay,
    but for those that lack the scheme only: they are of https. A ``<base>`` longer than any URL
    that is fetched (``MAX_LENGTH``) counts as none.

    Raises:
        PageTooLargeError: if it grows by more than ``MAX_GROWTH``.
    """
    text, encoding = _decoded(html, charset) if isinstance(html, bytes) else (html, "utf-8")
    # Browsers know no other line ends, and positions in the page count on it.
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _SURROGATE.sub("\ufffd", text)
    base = normalize_base(_base(text, base_url or ""))
    images: dict[str, None] = {}
    relative: set[str] = set()

    @cache
    def absolute(url: str) -> str:
        new = resolve(url, base, encoding)
        if not base and new == url and is_relative(url):
            relative.add(url)
        return new

    @cache
    def link(url: str) -> str:
        # What is absolute stays as it is written.
        return url if is_web(url) else absolute(url)

    @cache
    def image(url: str) -> str:
        new = absolute(url)
        full = new.partition("#")[0]
        if is_web(full) and not urlsplit(full).path.lower().endswith(_NO_PICTURES):
            images[full] = None
        return url if is_web(url) else new

    run = _Pass(link, image, drop_base=bool(base))
    html = run.page(text)
    title = " ".join(run.title.split()) or None
    return ImportedHtml(html, title, run.description or None, len(relative), tuple(images))


def looks_like_html(body: bytes, content_type: str | None) -> bool:
    """Whether bytes are a web page, going by the type that a server declared and by themselves."""
    declared = (content_type or "").partition(";")[0].strip().lower()
    found = sniff(body)
    if declared in _HTML_TYPES:
        return found in {"text/html", "text/plain", "application/xml"}
    return declared in _UNSURE_TYPES and found == "text/html"


def _decoded(body: bytes, charset: str | None) -> tuple[str, str]:
    """Return the text, and the encoding to use for queries of its URLs."""
    from turbohtml.detect import detect  # noqa: PLC0415  takes a twentieth of a second to load

    found = detect(body)
    name, codec = found.encoding or "utf-8", found.codec or "utf-8"
    if charset and not found.bom:
        # The import registered codecs for the names that the web uses.
        try:
            codec = codecs.lookup(f"whatwg-{charset.strip()}").name
            name = charset.strip()
        except LookupError:
            pass
    try:
        is_multiple = codecs.lookup(name).name.startswith("utf")
    except LookupError:
        is_multiple = True
    return body.decode(codec, "replace"), "utf-8" if is_multiple else name


def _base(html: str, base_url: str) -> str:
    """Return what relative URLs are joined with, "" if that is not known."""
    from turbohtml import TokenType, tokenize  # noqa: PLC0415  as above

    if "<base" in html.lower():
        for token in tokenize(html):
            if token.type is TokenType.START_TAG and token.tag == "base":
                href = token.attr("href")
                if href is not None:
                    base = resolve(href, base_url) if len(href) <= MAX_LENGTH else ""
                    return base if is_web(base) and len(base) <= MAX_LENGTH else base_url
    return base_url


class _Pass:
    """One walk over a page that changes the URLs in it."""

    def __init__(self, link: UrlRewriter, image: UrlRewriter, *, drop_base: bool = False) -> None:
        self.title = ""
        self.description = ""
        self._link, self._picture = self._counted(link), self._counted(image)
        self._css = partial(rewrite_css, link=self._link, image=self._picture)
        self._drop_base = drop_base
        self._size = 0
        self._growth = 0
        self._titled = False
        self._nested = False

    def _counted(self, change: UrlRewriter) -> UrlRewriter:
        def counted(url: str) -> str:
            new = change(url)
            self._growth += len(new) - len(url)
            if self._growth > MAX_GROWTH:
                raise PageTooLargeError(self._size + self._growth)
            return new

        return counted

    def page(self, html: str) -> str:
        """Return a page with its URLs changed; take down its title and description."""
        from turbohtml import TokenType, tokenize  # noqa: PLC0415  as above

        self._size = max(self._size, len(html))
        lines = [0, *(match.end() for match in re.finditer("\n", html))]
        parts: list[str] = []
        end, inside, drawings = 0, "", 0
        for token in tokenize(html, capture_source=True):
            if token.type is TokenType.TEXT:
                if inside == "title" and not (self._titled or self._nested or drawings):
                    self.title += token.data or ""
                continue
            start, source = lines[token.line - 1] + token.col, token.source or ""
            parts.append(self._text(html[end:start], inside))
            end = start + len(source)
            if token.type is TokenType.START_TAG:
                source = self._tag(token, source)
                inside = token.tag or ""
                drawings += inside == "svg" and not token.self_closing
            else:
                self._titled |= bool(self.title)
                drawings -= token.type is TokenType.END_TAG and token.tag == "svg" and drawings > 0
                inside = ""
            parts.append(source)
        parts.append(self._text(html[end:], inside))
        return "".join(parts)

    def _text(self, text: str, element: str) -> str:
        """Change what stands directly in an element, up to the next tag."""
        if element == "style":
            return self._css(text)
        return self._inner_page(text) if element == "noscript" else text

    def _inner_page(self, html: str) -> str:
        """Change a page in a page, but not one inside that: there is no end to them."""
        if self._nested:
            return html
        self._nested = True
        try:
            return self.page(html)
        finally:
            self._nested = False

    def _tag(self, token: "Token", source: str) -> str:
        """Return a start tag as it was written, or re-encoded if a URL in it changes."""
        tag, attributes = token.tag or "", dict(token.attrs or ())
        changed = {name: self._value(tag, name, attributes) for name in attributes}
        if tag == "base" and self._drop_base and changed.pop("href", None) is not None:
            if not changed:
                return ""
        elif changed == attributes:
            return source
        written = "".join(f' {name}="{_escaped(value)}"' for name, value in changed.items())
        return f"<{tag}{written}{' /' if token.self_closing else ''}>"

    def _value(  # noqa: PLR0911  one for each kind of attribute
        self, tag: str, name: str, attributes: dict[str, str]
    ) -> str:
        value = attributes[name]
        if name == "style":
            return self._css(value)
        if name in _SETS:
            return rewrite_srcset(value, self._picture)
        if name == "srcdoc":
            return self._inner_page(value)
        if tag == "meta":
            return self._meta(name, attributes)
        if name in _LAZY and ("/" in value or "." in value):
            return self._picture(value)
        if name in _LINKS and tag != "base":
            return self._picture(value) if _is_picture(tag, name, attributes) else self._link(value)
        return value

    def _meta(self, name: str, attributes: dict[str, str]) -> str:
        value = attributes[name]
        if name == "charset":
            return value if value.strip().lower() == "utf-8" else "utf-8"
        if name != "content":
            return value
        match attributes.get("http-equiv", "").lower():
            case "content-type":
                return _CHARSET.sub(r"\1utf-8", value)
            case "refresh":
                return rewrite_refresh(value, self._link)
        about = {attributes.get(key, "").lower() for key in ("property", "name", "itemprop")}
        if attributes.get("name", "").lower() == "description" and not self._nested:
            self.description = self.description or value.strip()
        return self._picture(value) if about & _PICTURE_METAS else value


def _is_picture(tag: str, name: str, attributes: dict[str, str]) -> bool:
    if tag == "input":
        return name == "src" and attributes.get("type", "").lower() == "image"
    if tag == "link" and name == "href":
        relations = attributes.get("rel", "").lower()
        return "icon" in relations or attributes.get("as", "").lower() == "image"
    return name == "background" or (tag, name) in _PICTURES


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;")

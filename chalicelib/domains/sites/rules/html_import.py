"""Import web pages, with absolute URLs and the images that they show.

turbohtml (MIT, 1.8 MiB, monthly releases) finds the tags. It parses HTML by the WHATWG standard, in
C, in one linear pass and without recursion. It reports the position of each tag, and supports the
encodings of the web. So all of a page is written back unchanged, except the tags and style sheets
with a URL to change. Parsers that build a tree (selectolax, lxml, justhtml, html5lib under
Beautiful Soup) write back a different page: they move elements, and rewrite references and white
space. Also, lxml is not an HTML 5 parser, and html5lib has had no release since 2020.
"""

import codecs
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from chalicelib.domains.files.rules.data_urls import is_inline, is_one_pixel
from chalicelib.domains.files.rules.file_types import sniff
from chalicelib.domains.sites.rules import third_parties
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
# Attributes in which lazy-loading scripts store a URL, or a background in CSS.
_LAZY = re.compile(
    "data-(?:(?:lazy-|img-|image-|bg-|cf|ez|opt-|hi-res-|flickity-lazyload-|original-)?src|lazy|"
    "original|(?:lazy-)?(?:bg|background)(?:-image|-multi)?(?:-hidpi)?|image|poster|thumb|"
    "zoom-image|large_image|(?:orig|medium|large)-file|(?:splide|flickity)-lazy(?:load)?|"
    "content-cover-bg)"
)
_SRCSETS = re.compile(
    "(?:image)?srcset|data-(?:(?:lazy-?|opt-|ez|cf|splide-lazy-|flickity-lazyload-)?srcset|"
    "bgset|original-set|background-image-set)"
)
_CSS_IMAGE = re.compile(r"\b(?:url|image-set)\(", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{|\{%|<%|\$\{")  # replaced by a script or a server
# A string in an attribute or a script that is a URL. Numbers, colours and JSON do not count.
_URL_LIKE = re.compile(
    r"(?:https?:)?//|\.{0,2}/(?!\s|$)"  # absolute, or with a path from here or from the root
    r"|[^\"'()<>\[\]]*\.(?:avif|bmp|gif|ico|jfif|jpe?g|png|svgz?|tiff?|webp)(?:[?#]|$)"
    r"|[\w%~-]++\.(?:aspx?|ashx|cgi|jsp|php)(?:[?#/]|$)"
    r"|(?=[^/]*/)(?=[\d\W_]*[^\W\d_])[\w.~:/?#@!$&'*+,;=%-]++$",
    re.IGNORECASE,
)
_IMAGE_ATTRIBUTES = {
    ("img", "src"),
    ("video", "poster"),
    ("image", "href"),
    ("image", "xlink:href"),
}
_IMAGE_METAS = {"og:image", "og:image:url", "og:image:secure_url", "twitter:image", "image"}
_IMAGE_METAS |= {"twitter:image:src", "msapplication-tileimage"}
# Extensions of files in ``url()`` and icon links that are not images or cannot be imported.
_NOT_IMAGES = (".woff", ".woff2", ".ttf", ".otf", ".eot", ".css", ".ico")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNSURE_TYPES = frozenset({"", "text/plain", "application/octet-stream", "application/xml"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARSET = re.compile(r"(charset\s*+=\s*+)(?!utf-8)[^\s;]+", re.IGNORECASE)

# Characters that absolute URLs may add. A long base and many short links multiply.
MAX_GROWTH = 4 << 20


class PageTooLargeError(Exception):
    """A page would grow beyond the limit, to more than ``size`` characters."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class ImportedHtml(NamedTuple):
    """A page whose URLs are absolute, unless no base URL was known."""

    html: str  # encodable in UTF-8; a declared encoding is changed to UTF-8
    title: str | None
    description: str | None
    relative: int  # number of distinct relative URLs for which no base was known
    # Distinct http and https URLs of images, without fragments, and ``data:`` URLs, in order of
    # appearance. Counters and pixels that visitors do not see are not among them.
    images: tuple[str, ...]
    # Distinct URLs to which forms send, in order of appearance; "" for the page itself.
    forms: tuple[str, ...]

    @property
    def text_size(self) -> int:
        # In bytes of UTF-8, without the images that are in the HTML itself.
        inline = {url: "" for url in self.images if is_inline(url)}
        return len((self.replaced(inline) if inline else self.html).encode())

    def replaced(self, urls: Mapping[str, str]) -> str:
        """Return the page with some URLs replaced everywhere, including links and style sheets.

        Raises PageTooLargeError if the page would grow by more than ``MAX_GROWTH``.
        """

        @cache
        def change(url: str) -> str:
            full, mark, fragment = resolve(url, base="").partition("#")
            return urls[full] + mark + fragment if full in urls else url

        return _UrlRewriting(change, image=change).page(self.html)


def read(html: bytes | str, *, base_url: str = "", charset: str | None = None) -> ImportedHtml:
    """Read a page.

    The encoding of bytes is taken from their byte-order mark, else from ``charset`` (declared by
    the server), else from the page's ``<meta>``. Without any of these it is detected, with UTF-8
    preferred.

    Relative URLs are joined with the page's ``<base href>``, which may be relative to ``base_url``,
    or else with ``base_url``. The ``href`` of ``<base>`` is then removed. Without a base, URLs do
    not change; only a URL without a scheme becomes https. A ``<base>`` whose URL is longer than
    ``MAX_LENGTH``, the longest URL that is fetched, is ignored.

    Raises PageTooLargeError if the page would grow by more than ``MAX_GROWTH``.
    """
    text, encoding = decode(html, charset) if isinstance(html, bytes) else (html, "utf-8")
    # Browsers normalise line ends in this way, and token positions depend on it.
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _SURROGATE.sub("\ufffd", text)
    base = normalize_base(_base(text, base_url=base_url))
    images: dict[str, None] = {}
    relative: set[str] = set()

    @cache
    def absolute(url: str) -> str:
        if _PLACEHOLDER.search(url):
            return url
        new = resolve(url, base=base, encoding=encoding)
        if not base and new == url and is_relative(url):
            relative.add(url)
        return new

    @cache
    def link(url: str) -> str:
        # An absolute URL does not change.
        return url if is_web(url) else absolute(url)

    @cache
    def image(url: str) -> str:
        new = absolute(url)
        full = new.partition("#")[0]
        if is_inline(new) and not is_one_pixel(new):
            images[new] = None
            return url
        if is_web(full) and third_parties.is_counter(full):
            return url if is_web(url) else new
        is_file = not urlsplit(full).path.lower().endswith(_NOT_IMAGES) if is_web(full) else False
        if is_file and not _PLACEHOLDER.search(url):
            images[full] = None
        return url if is_web(url) else new

    rewriting = _UrlRewriting(link, image=image, drop_base=bool(base))
    html = rewriting.page(text)
    title = " ".join(rewriting.title.split()) or None
    description = rewriting.description or None
    forms = tuple(rewriting.forms)
    return ImportedHtml(html, title, description, len(relative), tuple(images), forms)


def looks_like_html(body: bytes, content_type: str | None) -> bool:
    """Return whether bytes are a web page, by the server's declared type and by their content."""
    declared = (content_type or "").partition(";")[0].strip().lower()
    mime_type = sniff(body)
    if declared in _HTML_TYPES:
        return mime_type in {"text/html", "text/plain", "application/xml"}
    return declared in _UNSURE_TYPES and mime_type == "text/html"


def decode(body: bytes, charset: str | None) -> tuple[str, str]:
    """Return the text, and the encoding for queries of its URLs."""
    from turbohtml.detect import detect

    detection = detect(body)
    name = detection.encoding or "utf-8"
    if charset and not detection.bom:
        # The import registered codecs for the names that the web uses.
        with suppress(LookupError):
            codecs.lookup(f"whatwg-{charset.strip()}")
            name = charset.strip()
    try:
        is_multiple = codecs.lookup(name).name.startswith("utf")
    except LookupError:
        is_multiple = True
    # These codecs replace invalid bytes.
    return body.decode(f"whatwg-{name}"), "utf-8" if is_multiple else name


def _base(html: str, *, base_url: str) -> str:
    from turbohtml import TokenType, tokenize

    if "<base" in html.lower():
        for token in tokenize(html):
            if token.type is TokenType.START_TAG and token.tag == "base":
                href = token.attr("href")
                if href is not None:
                    base = resolve(href, base=base_url)
                    return base if is_web(base) and len(base) <= MAX_LENGTH else base_url
    return base_url


class _UrlRewriting:
    def __init__(self, link: UrlRewriter, *, image: UrlRewriter, drop_base: bool = False) -> None:
        self.title = ""
        self.description = ""
        self.forms: dict[str, None] = {}
        self._link, self._image = self._limit_growth(link), self._limit_growth(image)
        self._css = partial(rewrite_css, link=self._link, image=self._image)
        self._drop_base = drop_base
        self._size = 0
        self._growth = 0
        self._title_complete = False
        self._nested = False

    def _limit_growth(self, change: UrlRewriter) -> UrlRewriter:
        def change_within_limit(url: str) -> str:
            new = change(url)
            self._growth += len(new) - len(url)
            if self._growth > MAX_GROWTH:
                raise PageTooLargeError(self._size + self._growth)
            return new

        return change_within_limit

    def page(self, html: str) -> str:
        # The title and the description of the page are recorded, too.
        from turbohtml import TokenType, tokenize

        self._size = max(self._size, len(html))
        lines = [0, *(match.end() for match in re.finditer("\n", html))]
        parts: list[str] = []
        end, inside, open_svgs = 0, "", 0
        for token in tokenize(html, capture_source=True):
            if token.type is TokenType.TEXT:
                if inside == "title" and not (self._title_complete or self._nested or open_svgs):
                    self.title += token.data or ""
                continue
            start, source = lines[token.line - 1] + token.col, token.source or ""
            parts.append(self._text(html[end:start], element=inside))
            end = start + len(source)
            if token.type is TokenType.START_TAG:
                source = self._tag(token, source)
                inside = token.tag or ""
                open_svgs += inside == "svg" and not token.self_closing
            else:
                self._title_complete |= bool(self.title)
                open_svgs -= token.tag == "svg" and open_svgs > 0
                inside = ""
            parts.append(source)
        parts.append(self._text(html[end:], element=inside))
        return "".join(parts)

    def _text(self, text: str, *, element: str) -> str:
        if element == "style":
            return self._css(text)
        return self._inner_page(text) if element == "noscript" else text

    def _inner_page(self, html: str) -> str:
        # Deeper levels do not change, to bound the work.
        if self._nested:
            return html
        self._nested = True
        try:
            return self.page(html)
        finally:
            self._nested = False

    def _tag(self, token: "Token", source: str) -> str:
        tag, attributes = token.tag or "", dict(token.attrs or ())
        # An image that only counts visitors counts at its own URL.
        image = self._link if tag == "img" and third_parties.is_pixel(attributes) else self._image
        new_attributes = {
            name: self._value(tag, name=name, attributes=attributes, image=image)
            for name in attributes
        }
        self._note_form(tag, new_attributes)
        if tag == "base" and self._drop_base and new_attributes.pop("href", None) is not None:
            if not new_attributes:
                return ""
        elif new_attributes == attributes:
            return source
        attribute_text = "".join(
            f' {name}="{_escaped(value)}"' for name, value in new_attributes.items()
        )
        return f"<{tag}{attribute_text}{' /' if token.self_closing else ''}>"

    def _value(  # noqa: PLR0911  one for each kind of attribute
        self, tag: str, *, name: str, attributes: dict[str, str], image: UrlRewriter
    ) -> str:
        value = attributes[name]
        if name == "style":
            return self._css(value)
        if _SRCSETS.fullmatch(name):
            is_data = name.startswith("data-") and _is_data(value)
            return value if is_data else rewrite_srcset(value, image)
        if name == "srcdoc":
            return self._inner_page(value)
        if tag == "meta":
            return self._meta(name, attributes)
        if _LAZY.fullmatch(name):
            return self._lazy(value, image)
        if name in _LINKS and tag != "base":
            return (
                image(value)
                if _is_image(tag, name=name, attributes=attributes)
                else self._link(value)
            )
        return value

    def _note_form(self, tag: str, attributes: dict[str, str]) -> None:
        # A form without an address sends to the page itself.
        action = attributes.get("action" if tag == "form" else "formaction")
        sends = tag == "form" and attributes.get("method", "").strip().lower() == "post"
        if action is not None or sends:
            target = (action or "").partition("#")[0].strip()
            if target or sends:
                self.forms[target] = None

    def _lazy(self, value: str, image: UrlRewriter) -> str:
        # Other text in the attribute does not change.
        if _CSS_IMAGE.search(value):
            return self._css(value)
        is_url = not _is_data(value) and _URL_LIKE.match(value.strip())
        return image(value) if is_url else value

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
        return self._image(value) if about & _IMAGE_METAS else value


def _is_data(value: str) -> bool:
    return "{" in value or value.lstrip().startswith(("[", '"'))


def _is_image(tag: str, *, name: str, attributes: dict[str, str]) -> bool:
    if tag == "input":
        return name == "src" and attributes.get("type", "").lower() == "image"
    if tag == "link":
        relations = attributes.get("rel", "").lower()
        return "icon" in relations or attributes.get("as", "").lower() == "image"
    return name == "background" or (tag, name) in _IMAGE_ATTRIBUTES


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;")

"""Addresses inside web pages: how browsers read them, and where they stand in CSS and srcset.

Each ``in_…`` function hands every URL to ``change`` and puts back what that returns; what it
returns unchanged stays as it was written, to the letter.
"""

import re
from collections.abc import Callable
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

UrlRewriter = Callable[[str], str]

_SPACE = " \t\n\f\r"
_EDGES = "".join(map(chr, range(0x21)))
"""What browsers cut off both ends of a URL (WHATWG URL, 4.4)."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_NO_SCHEME = re.compile(r"[/\\]{2}[^/\\]")
_KEPT = "%/:@!$&'()*+,;=~|[]-._"

_STRING = r"""(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')"""
_OPEN_STRING = r"""(?:"(?:[^"\\\n]|\\.)*+|'(?:[^'\\\n]|\\.)*+)"""
_CSS = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    rf"|(?P<rule>@import\s++)?+(?<![\w-])url\(\s*+(?P<url>{_STRING}|(?:[^\s\"'()\\]|\\.)*+)\s*+\)"
    rf"|(?P<at>@import\s++)(?P<sheet>{_STRING})"
    rf"|{_OPEN_STRING}[\"']?",
    re.IGNORECASE | re.DOTALL,
)
"""Comments and strings are matched so that a URL in them is not, to their end or that of the
text, so that an open one is walked over once and not once for each quote in it."""
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)

_DELAY = re.compile(
    rf"[{_SPACE}]*+[0-9.]++(?=[;,{_SPACE}])[{_SPACE}]*+[;,]?+[{_SPACE}]*+(?:url[{_SPACE}]*+=)?+[{_SPACE}]*+",
    re.IGNORECASE,
)
"""What stands before the URL of a refresh."""
_CANDIDATE = re.compile(rf"([^{_SPACE},][^{_SPACE}]*+)((?:(?<!,)(?:[^(,]++|\([^)]*+\)?)*+)?)")
"""A URL and its descriptor (WHATWG HTML, 4.8.4.2.2): commas may be inside the URL."""


def resolve(url: str, base: str, encoding: str = "utf-8") -> str:
    """Return a URL in full, as browsers do: joined with ``base`` and percent-encoded.

    One that lacks the scheme only (``//host/…``) is of https where there is no ``base``.
    Those that are not of the web (``data:``, ``mailto:`` …), that lead elsewhere on the page
    (``#place``), that are empty, malformed or relative without a ``base`` come back as they are.
    A query is encoded in the page's ``encoding`` (WHATWG URL, 4.4).
    """
    plain = _plain(url)
    scheme = _SCHEME.match(plain)
    if not base and _NO_SCHEME.match(plain):
        base = "https:"
    if not plain or plain[0] == "#" or not (is_web(plain) if scheme else base):
        return url
    path, mark, rest = plain.partition("?")
    try:
        parts = urlsplit(urljoin(base, path.replace("\\", "/") + mark + rest))
        query = quote(parts.query, _KEPT + "?", encoding, "xmlcharrefreplace")
    except ValueError:
        return url
    if not parts.netloc or parts.scheme not in {"http", "https"}:
        return url
    user, at, host = parts.netloc.rpartition("@")
    netloc = user + at + host.lower()
    fragment = quote(parts.fragment, _KEPT + "?#")
    return urlunsplit((parts.scheme, netloc, quote(parts.path, _KEPT) or "/", query, fragment))


def without_dots(base: str) -> str:
    """Return a URL to join with, without the empty and dot segments of its path.

    ``urljoin`` would drop them again for each link, from thousands of them at times.
    """
    return base and urljoin(base, "./" + urlsplit(base).path.rpartition("/")[2])


def is_relative(url: str) -> bool:
    """Whether a URL leads somewhere only together with that of its page."""
    plain = _plain(url)
    return bool(plain) and plain[0] != "#" and not _SCHEME.match(plain)


def _plain(url: str) -> str:
    """Return a URL without what browsers drop from it."""
    return url.strip(_EDGES).translate({9: None, 10: None, 13: None})


def is_web(url: str) -> bool:
    """Whether a URL is a full and well-formed one of the web."""
    if not url[:6].lower().startswith(("http:", "https:")):
        return False
    try:
        return bool(urlsplit(url).netloc)
    except ValueError:
        return False


def in_srcset(text: str, change: UrlRewriter) -> str:
    """Change the URLs of an image's candidates."""

    def changed(match: re.Match[str]) -> str:
        url, descriptor = match.groups()
        bare = url.rstrip(",")
        return change(bare) + url[len(bare) :] + descriptor

    return _CANDIDATE.sub(changed, text)


def in_refresh(text: str, change: UrlRewriter) -> str:
    """Change the URL in what ``<meta http-equiv=refresh>`` holds (WHATWG HTML, 4.2.5.3)."""
    delay = _DELAY.match(text)
    if delay is None:
        return text
    rest = text[delay.end() :]
    quote = rest[:1] if rest[:1] in {'"', "'"} else ""
    url = rest[1:].partition(quote)[0] if quote else rest
    new = change(url)
    # A URL in full needs no quotes, and may hold one.
    return text if new == url else delay[0] + new


def in_css(text: str, link: UrlRewriter, image: UrlRewriter) -> str:
    """Change the URLs in CSS.

    Those of style sheets (``@import``) go to ``link``, all in ``url()`` to ``image``.
    """

    def changed(match: re.Match[str]) -> str:
        rule, written = match["rule"] or match["at"], match["url"] or match["sheet"]
        if not written:
            return match[0]
        bare = written[1:-1] if written[0] in "\"'" else written
        url = _CSS_ESCAPE.sub(_css_character, bare)
        new = link(url) if rule else image(url)
        return match[0] if new == url else f'{rule or ""}url("{_css_escaped(new)}")'

    return _CSS.sub(changed, text)


def _css_character(match: re.Match[str]) -> str:
    if match[1] is None:
        return "" if match[2] == "\n" else match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 or 0xE000 <= code <= 0x10FFFF else "\ufffd"  # noqa: PLR2004  no surrogates


def _css_escaped(url: str) -> str:
    return re.sub(r'[\\"<\n\r\f]', lambda match: f"\\{ord(match[0]):x} ", url)

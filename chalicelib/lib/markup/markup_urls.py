"""Resolve URLs as browsers do, and rewrite URLs in CSS and srcset."""

import re
from collections.abc import Callable
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

# Each ``rewrite_…`` function passes every URL to one of these and inserts the result. A URL that is
# returned unchanged keeps its original spelling.
UrlRewriter = Callable[[str], str]

_SPACE = " \t\n\f\r"
# Characters that browsers strip from both ends of a URL (WHATWG URL, 4.4).
_STRIPPED = "".join(map(chr, range(0x21)))
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_NO_SCHEME = re.compile(r"[/\\]{2}[^/\\]")
_UNQUOTED = "%/:@!$&'()*+,;=~|[]-._"

_STRING = r"""(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')"""
_OPEN_STRING = r"""(?:"(?:[^"\\\n]|\\.)*+|'(?:[^'\\\n]|\\.)*+)"""
# Matches comments, strings, brackets, and the URLs outside comments and strings. Comments and
# strings are matched so that a URL inside one is not. An unclosed comment or string matches to the
# end of the style sheet. The style sheet is then scanned once, not once per quote.
_CSS = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    rf"|(?P<rule>@import\s++)?+(?<![\w-])url\(\s*+(?P<url>{_STRING}|(?:[^\s\"'()\\]|\\.)*+)\s*+\)"
    rf"|(?P<at>@import\s++)(?P<sheet>{_STRING})"
    rf"|(?<![\w-])(?P<set>(?:-webkit-)?image-set\()|[(){{}}]"
    rf"|(?P<string>{_STRING})|{_OPEN_STRING}",
    re.IGNORECASE | re.DOTALL,
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)

# The part of a ``<meta http-equiv=refresh>`` value before the URL.
_DELAY = re.compile(
    rf"[{_SPACE}]*+[0-9.]++(?=[;,{_SPACE}])[{_SPACE}]*+[;,]?+[{_SPACE}]*+(?:url[{_SPACE}]*+=)?+[{_SPACE}]*+",
    re.IGNORECASE,
)
# A URL and its descriptor (WHATWG HTML, 4.8.4.2.2). The URL may contain commas.
_CANDIDATE = re.compile(rf"([^{_SPACE},][^{_SPACE}]*+)((?:(?<!,)(?:[^(,]++|\([^)]*+\)?)*+)?)")


def resolve(url: str, *, base: str, encoding: str = "utf-8") -> str:
    """Return an absolute URL, resolved and percent-encoded as in a browser (WHATWG URL, 4.4).

    The query is encoded in the page's ``encoding``. A URL without a scheme (``//host/…``) becomes
    https without a ``base``. Returned unchanged: other schemes (``data:``, ``mailto:`` …),
    fragments (``#place``), empty and malformed URLs, and relative ones without a ``base``.
    """
    plain = _plain(url)
    scheme = _SCHEME.match(plain)
    if not base and _NO_SCHEME.match(plain):
        base = "https:"
    if not plain or plain[0] == "#" or not (is_web(plain) if scheme else base):
        return url
    path, mark, query_and_fragment = plain.partition("?")
    try:
        parts = urlsplit(urljoin(base, path.replace("\\", "/") + mark + query_and_fragment))
        query = quote(parts.query, _UNQUOTED + "?", encoding, "xmlcharrefreplace")
    except ValueError:
        return url
    if not parts.netloc or parts.scheme not in {"http", "https"}:
        return url
    user, at, host = parts.netloc.rpartition("@")
    netloc = user + at + host.lower()
    fragment = quote(parts.fragment, _UNQUOTED + "?#")
    return urlunsplit((parts.scheme, netloc, quote(parts.path, _UNQUOTED) or "/", query, fragment))


def normalize_base(base: str) -> str:
    """Return a base URL without the empty and dot segments of its path."""
    # ``urljoin`` would otherwise remove them once for each link. A page can have thousands of
    # links, and a path thousands of such segments.
    return base and urljoin(base, "./" + urlsplit(base).path.rpartition("/")[2])


def is_relative(url: str) -> bool:
    """Whether a URL has to be joined with the URL of its page."""
    plain = _plain(url)
    return bool(plain) and plain[0] != "#" and not _SCHEME.match(plain)


def _plain(url: str) -> str:
    # Browsers remove these characters.
    return url.strip(_STRIPPED).translate({9: None, 10: None, 13: None})


def is_web(url: str) -> bool:
    """Whether a URL is absolute, well-formed, and of http or https."""
    if not url[:6].lower().startswith(("http:", "https:")):
        return False
    try:
        return bool(urlsplit(url).netloc)
    except ValueError:
        return False


# One of the sets of a ``data-bgset`` (lazysizes). A bar next to white space divides the sets.
_SET = re.compile(r"(?:(?!\|\s|(?<=\s)\|).)++", re.DOTALL)


def rewrite_srcset(text: str, change: UrlRewriter) -> str:
    """Rewrite the URLs in the ``srcset`` of an image, or in several sets of a background."""

    def rewrite(match: re.Match[str]) -> str:
        url, descriptor = match.groups()
        bare = url.rstrip(",")
        return change(bare) + url[len(bare) :] + descriptor

    return _SET.sub(lambda match: _CANDIDATE.sub(rewrite, match[0]), text)


def rewrite_refresh(text: str, change: UrlRewriter) -> str:
    """Rewrite the URL in the value of ``<meta http-equiv=refresh>`` (WHATWG HTML, 4.2.5.3)."""
    delay = _DELAY.match(text)
    if delay is None:
        return text
    target = text[delay.end() :]
    quote = target[:1] if target[:1] in {'"', "'"} else ""
    url = target[1:].partition(quote)[0] if quote else target
    new = change(url)
    # An absolute URL needs no quotes, and may contain one.
    return text if new == url else delay[0] + new


def rewrite_css(text: str, link: UrlRewriter, *, image: UrlRewriter) -> str:
    """Rewrite the URLs in CSS: those of ``@import`` by ``link``, all others by ``image``."""
    # The strings of ``image-set()`` are URLs, too (CSS Images 4, 2.4).
    in_set: list[bool] = []  # of each open bracket: whether it belongs to an image-set

    def rewrite(match: re.Match[str]) -> str:
        rule, url_token = match["rule"] or match["at"], match["url"] or match["sheet"]
        if match["string"] and in_set and in_set[-1]:
            url_token = match["string"]
        if not url_token:
            _count_brackets(match, in_set)
            return match[0]
        bare = url_token[1:-1] if url_token[0] in "\"'" else url_token
        url = _CSS_ESCAPE.sub(_css_character, bare)
        new = link(url) if rule else image(url)
        return match[0] if new == url else f'{rule or ""}url("{_css_escaped(new)}")'

    return _CSS.sub(rewrite, text)


def _count_brackets(match: re.Match[str], in_set: list[bool]) -> None:
    match match[0][-1:]:
        case "(":
            in_set.append(match["set"] is not None)
        case ")" if in_set:
            in_set.pop()
        case "{" | "}":
            in_set.clear()


def _css_character(match: re.Match[str]) -> str:
    if match[1] is None:
        return "" if match[2] == "\n" else match[2]
    code = int(match[1], 16)
    # A code without a character is replaced (CSS Syntax 3, 4.3.7).
    return chr(code) if 0 < code < 0xD800 or 0xE000 <= code <= 0x10FFFF else "\ufffd"  # noqa: PLR2004  no surrogates


def _css_escaped(url: str) -> str:
    return re.sub(r'[\\"<\n\r\f]', lambda match: f"\\{ord(match[0]):x} ", url)

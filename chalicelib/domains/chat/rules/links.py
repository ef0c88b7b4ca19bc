"""Remove addresses of unknown hosts from the links in a bot's answer.

A model can be made to print any link, by what it reads. So an answer links only to hosts that the
owner has named. The filter reads an answer in pieces. It holds back a possible link until its host
is known, and everything else passes without delay. The result does not depend on the pieces.
A link is what browsers and Markdown renderers make one of: ``https:``, two slashes or ``www.`` with
a host, the address of a Markdown link, of a reference or in angle brackets. E-mail addresses, phone
numbers and relative addresses do not link to another host.
"""

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

from chalicelib.lib.localized import Language

MAX_LINK = 2_000  # characters that are held back; a longer link is removed
MAX_EAGER = 200  # characters of held text that is read again with each piece
MAX_LABEL = 500  # characters of a Markdown link's text that are held back
REMOVED: dict[Language, str] = {"en": "[link removed]", "ru": "[ссылка удалена]"}

# White space of JavaScript, which ends links in browsers.
_SPACE = "\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# The beginning of Markdown with an address, or a part of an address at the end of the text.
_MARKDOWN = re.compile(
    r"""
      (?P<label>!?\[)
    | (?P<address>\]\()
    | (?P<reference>\]:)
    | (?P<angle><[a-z][a-z0-9+.-]{1,31}:)
    | (?P<half>(?:[!\]]|<(?:[a-z][a-z0-9+.-]{0,31})?)\Z)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BRACKET = re.compile(r"[\[\]]")
# The beginning of an address, or a part of an address at the end of the text.
_URL = re.compile(
    r"""
      (?P<web>(?<![^\W_])https?:)
    | (?P<www>(?<![^\W_]|[@.-])www\.)
    | (?P<slashes>:?[\\/]{2})
    | (?P<half>
        (?:(?<![^\W_])h(?:t(?:t(?:ps?)?)?)?|(?<![^\W_]|[@.-])w{1,3}|:[\\/]?|[\\/])\Z
      )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_RUN = re.compile(f"[^{_SPACE}<>]*")
# The part of a run that is removed.
_FOREIGN = re.compile(rf"(?:[^\\/\[]*[\\/]*\[[0-9a-f:.]*\])?[^{_SPACE}<>\"'`\]*|]*", re.IGNORECASE)
# An address that every client reads as one, even if it contains another one.
_WHOLE = re.compile(
    r"(?<!_)https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,4})?[/?#][\w.~%/?#&=+:@$-]*"
)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]*[^\W_])(?::[0-9]{1,5}(?![0-9]))?", re.IGNORECASE)
# Punctuation after a host, or a character that ends a host in browsers.
_AFTER_HOST = re.compile("[.,;:!?\u2026)\\]}\"'`*_~\u00bb\u201d\u2019\u201c-]*(?:[\\[\\]|^].*)?")
_DOTTED = re.compile(r"\[|[\w%][.%\u3002\uff0e\uff61][\w%]")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
# The end of a Markdown link after its address: a title and the closing parenthesis.
_TAIL = re.compile(
    rf"""[{_SPACE}]*+(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\))?[{_SPACE}]*\)""",
    re.DOTALL,
)
_HALF_TAIL = re.compile(rf"[{_SPACE}]*(?:[\"'(].*)?", re.DOTALL)
_IN_ANGLES = re.compile(r"<[^<>\n]*>?")
_INDENT = re.compile(f"[{_SPACE}]*")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_WEB = frozenset({"http", "https"})
_CONTACTS = frozenset({"mailto", "tel"})
_NAMED_HOST = re.compile(
    r"//(?:[^\s/?#@]*@)?(\[[0-9a-f:.]+\]|[\w.-]+)|(?<![@\w.-])((?:[\w-]+\.)+[^\W\d_][\w-]+)",
    re.IGNORECASE,
)


def hosts_in(texts: Iterable[str]) -> set[str]:
    """Return the hosts that texts name, with or without a scheme, but not in e-mail addresses."""
    hosts = (match[1] or match[2] for text in texts for match in _NAMED_HOST.finditer(text))
    return {host for host in map(normalize_host, hosts) if host}


def normalize_host(host: str) -> str:
    """Return a host as hosts are compared: punycode, without ``www.``, or "" if impossible."""
    host = host.lower().strip("._-").removeprefix("www.")
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        return ""


class _Step(NamedTuple):
    output: str
    end: int
    skips: bool = False  # The rest of an overlong link follows.


class _Address(NamedTuple):
    is_kept: bool
    end: int
    skips: bool = False


class LinkFilter:
    """Removes the addresses of links to hosts that are not allowed from a text in pieces.

    ``is_allowed`` decides on a host in the form of ``normalize_host``, once a link needs it.
    ``replacement`` stands for an address that has no text of its own.
    """

    def __init__(self, is_allowed: Callable[[str], bool], replacement: str) -> None:
        # Markdown is filtered first, because the removal of its address can join its neighbours to
        # a new address.
        self._markdown = _Markdown(is_allowed, replacement)
        self._urls = _Urls(is_allowed, replacement)

    def add(self, piece: str) -> str:
        return self._urls.add(self._markdown.add(piece))

    def end(self) -> str:
        return self._urls.add(self._markdown.end()) + self._urls.end()


class _Scanner(ABC):
    pattern: re.Pattern[str]

    def __init__(self, is_allowed: Callable[[str], bool], replacement: str) -> None:
        self._is_host_allowed = is_allowed
        self._removed = replacement
        self._before = ""  # The character before the text that is held.
        self._held = ""
        self._is_last = False
        self._skips = False
        self._awaited = 0

    def add(self, piece: str) -> str:
        self._held += piece
        if len(self._held) < self._awaited:
            return ""
        output = self._filter()
        # Long text is not read again for each piece, or many short pieces would take long.
        held_length = len(self._held)
        later = held_length + held_length // 16 if held_length > MAX_EAGER else 0
        self._awaited = min(later, MAX_LABEL + 1) if held_length <= MAX_LABEL else later
        return output

    def end(self) -> str:
        self._is_last = True
        return self._filter()

    @abstractmethod
    def _decide(self, text: str, token: re.Match[str]) -> _Step | None:
        """Return what becomes of a match, or None if that depends on what follows."""

    def _filter(self) -> str:
        text = self._before + self._held
        at = len(self._before)
        parts: list[str] = []
        while at < len(text):
            if self._skips:
                at = _end(_RUN, text, at)
                self._skips = at == len(text)
                continue
            token = self.pattern.search(text, at)
            start = token.start() if token else len(text)
            parts.append(text[at:start])
            at = start
            if token is None:
                break
            if token.lastgroup == "half":
                step = _Step(text[at], at + 1) if self._is_last else None
            else:
                step = self._decide(text, token)
            if step is None:
                break
            parts.append(step.output)
            at, self._skips = step.end, step.skips
        self._before, self._held = text[:at][-1:], text[at:]
        return "".join(parts)

    def _is_allowed(self, location: str) -> bool:
        authority, separator, _ = re.split(r"([/?#\\])", location + "/", maxsplit=1)
        host = _HOST.match(authority)
        if host is None or "@" in authority or separator == "\\":
            return False
        if not _AFTER_HOST.fullmatch(authority, host.end()):
            return False
        return self._is_host_allowed(normalize_host(host[1]))

    def _is_whole(self, text: str, start: int, *, length: int) -> bool:
        return self._is_last or len(text) - start >= length


class _Markdown(_Scanner):
    pattern = _MARKDOWN

    def __init__(self, is_allowed: Callable[[str], bool], replacement: str) -> None:
        super().__init__(is_allowed, replacement)
        self._length = 0
        self._open: list[int] = []
        self._closed: dict[int, int] = {}

    def add(self, piece: str) -> str:
        # The brackets of a piece are paired, so that each is read once.
        for bracket in _BRACKET.finditer(piece):
            at = self._length + bracket.start()
            if bracket[0] == "[":
                self._open.append(at)
            elif self._open:
                self._closed[self._open.pop()] = at
        self._length += len(piece)
        return super().add(piece)

    def _decide(self, text: str, token: re.Match[str]) -> _Step | None:
        plain = _Step(token[0], token.end())
        match token.lastgroup:
            case "label":
                return self._label(text, token, plain)
            case "address":
                address = self._address(text, token.end())
                if address is None or address.is_kept:
                    return address and plain
                return _Step(_nothing(text, token), address.end, address.skips)
            case "reference":
                return self._reference(text, plain)
        return self._angle(text, token)

    def _label(self, text: str, token: re.Match[str], plain: _Step) -> _Step | None:
        text_start = self._length - len(
            text
        )  # Characters of the whole text before this part of it.
        at = self._closed.get(text_start + plain.end - 1, text_start) - text_start
        if not plain.end <= at < plain.end + MAX_LABEL:
            return plain if self._is_whole(text, plain.end, length=MAX_LABEL) else None
        if at + 1 == len(text) and not self._is_last:
            return None
        if text[at + 1 : at + 2] != "(":
            return plain
        address = self._address(text, at + 2)
        return address and (plain if address.is_kept else _Step(_nothing(text, token), plain.end))

    def _address(self, text: str, start: int) -> _Address | None:
        # Text that is not a link is kept.
        window = text[start : start + MAX_LINK]
        begin = _end(_INDENT, window, 0)
        end = _address_end(window, begin)
        if end == MAX_LINK:
            return _Address(is_kept=False, end=start + end, skips=True)
        tail = _TAIL.match(window, end)
        if tail is not None:
            return _Address(self._keeps(window[begin:end]), start + tail.end())
        if _HALF_TAIL.fullmatch(window, end) and not self._is_whole(text, start, length=MAX_LINK):
            return None
        return _Address(is_kept=True, end=start)

    def _reference(self, text: str, plain: _Step) -> _Step | None:
        window = text[plain.end : plain.end + MAX_LINK]
        begin = _end(_INDENT, window, 0)
        end = _address_end(window, begin)
        if end == len(window) < MAX_LINK and not self._is_last:
            return None
        if end < MAX_LINK and self._keeps(window[begin:end]):
            return plain
        space = " " if window[end - 1] == ">" else ""  # A parenthesis must not follow directly.
        replacement = f"{plain.output} {self._removed}{space}"
        return _Step(replacement, plain.end + end, skips=end == MAX_LINK)

    def _angle(self, text: str, token: re.Match[str]) -> _Step | None:
        plain, replacement = _Step("<", token.start() + 1), f"<{self._removed}"
        if token[0][1:-1].lower() in _WEB | _CONTACTS:
            return plain
        end = _end(_RUN, text, plain.end)
        if end - plain.end > MAX_LINK:
            return _Step(replacement, end, skips=True)
        if end == len(text) and not self._is_last:
            return None
        return _Step(replacement, end) if text[end : end + 1] == ">" else plain

    def _keeps(self, address: str) -> bool:
        address = html.unescape(_ESCAPE.sub(r"\1", address))
        address = re.sub(rf"^[\0- <{_SPACE}]+|[\0- >{_SPACE}]+$", "", address)
        if re.search(r"[\0-\x1f]", address):  # Browsers drop some of these characters.
            return False
        scheme = _SCHEME.match(address)
        if scheme is None:
            is_relative = not re.match(r"[\\/]{2}|www\.", address, re.IGNORECASE)
            return is_relative or self._is_allowed(address.lstrip("\\/"))
        name = scheme[1].lower()
        if name in _WEB:
            return self._is_allowed(address[scheme.end() :].lstrip("\\/"))
        return name in _CONTACTS


class _Urls(_Scanner):
    pattern = _URL

    def _decide(self, text: str, token: re.Match[str]) -> _Step | None:
        start, plain = token.start(), _Step(token[0], token.end())
        end = _end(_RUN, text, start)
        if end - start > MAX_LINK:
            return _Step(self._removed, end, skips=True)
        if end == len(text) and not self._is_last:
            return None
        at = start if token.lastgroup == "www" else token.end()
        location = text[at:end].lstrip("\\/")
        authority = re.split(r"[/?#\\]", location)[0]
        has_scheme = ":" in token[0]
        if not (re.search(r"[\w%\[]", location) if has_scheme else _DOTTED.search(authority)):
            return plain
        if self._is_allowed(location):
            url = _WHOLE.match(text, start)
            url_end = url.end() if url else end - len(location) + _end(_HOST, location, 0)
            return _Step(text[start:url_end], url_end)
        address = text[start : _end(_FOREIGN, text[:end], start)].rstrip(".,;!?")
        if "(" not in address:
            address = address.split(")")[0]
        return _Step(self._removed, start + max(len(address), len(token[0])))


def _nothing(text: str, token: re.Match[str]) -> str:
    return " " if text[max(0, token.start() - 1) : token.start()] == "]" else ""


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _address_end(text: str, at: int) -> int:
    if text.startswith("<", at):
        end = _end(_IN_ANGLES, text, at)
        if end == len(text) or text[end - 1] == ">":
            return end
    depth = 0
    while at < len(text):
        sign = text[at]
        if sign <= " " or (sign == ")" and not depth):
            break
        depth += {"(": 1, ")": -1}.get(sign, 0)
        at += 2 if sign == "\\" and text[at + 1 : at + 2] > " " else 1
    return at

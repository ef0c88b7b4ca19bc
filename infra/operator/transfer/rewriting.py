"""Rewrites ids and URLs of a workspace that is moved to another stage or copied.

A new id keeps the time of the old one. All random parts are shifted by the same number, so ids of
one millisecond keep their order. Only attributes that hold ids are rewritten. A string that merely
looks like an id, such as an SKU of 26 capitals, does not change.
"""

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from chalicelib.core.settings import Settings
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.rules.archive import Line
from chalicelib.domains.sites.rules import site_urls

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, the alphabet of ULIDs."""
_LENGTH = 26
_ID = re.compile(rf"[0-7][{_ALPHABET}]{{{_LENGTH - 1}}}")
_RUN = re.compile(rf"[{_ALPHABET}]{{{_LENGTH},}}")
_TIME = 10
"""Characters of an id that encode its time; the others are random."""
_END = 32 ** (_LENGTH - _TIME)
_DIGITS = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
_REFERENCE = re.compile(r"(?:^|_)ids?$")
"""Matches names of attributes that hold ids."""
_MENTIONS = {"sk", "f1", "move", "payload"}
"""Other attributes that contain ids.

``f1`` has the resource of time off. ``move`` has the resources of a booking that was moved.
"""
_ENDS = r"(?=[/?#\"'\\\s<>)&,;|]|$)"
_BEGINS = r"(?<=[\"'\s(=])"


def is_id(text: str) -> bool:
    """Whether a string is an id in the format of this service."""
    return _ID.fullmatch(text) is not None


def ids_in(line: Line) -> Iterable[str]:
    """Return the ids in a line of a file, but not ids within strings that users wrote."""
    if "job" in line:
        return _ID.findall(repr(line["job"]))
    if "at" not in line:
        return ()
    ids = _ID.findall(line["at"])
    rows = [line["item"], *(part["item"] for part in line.get("parts", ()))]
    is_statistics = line["at"].startswith(contents.METRICS.at)
    for row in rows:
        ids += _ids_of(row, everywhere=is_statistics)
    return ids


def _ids_of(item: Mapping[str, Any], *, everywhere: bool) -> list[str]:
    """Return the ids in a map of DynamoDB's JSON, and in its lists if ``everywhere`` is true."""
    ids: list[str] = []
    for name, value in item.items():
        if name in _MENTIONS or _REFERENCE.search(name):
            ids += _ID.findall(repr(value))
        for child in value.get("L", ()):
            if everywhere and _ID.fullmatch(child.get("S", "")):
                ids.append(child["S"])
            if "M" in child:
                ids += _ids_of(child["M"], everywhere=everywhere)
        if "M" in value:
            ids += _ids_of(value["M"], everywhere=everywhere)
    return ids


@dataclass
class NewIds:
    """New ids by old ones, always the same for the same seed."""

    seed: bytes
    known: set[str]
    _step: int = field(init=False)

    def __post_init__(self) -> None:
        """Choose the shift of the random parts so that none exceeds the largest value."""
        parts = [_number(known_id) for known_id in self.known]
        above, below = _END - 1 - max(parts), min(parts)
        step = int.from_bytes(hmac.digest(self.seed, b"step", "sha256"))
        self._step = 1 + step % above if above > below else -1 - step % below

    def new_id(self, old: str) -> str:
        """Return the new id of a known old one."""
        number, end = _number(old) + self._step, ""
        while len(end) < _LENGTH - _TIME:
            number, digit = divmod(number, len(_ALPHABET))
            end = _ALPHABET[digit] + end
        return old[:_TIME] + end

    def rewrite_text(self, text: str) -> str:
        """Return a string with new ids in place of the old ones."""
        return _RUN.sub(self._replace_ids, text)

    def _replace_ids(self, match: re.Match[str]) -> str:
        """Replace the known ids in a run of letters, in which letters may directly follow an id."""
        run, parts, start = match[0], [], 0
        while start < len(run):
            candidate = run[start : start + _LENGTH]
            is_id = candidate in self.known
            parts.append(self.new_id(candidate) if is_id else run[start])
            start += _LENGTH if is_id else 1
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class UrlPrefixes:
    """The URL prefixes of a stage."""

    public_url: str
    sites_domain: str

    @classmethod
    def from_header(cls, header: Line) -> "UrlPrefixes":
        """Return the prefixes of the stage that exported a file."""
        return cls(header["publicUrl"], header["sitesDomain"])

    @classmethod
    def from_settings(cls, settings: Settings) -> "UrlPrefixes":
        """Return the prefixes in these settings."""
        return cls(settings.public_url, settings.sites_domain)

    def site_url(self, slug: str) -> str:
        """Return the URL of a site."""
        return site_urls.site_url(slug, public_url=self.public_url, sites_domain=self.sites_domain)


@dataclass
class UrlRewriting:
    """Replaces the platform's URLs of one stage with the URLs of another.

    ``slugs`` maps old slugs of sites to new ones. On a stage without a sites domain, a site is at
    the path ``/s/<slug>`` of the public URL. Links that begin with this path get the new path.
    """

    old: UrlPrefixes
    new: UrlPrefixes
    slugs: Mapping[str, str]
    _changed: dict[str, str] = field(init=False)
    _pattern: re.Pattern[str] | None = field(init=False)

    def __post_init__(self) -> None:
        """Compile the pattern of the URLs that change."""
        replacements, paths = {self.old.public_url: self.new.public_url}, {}
        for old_slug, new_slug in self.slugs.items():
            urls = self.old.site_url(old_slug), self.new.site_url(new_slug)
            replacements[urls[0]] = urls[1]
            if not self.old.sites_domain:
                paths[f"/s/{old_slug}"] = urlsplit(urls[1]).path
        replacements = {k: v for k, v in replacements.items() if k != v}
        paths = {k: v for k, v in paths.items() if k != v}
        self._changed = replacements | paths
        choices = [_any_of(replacements)] if replacements else []
        choices += [_BEGINS + _any_of(paths)] if paths else []
        self._pattern = re.compile(f"(?:{'|'.join(choices)}){_ENDS}") if choices else None

    def rewrite_text(self, text: str) -> str:
        """Return a string with the new URLs."""
        if self._pattern is None:
            return text
        return self._pattern.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        """Return the new URL or path, with "/" for an empty path unless a "/" follows."""
        replacement = self._changed[match[0]]
        return replacement or ("" if match.string.startswith("/", match.end()) else "/")

    def __bool__(self) -> bool:
        """Whether any URL changes."""
        return self._pattern is not None


def _number(ulid: str) -> int:
    """Return the random part of an id as a number."""
    return int(ulid[_TIME:].translate(_DIGITS), 32)


def _any_of(texts: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(texts, key=len, reverse=True)))})"


@dataclass
class Rewriting:
    """All changes to the strings of a file."""

    urls: UrlRewriting
    ids: NewIds | None

    def rewrite_text(self, text: str) -> str:
        """Return a string, such as a line of the file or a page's HTML, with all changes."""
        text = self.urls.rewrite_text(text)
        return self.ids.rewrite_text(text) if self.ids else text

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.urls) or self.ids is not None

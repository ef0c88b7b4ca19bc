"""Stock photos that may be used and changed commercially, with the credit for each photo.

To add a provider, implement ``PhotoSource``. Openverse needs no key. Without a key it allows 20
requests a minute and 200 a day for each IP address, so callers cache the results.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from chalicelib.core.deadline import Deadline
from chalicelib.core.errors import NotConfiguredError, UpstreamFailedError
from chalicelib.core.settings import settings
from chalicelib.gateways.json_api import JsonApiError, get_json, link, services, text

Orientation = Literal["landscape", "portrait", "square"]

MAX_PAGE = 20  # the highest that Openverse returns
MAX_SIZE = 20  # photos on a page of Openverse
# A search takes a second or two, or more if Openverse has to remove dead links.
TOTAL_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo at its provider, to show together with ``attribution``. URLs are https.

    The licences CC BY and CC BY-SA require it; for the others it is a courtesy.
    """

    id: str
    url: str
    thumb_url: str
    width: int | None  # pixels
    height: int | None
    title: str | None
    author: str | None
    author_url: str | None
    license: str
    license_url: str | None
    source_url: str | None
    provider: str
    attribution: str


@dataclass(frozen=True, slots=True)
class PhotoPage:
    """A page of photos. It may have fewer than ``size``, because unusable ones are left out."""

    photos: list[Photo]
    total: int  # of all matches, but only the first 20 pages can be read
    page: int
    size: int
    has_more: bool


class PhotoSource(Protocol):
    def search(
        self,
        query: str,
        *,
        page: int = 1,
        size: int = MAX_SIZE,
        orientation: Orientation | None = None,
    ) -> PhotoPage:
        """Return a page of matching photos. ``page`` and ``size`` are from 1 to 20.

        Raises:
            UpstreamFailedError: the provider failed. Carries its ``Retry-After``, if it sent one.
        """


def photo_source(*, timeout_seconds: float = TOTAL_SECONDS) -> PhotoSource:
    """Return the provider of ``PHOTO_SOURCE``, or raise NotConfiguredError if that is off."""
    match list(services(settings().photo_source).items()):
        case []:
            msg = "Photo search is switched off on this server. Send the URL of your own image."
            raise NotConfiguredError(msg, key="photo_search")
        case [("openverse", base)]:
            return Openverse(base, timeout_seconds=timeout_seconds)
        case _:
            msg = (
                f"PHOTO_SOURCE: expected openverse=<base URL>, received {settings().photo_source!r}"
            )
            raise ValueError(msg)


_ASPECTS: dict[Orientation, str] = {"landscape": "wide", "portrait": "tall", "square": "square"}
# These allow commercial use and changes. Photos under other licences are left out.
_LICENSES = {
    "by": "CC BY",
    "by-sa": "CC BY-SA",
    "cc0": "CC0",
    "pdm": "Public Domain Mark",
}
_PUBLIC_DOMAIN = frozenset({"cc0", "pdm"})


class Openverse:
    """Openly licensed images of Flickr, Wikimedia and others (https://api.openverse.org/v1/)."""

    def __init__(self, base: str, *, timeout_seconds: float = TOTAL_SECONDS) -> None:
        self._base = base
        self._timeout_seconds = timeout_seconds

    def search(
        self,
        query: str,
        *,
        page: int = 1,
        size: int = MAX_SIZE,
        orientation: Orientation | None = None,
    ) -> PhotoPage:
        query_params: dict[str, str | int] = {
            "q": query,
            "license_type": "commercial,modification",
            "mature": "false",
            "page": page,
            "page_size": size,
        }
        if orientation:
            query_params["aspect_ratio"] = _ASPECTS[orientation]
        try:
            answer = get_json(
                "openverse",
                url=f"{self._base}/v1/images/",
                query=query_params,
                deadline=Deadline(self._timeout_seconds),
            )
            return _page(answer, page, size=size)
        except JsonApiError as failure:
            raise _failed(failure.reason, failure.retry_after) from failure


def _failed(reason: str, wait: int | None) -> UpstreamFailedError:
    when = f"in {wait} seconds" if wait else "later"
    return UpstreamFailedError(
        f"The photo search failed: {reason}. Try again {when}, or send the URL of your own image.",
        headers={"Retry-After": str(wait)} if wait else None,
        key="photo_search",
    )


def _page(answer: object, page: int, *, size: int) -> PhotoPage:
    match answer:
        case {"result_count": int(total), "page_count": int(pages), "results": list(results)}:
            photos = [_photo(item) for item in results[:size] if isinstance(item, dict)]
            return PhotoPage(
                photos=[photo for photo in photos if photo],
                total=max(total, 0),
                page=page,
                size=size,
                has_more=page < min(pages, MAX_PAGE),
            )
        case _:
            raise JsonApiError("openverse", what="sent a response that is not a page of photos")


def _photo(item: Mapping[str, Any]) -> Photo | None:
    identity, url = text(item.get("id"), 64), link(item.get("url"))
    license_code = text(item.get("license"), 20)
    if not identity or not url or license_code not in _LICENSES or item.get("mature") is True:
        # The photo cannot be shown, credited or used freely.
        return None
    title, author = text(item.get("title"), 255), text(item.get("creator"), 255)
    version = text(item.get("license_version"), 10)
    license_name = " ".join(filter(None, (_LICENSES[license_code], version)))
    license_url = link(item.get("license_url"), "https", "http")
    return Photo(
        id=identity,
        url=url,
        thumb_url=link(item.get("thumbnail")) or url,
        width=_pixels(item.get("width")),
        height=_pixels(item.get("height")),
        title=title,
        author=author,
        author_url=link(item.get("creator_url"), "https", "http"),
        license=license_name,
        license_url=license_url,
        source_url=link(item.get("foreign_landing_url"), "https", "http"),
        provider=text(item.get("source"), 80) or text(item.get("provider"), 80) or "openverse",
        attribution=text(item.get("attribution"), 2000)
        or _credit(
            title,
            author=author,
            license_code=license_code,
            license_name=license_name,
            url=license_url,
        ),
    )


def _pixels(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _credit(
    title: str | None, *, author: str | None, license_code: str, license_name: str, url: str | None
) -> str:
    work = f'"{title}"' if title else "This work"
    by = f" by {author}" if author else ""
    license_phrase = "is marked with" if license_code in _PUBLIC_DOMAIN else "is licensed under"
    terms = f" To view the terms, visit {url}." if url else ""
    return f"{work}{by} {license_phrase} {license_name}.{terms}"

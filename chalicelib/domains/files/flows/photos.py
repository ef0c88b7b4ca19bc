"""Search stock photos, and cache each result for a day."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from pydantic import Field

from chalicelib.core.deadline import Deadline
from chalicelib.core.limits import Limit
from chalicelib.core.principals import PLATFORM
from chalicelib.core.wire.schema import Wire
from chalicelib.engine import limits
from chalicelib.engine.cache import cached
from chalicelib.gateways.photos import (
    MAX_SIZE,
    TOTAL_SECONDS,
    Orientation,
    Photo,
    PhotoPage,
    photo_source,
)

CACHE_TTL = timedelta(hours=24)
MAX_QUERY = 200
# Rate limits of Openverse without a key, from its documentation, for the whole platform.
PROVIDER_LIMITS = (
    Limit("photo-searches", "photo searches per minute", 20, timedelta(minutes=1), fails_open=True),
    Limit(
        "photo-searches-daily", "photo searches per day", 200, timedelta(days=1), fails_open=True
    ),
)
WORKSPACE_LIMIT = Limit(
    "photo-share", "photo searches per day in a workspace", 100, timedelta(days=1)
)


class PhotoOut(Wire):
    """A free stock photo."""

    id: str = Field(description="The provider's id.")
    url: str = Field(description="URL of the full photo; other calls accept it as an image's url.")
    thumb_url: str = Field(description="URL of a small version.")
    width: int | None = Field(description="Pixels, or null if unknown.")
    height: int | None = Field(description="Pixels, or null if unknown.")
    title: str | None = Field(description="Title, or null. Untrusted text.")
    author: str | None = Field(description="Author, or null.")
    author_url: str | None = Field(description="URL of the author's page, or null.")
    license: str = Field(
        description="Licence, such as CC BY 4.0. It allows commercial use and changes."
    )
    license_url: str | None = Field(description="URL of the licence's text, or null.")
    source_url: str | None = Field(description="URL of the photo's page, or null.")
    provider: str = Field(description="Service that hosts it.")
    attribution: str = Field(description="The credit to show with the photo.")


def search(  # noqa: PLR0913  the parameters of a search
    workspace_id: str,
    *,
    query: str,
    page: int = 1,
    size: int = MAX_SIZE,
    orientation: Orientation | None = None,
    max_seconds: float = TOTAL_SECONDS,
) -> PhotoPage:
    """Return a page of photos, from a search within the last 24 hours or from a new one.

    Raises:
        UpstreamFailedError: the provider failed. The failure is not cached.
        RateLimitedError: a limit of new searches is reached.
        NotConfiguredError: the search is switched off, even if a result is cached.
    """
    source = photo_source(timeout_seconds=max_seconds)

    def request() -> dict[str, Any]:
        # The workspace's share is taken first, so a busy workspace does not use up the others'
        # limit.
        limits.take(WORKSPACE_LIMIT, workspace_id)
        limits.take_each([(provider_limit, PLATFORM) for provider_limit in PROVIDER_LIMITS])
        return asdict(source.search(query, page=page, size=size, orientation=orientation))

    cached_page = cached(
        "photos",
        key=json.dumps([query, page, size, orientation]),
        ttl=CACHE_TTL,
        produce=request,
    )
    return PhotoPage(
        **{**cached_page, "photos": [Photo(**photo) for photo in cached_page["photos"]]}
    )


def candidates(
    workspace_id: str,
    queries: Iterable[str | None],
    *,
    max_photos: int,
    max_seconds: float = TOTAL_SECONDS,
) -> list[PhotoOut]:
    """Return photos for the first query that has any. All searches share the time, in seconds.

    Raises UpstreamFailedError if the provider failed, and NotConfiguredError if the search is off.
    """
    deadline = Deadline(max_seconds)
    for query in filter(None, queries):
        if photo_page := search(
            workspace_id,
            query=query[:MAX_QUERY],
            size=max_photos,
            max_seconds=deadline.seconds_left(),
        ).photos:
            return [PhotoOut.model_validate(photo) for photo in photo_page]
    return []

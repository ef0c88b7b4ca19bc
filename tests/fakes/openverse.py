"""Openverse, with the responses of its image search API v1."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

import pytest

from chalicelib.gateways import photos
from tests.fakes import JsonServer, ReceivedRequest


class FakeOpenverse(JsonServer):
    """A search that returns all of ``images`` for any query, page by page."""

    def __init__(self, count: int = 45) -> None:
        super().__init__()
        self.images = [image(number) for number in range(count)]

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        page, size = int(request.query["page"]), int(request.query["page_size"])
        return answer_with(self.images, page, size)


def answer_with(images: list[dict[str, Any]], page: int, size: int) -> tuple[int, Any]:
    """Return the status and the JSON of one page of these images."""
    if size > 20:
        return 401, {"detail": "Ensure this value is less than or equal to 20."}
    if page > 20:
        return 400, {"error": "InputError", "detail": "Ensure this value is at most 20."}
    return 200, {
        "result_count": len(images),
        "page_count": min(20, ceil(len(images) / size)),
        "page_size": size,
        "page": page,
        "results": images[(page - 1) * size : page * size],
    }


def image(number: int, **fields: Any) -> dict[str, Any]:
    """Return an image in Openverse's format, with some fields changed."""
    identity = f"4bc43a04-ef46-4544-a0c1-{number:012}"
    return {
        "id": identity,
        "title": f"Bread {number}",
        "indexed_on": "2022-08-27T17:39:48Z",
        "foreign_landing_url": f"https://www.flickr.com/photos/baker/{number}",
        "url": f"https://live.staticflickr.com/{number}.jpg",
        "creator": "Tim Baker",
        "creator_url": "https://www.flickr.com/photos/baker",
        "license": "by-sa",
        "license_version": "2.0",
        "license_url": "https://creativecommons.org/licenses/by-sa/2.0/",
        "provider": "flickr",
        "source": "flickr",
        "category": "photograph",
        "filesize": 896128,
        "filetype": "jpg",
        "tags": [{"accuracy": None, "name": "bread", "unstable__provider": "flickr"}],
        "attribution": f'"Bread {number}" by Tim Baker is licensed under CC BY-SA 2.0. To view a'
        " copy of this license, visit https://creativecommons.org/licenses/by-sa/2.0/.",
        "fields_matched": ["title"],
        "mature": False,
        "height": 683,
        "width": 1024,
        "thumbnail": f"https://api.openverse.org/v1/images/{identity}/thumb/",
        "detail_url": f"https://api.openverse.org/v1/images/{identity}/",
        "related_url": f"https://api.openverse.org/v1/images/{identity}/related/",
        "unstable__sensitivity": [],
        **fields,
    }


@pytest.fixture
def openverse(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenverse]:
    """A fake Openverse with 45 images of bread."""
    with FakeOpenverse() as server:
        configured = replace(photos.settings(), photo_source=f"openverse={server.url}/")
        monkeypatch.setattr(photos, "settings", lambda: configured)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server

"""Tests of stock photos over REST and as a tool, with working and failing providers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domains.files.flows import photos as flow
from chalicelib.engine import limits
from chalicelib.gateways import photos as gateway
from infra.bench.dynamodb.usage import metering
from tests import fakes
from tests.conftest import Answer, Api, Owner, Time
from tests.fakes.openverse import FakeOpenverse, image

PATH = "/api/card-images/search"


def search(api: Api, query: str = "bread", **arguments: object) -> Any:
    more = "".join(f"&{name}={value}" for name, value in arguments.items())
    return api.get(f"{PATH}?query={query}{more}")


def search_refused(api: Api) -> Answer:
    return api.call_refused("GET", f"{PATH}?query=bread")


class TestSearchCardImages:
    def test_photos_come_with_everything_their_licence_requires(
        self, openverse: FakeOpenverse, api: Api
    ) -> None:
        data = search(api)
        assert data["images"][3] == {
            "id": "4bc43a04-ef46-4544-a0c1-000000000003",
            "url": "https://live.staticflickr.com/3.jpg",
            "thumbUrl": "https://api.openverse.org/v1/images/"
            "4bc43a04-ef46-4544-a0c1-000000000003/thumb/",
            "width": 1024,
            "height": 683,
            "title": "Bread 3",
            "author": "Tim Baker",
            "authorUrl": "https://www.flickr.com/photos/baker",
            "license": "CC BY-SA 2.0",
            "licenseUrl": "https://creativecommons.org/licenses/by-sa/2.0/",
            "sourceUrl": "https://www.flickr.com/photos/baker/3",
            "provider": "flickr",
            "attribution": '"Bread 3" by Tim Baker is licensed under CC BY-SA 2.0. To view a copy'
            " of this license, visit https://creativecommons.org/licenses/by-sa/2.0/.",
        }
        assert {name: data[name] for name in ("page", "size", "total", "hasMore")} == {
            "page": 1,
            "size": 20,
            "total": 45,
            "hasMore": True,
        }

    def test_each_photo_comes_once_across_pages(self, openverse: FakeOpenverse, api: Api) -> None:
        pages = [search(api, page=page, size=20) for page in (1, 2, 3)]
        assert [page["hasMore"] for page in pages] == [True, True, False]
        photo_ids = [photo["id"] for page in pages for photo in page["images"]]
        assert photo_ids == [one["id"] for one in openverse.images]

    def test_a_search_may_filter_by_orientation(self, openverse: FakeOpenverse, api: Api) -> None:
        search(api, orientation="portrait")
        assert openverse.requests[0].query["aspect_ratio"] == "tall"

    def test_no_results_are_an_empty_page(self, openverse: FakeOpenverse, api: Api) -> None:
        openverse.images = []
        data = search(api)
        assert (data["images"], data["total"], data["hasMore"]) == ([], 0, False)


class TestCache:
    def test_the_same_search_makes_one_request_in_24_hours_for_all_callers(
        self, openverse: FakeOpenverse, new_owner: Callable[..., Owner], time: Time
    ) -> None:
        first = search(new_owner().api())
        time.pass_by(hours=23, minutes=59)
        assert search(new_owner().api()) == first
        assert len(openverse.requests) == 1
        time.pass_by(minutes=1)
        assert search(new_owner().api()) == first
        assert len(openverse.requests) == 2

    def test_a_cached_search_takes_three_round_trips(
        self, openverse: FakeOpenverse, api: Api
    ) -> None:
        search(api)
        with metering() as usage:
            search(api)
        assert usage.round_trips == 3, usage.calls

    @pytest.mark.parametrize(
        "other", [{"page": 2}, {"size": 19}, {"orientation": "square"}, {"query": "cake"}]
    )
    def test_another_search_makes_another_request(
        self, other: dict[str, Any], openverse: FakeOpenverse, api: Api
    ) -> None:
        search(api)
        search(api, **other)
        assert len(openverse.requests) == 2

    def test_a_failure_is_not_cached(self, openverse: FakeOpenverse, api: Api) -> None:
        openverse.breaks = fakes.status(500)
        assert search_refused(api).status == 502
        openverse.breaks = None
        assert search(api)["total"] == 45

    def test_a_search_that_is_switched_off_is_refused_even_if_cached(
        self, openverse: FakeOpenverse, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        search(api)
        off = replace(gateway.settings(), photo_source="")
        monkeypatch.setattr(gateway, "settings", lambda: off)
        assert search_refused(api).status == 503


class TestFailure:
    @pytest.mark.parametrize(
        ("breaks", "says"),
        [
            (fakes.status(500), "openverse answered with status 500"),
            (fakes.status(301, Location="http://127.0.0.1/"), "answered with status 301"),
            (fakes.status(401), "openverse answered with status 401"),
            (fakes.body(b"<html>It works!</html>"), "sent a response that is not JSON"),
            (fakes.body(b'{"results": 1}'), "sent a response that is not a page of photos"),
            (fakes.huge, "openverse sent more than 1 MB"),
            (fakes.cut_off, "openverse cannot be reached"),
        ],
        ids=["down", "moved", "refused", "garbage", "of another shape", "huge", "cut off"],
    )
    def test_a_failed_search_is_502_with_advice_over_rest_and_mcp(
        self, breaks: Any, says: str, openverse: FakeOpenverse, api: Api
    ) -> None:
        openverse.breaks = breaks
        answer = search_refused(api)
        assert (answer.status, answer.data["code"]) == (502, "upstream_failed")
        assert says in answer.data["message"]
        assert answer.data["key"] == "photo_search"
        assert openverse.url not in answer.body.decode()
        failed, reply = api.tool("svc_search_card_images", query="bread")
        assert failed
        assert (reply["httpStatus"], reply["data"]["code"]) == (502, "upstream_failed")
        assert reply["data"]["message"] == answer.data["message"]

    def test_a_rate_limited_provider_passes_on_when_to_retry(
        self, openverse: FakeOpenverse, api: Api
    ) -> None:
        openverse.breaks = fakes.status(429, Retry_After="7")
        answer = search_refused(api)
        assert answer.status == 502
        assert answer.headers["Retry-After"] == "7"
        assert "7 seconds" in answer.data["message"]

    def test_a_slow_provider_is_given_up(
        self, openverse: FakeOpenverse, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = flow.photo_source
        monkeypatch.setattr(flow, "photo_source", lambda **_: real(timeout_seconds=0.2))
        openverse.breaks = fakes.silent
        answer = search_refused(api)
        assert (answer.status, answer.data["key"]) == (502, "photo_search")
        assert "in time" in answer.data["message"]

    def test_an_unreachable_provider_is_502(self, openverse: FakeOpenverse, api: Api) -> None:
        openverse.close()
        answer = search_refused(api)
        assert (answer.status, answer.data["key"]) == (502, "photo_search")
        assert "openverse" in answer.data["message"]

    def test_a_search_that_is_switched_off_is_503_over_rest_and_mcp(self, api: Api) -> None:
        answer = search_refused(api)
        assert (answer.status, answer.data["code"]) == (503, "not_configured")
        assert answer.data["key"] == "photo_search"
        failed, reply = api.tool("svc_search_card_images", query="bread")
        assert failed
        assert (reply["httpStatus"], reply["data"]["code"]) == (503, "not_configured")

    def test_photos_without_a_usable_licence_are_left_out(
        self, openverse: FakeOpenverse, api: Api
    ) -> None:
        openverse.images = [image(1), image(2, license="by-nc"), image(3, mature=True)]
        data = search(api)
        assert [photo["title"] for photo in data["images"]] == ["Bread 1"]
        assert (data["size"], data["total"]) == (20, 3)


class TestLimit:
    def test_a_key_may_search_sixty_times_a_minute(
        self,
        openverse: FakeOpenverse,
        owner: Owner,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        config = replace(limits.settings(), rate_limit_scale=1)
        monkeypatch.setattr(limits, "settings", lambda: config)
        one, other = owner.api(), owner.api()
        for _ in range(60):
            search(one)
        answer = search_refused(one)
        assert (answer.status, answer.data["code"]) == (429, "rate_limited")
        assert answer.headers["Retry-After"] == "60"
        assert answer.headers["RateLimit-Limit"] == "60"
        assert "60 calls a minute" in answer.data["message"]
        assert search(other)["total"] == 45
        time.pass_by(minutes=1)
        assert search(one)["total"] == 45

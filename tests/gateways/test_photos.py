"""Photo search, against a fake Openverse on loopback."""

import json
from dataclasses import asdict, replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from chalicelib import VERSION
from chalicelib.core.errors import NotConfiguredError, UpstreamFailedError
from chalicelib.gateways import photos as gateway
from chalicelib.gateways.photos import Openverse, Orientation, Photo, photo_source
from tests import fakes
from tests.conftest import Time
from tests.fakes.openverse import FakeOpenverse, image
from tests.support.keyed import keyed
from tests.support.patience import FOR_EVER


def only_photo(server: FakeOpenverse, **changes: Any) -> Photo:
    """Return the photo made of an image with some fields changed."""
    server.images = [image(1, **changes)]
    (photo,) = photo_source().search("bread").photos
    return photo


class TestSearch:
    def test_photos_come_with_the_credit_they_require(self, openverse: FakeOpenverse) -> None:
        identity = "4bc43a04-ef46-4544-a0c1-000000000000"
        assert photo_source().search("bread").photos[0] == Photo(
            id=identity,
            url="https://live.staticflickr.com/0.jpg",
            thumb_url=f"https://api.openverse.org/v1/images/{identity}/thumb/",
            width=1024,
            height=683,
            title="Bread 0",
            author="Tim Baker",
            author_url="https://www.flickr.com/photos/baker",
            license="CC BY-SA 2.0",
            license_url="https://creativecommons.org/licenses/by-sa/2.0/",
            source_url="https://www.flickr.com/photos/baker/0",
            provider="flickr",
            attribution='"Bread 0" by Tim Baker is licensed under CC BY-SA 2.0. To view a copy of'
            " this license, visit https://creativecommons.org/licenses/by-sa/2.0/.",
        )

    def test_only_photos_for_commercial_use_and_all_audiences_are_requested(
        self, openverse: FakeOpenverse
    ) -> None:
        photo_source().search("хлеб & соль", page=2, size=5)
        (request,) = openverse.requests
        assert request.path == "/v1/images/"
        assert request.query == {
            "q": "хлеб & соль",
            "license_type": "commercial,modification",
            "mature": "false",
            "page": "2",
            "page_size": "5",
        }
        assert request.headers["user-agent"] == (
            f"Workspace-Automation-API/{VERSION} (+http://127.0.0.1:8000)"
        )

    @pytest.mark.parametrize(
        ("orientation", "aspect"),
        [("landscape", "wide"), ("portrait", "tall"), ("square", "square")],
    )
    def test_an_orientation_can_be_requested(
        self, orientation: Orientation, aspect: str, openverse: FakeOpenverse
    ) -> None:
        photo_source().search("bread", orientation=orientation)
        assert openverse.requests[0].query["aspect_ratio"] == aspect

    def test_each_photo_comes_once_across_pages(self, openverse: FakeOpenverse) -> None:
        pages = [photo_source().search("bread", page=number) for number in (1, 2, 3)]
        assert [page.has_more for page in pages] == [True, True, False]
        assert [(page.total, page.page, page.size) for page in pages] == [
            (45, 1, 20),
            (45, 2, 20),
            (45, 3, 20),
        ]
        photo_ids = [photo.id for page in pages for photo in page.photos]
        assert photo_ids == [item["id"] for item in openverse.images]

    def test_page_twenty_is_the_last(self, openverse: FakeOpenverse) -> None:
        openverse.images = [image(number) for number in range(300)]
        assert photo_source().search("bread", page=19, size=10).has_more
        last = photo_source().search("bread", page=20, size=10)
        assert len(last.photos) == 10
        assert not last.has_more
        assert last.total == 300

    def test_page_twenty_is_the_last_even_if_there_are_more(self, openverse: FakeOpenverse) -> None:
        openverse.answer = lambda _: (  # type: ignore[method-assign]
            200,
            {"result_count": 9999, "page_count": 500, "results": [image(1)]},
        )
        assert photo_source().search("bread", page=19).has_more
        assert not photo_source().search("bread", page=20).has_more

    def test_a_search_without_results_is_an_empty_page(self, openverse: FakeOpenverse) -> None:
        openverse.images = []
        page = photo_source().search("qwertyuiop")
        assert (page.photos, page.total, page.has_more) == ([], 0, False)

    def test_a_page_can_be_stored_as_json(self, openverse: FakeOpenverse) -> None:
        page = asdict(photo_source().search("bread"))
        assert json.loads(json.dumps(page)) == page


SEE = "To view the terms, visit https://creativecommons.org/licenses/by-sa/2.0/."


class TestCredit:
    @pytest.mark.parametrize(
        ("changes", "credit"),
        [
            (
                {},
                f'"Bread 1" by Tim Baker is licensed under CC BY-SA 2.0. {SEE}',
            ),
            (
                {"license": "by", "license_version": "4.0", "license_url": None},
                '"Bread 1" by Tim Baker is licensed under CC BY 4.0.',
            ),
            (
                {"title": None, "creator": "", "license": "cc0", "license_version": "1.0"},
                f"This work is marked with CC0 1.0. {SEE}",
            ),
            (
                {"license": "pdm", "license_version": None, "license_url": None},
                '"Bread 1" by Tim Baker is marked with Public Domain Mark.',
            ),
        ],
    )
    def test_a_missing_credit_is_composed(
        self, changes: dict[str, Any], credit: str, openverse: FakeOpenverse
    ) -> None:
        assert only_photo(openverse, attribution=None, **changes).attribution == credit


class TestUntrustedData:
    @pytest.mark.parametrize(
        "changes",
        [
            {"license": "by-nc"},
            {"license": "by-nd"},
            {"license": "by-nc-sa"},
            {"license": None},
            {"license": ["by"]},
            {"mature": True},
            {"id": None},
            {"id": 17},
            {"url": None},
            {"url": "http://live.staticflickr.com/1.jpg"},
            {"url": "javascript:alert(1)"},
        ],
    )
    def test_photos_that_cannot_be_used_or_credited_are_left_out(
        self, changes: dict[str, Any], openverse: FakeOpenverse
    ) -> None:
        openverse.images = [image(1), image(2, **changes), image(3)]
        page = photo_source().search("bread")
        assert [photo.title for photo in page.photos] == ["Bread 1", "Bread 3"]

    def test_entries_that_are_not_images_are_left_out(self, openverse: FakeOpenverse) -> None:
        openverse.images = [None, 17, "x", [], image(1), {}]  # type: ignore[list-item]
        assert len(photo_source().search("bread").photos) == 1

    def test_surplus_photos_are_dropped(self, openverse: FakeOpenverse) -> None:
        openverse.answer = lambda _: (  # type: ignore[method-assign]
            200,
            {"result_count": 99, "page_count": 2, "results": [image(n) for n in range(99)]},
        )
        assert len(photo_source().search("bread", size=7).photos) == 7

    @pytest.mark.parametrize("wrong", [None, 17.5, True, ["x"], {"a": "b"}, "", " \u0000", "-1"])
    def test_fields_of_a_wrong_type_count_as_missing(
        self, wrong: Any, openverse: FakeOpenverse
    ) -> None:
        kept_fields = {"id", "url", "license", "license_version", "mature"}
        photo = only_photo(openverse, **dict.fromkeys(image(1).keys() - kept_fields, wrong))
        text = wrong if wrong == "-1" else None
        assert (photo.width, photo.height) == (None, None)
        assert (photo.author_url, photo.license_url, photo.source_url) == (None, None, None)
        assert (photo.title, photo.author) == (text, text)
        assert photo.thumb_url == photo.url
        assert photo.provider == (text or "openverse")
        assert photo.attribution == text or photo.attribution.startswith("This work is licensed")

    def test_texts_are_cut_and_lose_control_characters(self, openverse: FakeOpenverse) -> None:
        photo = only_photo(
            openverse, title="т" * 9000, creator="a\x00\n\x1bb\u202ec", attribution="х" * 9000
        )
        assert photo.title == "т" * 255
        assert photo.author == "a b c"
        assert photo.attribution == "х" * 2000


class TestFailing:
    def failure(self, seconds: float = FOR_EVER) -> UpstreamFailedError:
        (base,) = gateway.services(gateway.settings().photo_source).values()
        with pytest.raises(UpstreamFailedError) as failure:
            Openverse(base, timeout_seconds=seconds).search("bread")
        error = failure.value
        assert (error.status, error.code) == (502, "upstream_failed")
        assert error.key == "photo_search"
        assert "openverse" in error.message
        return error

    @pytest.mark.parametrize(
        ("breaks", "what"),
        [
            (fakes.status(500), "500"),
            (fakes.status(401), "401"),
            (fakes.status(301, Location="/x"), "301"),
            (fakes.cut_off, "cannot be reached"),
            (fakes.huge, "1 MB"),
        ],
    )
    def test_a_failure_is_a_502_with_advice(
        self, breaks: fakes.Misbehaviour, what: str, openverse: FakeOpenverse
    ) -> None:
        openverse.breaks = breaks
        error = self.failure()
        assert what in error.message
        assert error.headers == {}

    def test_a_failure_shows_no_url(self, openverse: FakeOpenverse) -> None:
        openverse.close()
        assert "127.0.0.1" not in self.failure().message

    @pytest.mark.parametrize(
        "raw",
        [
            *fakes.GARBAGE,
            b'{"result_count": "1", "page_count": 1, "results": []}',
            b'{"result_count": 1, "page_count": 1, "results": {}}',
            b'{"result_count": 1, "results": []}',
        ],
    )
    def test_invalid_data_is_not_mistaken_for_no_photos(
        self, raw: bytes, openverse: FakeOpenverse
    ) -> None:
        openverse.breaks = fakes.body(raw)
        assert "sent a response" in self.failure().message

    @pytest.mark.parametrize(
        "breaks",
        [fakes.silent, fakes.drip(b""), fakes.drip(b"HTTP/1.1 200 OK\r\n\r\n[")],
    )
    def test_a_failure_comes_in_time_however_slow_the_server(
        self, breaks: fakes.Misbehaviour, openverse: FakeOpenverse
    ) -> None:
        openverse.breaks = breaks
        assert "in time" in self.failure(seconds=0.3).message

    def test_the_time_limit_leaves_time_within_api_gateways_29_seconds(self) -> None:
        assert gateway.TOTAL_SECONDS <= 10

    @pytest.mark.parametrize("code", [429, 503])
    @pytest.mark.parametrize(
        ("retry_after", "passed_on"),
        [("42", "42"), ("0", "1"), ("99999999", "86400"), ("9" * 400, None), ("soon", None)],
    )
    def test_a_retry_delay_is_passed_on(
        self, code: int, retry_after: str, passed_on: str | None, openverse: FakeOpenverse
    ) -> None:
        openverse.breaks = fakes.status(code, Retry_After=retry_after)
        error = self.failure()
        assert error.headers.get("Retry-After") == passed_on
        assert (f"{passed_on} seconds" in error.message) is bool(passed_on)

    def test_a_retry_date_is_passed_on_as_a_delay(
        self, openverse: FakeOpenverse, time: Time
    ) -> None:
        until = format_datetime(time.now + timedelta(minutes=5), usegmt=True)
        openverse.breaks = fakes.status(429, Retry_After=until)
        assert self.failure().headers == {"Retry-After": "300"}


class TestSetting:
    def use(self, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
        changed_settings = replace(gateway.settings(), photo_source=source)
        monkeypatch.setattr(gateway, "settings", lambda: changed_settings)

    def test_an_empty_setting_switches_the_search_off(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.use(monkeypatch, "")
        with pytest.raises(NotConfiguredError, check=keyed("photo_search")) as failure:
            photo_source()
        assert (failure.value.status, failure.value.code) == (503, "not_configured")

    @pytest.mark.parametrize(
        "source",
        [
            "https://x.example",
            "pexels=https://x.example",
            "openverse=x",
            "openverse=https://x.example pexels=https://y.example",
        ],
    )
    def test_an_invalid_setting_is_refused_with_the_expected_form(
        self, source: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.use(monkeypatch, source)
        with pytest.raises(ValueError, match=r"=<base URL>, received"):
            photo_source()

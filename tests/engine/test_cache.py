"""Responses of external services are requested once, kept for a while, and optional."""

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from pynamodb.exceptions import GetError, PutError

from chalicelib.engine.cache import CacheRow, cached
from tests.conftest import Time, all_rows

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

DAY = timedelta(days=1)


class Service:
    """A service that counts its requests."""

    def __init__(self, answer: Any = "found") -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [None, False, 0, "", [], {}, 1.5, "Ёж 🦔", {"images": [{"url": "https://x"}], "n": None}],
)
def test_a_service_is_requested_once_whatever_it_returns(answer: Any) -> None:
    service = Service(answer)
    assert [cached("photos", key="bread", ttl=DAY, produce=service) for _ in range(3)] == [
        answer
    ] * 3
    assert service.asked == 1


def test_another_key_or_kind_is_cached_separately() -> None:
    first, other_key, other_kind = Service(1), Service(2), Service(3)
    assert cached("photos", key="bread", ttl=DAY, produce=first) == 1
    assert cached("photos", key="Bread", ttl=DAY, produce=other_key) == 2
    assert cached("barcodes", key="bread", ttl=DAY, produce=other_kind) == 3
    assert cached("photos", key="bread", ttl=DAY, produce=first) == 1


def test_a_key_may_be_of_any_length_and_script() -> None:
    service = Service()
    for _ in range(2):
        assert cached("photos", key="хлеб#\x00" * 5000, ttl=DAY, produce=service) == "found"
    assert service.asked == 1


def test_an_answer_expires_on_time_even_if_its_row_still_exists(time: Time) -> None:
    service = Service()
    cached("photos", key="bread", ttl=timedelta(hours=24), produce=service)
    time.pass_by(hours=23, minutes=59)
    cached("photos", key="bread", ttl=timedelta(hours=24), produce=service)
    assert service.asked == 1
    time.pass_by(minutes=1)
    service.answer = "newer"
    assert len(all_rows()) == 1
    assert cached("photos", key="bread", ttl=timedelta(hours=24), produce=service) == "newer"
    time.pass_by(hours=23)
    assert cached("photos", key="bread", ttl=timedelta(hours=24), produce=service) == "newer"
    assert service.asked == 2


def test_a_missing_result_may_be_cached_for_less_long(time: Time) -> None:
    nothing, something = Service(None), Service("found")
    for _ in range(2):
        cached("barcodes", key="1", ttl=30 * DAY, produce=nothing, ttl_of_none=DAY)
        cached("barcodes", key="2", ttl=30 * DAY, produce=something, ttl_of_none=DAY)
    assert (nothing.asked, something.asked) == (1, 1)
    time.pass_by(days=1)
    for _ in range(2):
        cached("barcodes", key="1", ttl=30 * DAY, produce=nothing, ttl_of_none=DAY)
        cached("barcodes", key="2", ttl=30 * DAY, produce=something, ttl_of_none=DAY)
    assert (nothing.asked, something.asked) == (2, 1)


def test_a_row_expires_automatically_and_belongs_to_no_workspace(time: Time) -> None:
    cached("photos", key="bread", ttl=DAY, produce=Service({"a": 1}))
    ((place, row),) = all_rows().items()
    assert place.startswith("control/CACHE#photos#")
    assert row["expires"] == {"N": str(int((time.now + DAY).timestamp()))}
    assert json.loads(row["body"]["S"]) == {"a": 1}


def test_a_failed_request_is_repeated() -> None:
    def fails() -> str:
        raise LookupError("no luck")

    with pytest.raises(LookupError, match="no luck"):
        cached("photos", key="bread", ttl=DAY, produce=fails)
    assert cached("photos", key="bread", ttl=DAY, produce=Service()) == "found"


def test_the_largest_answer_is_cached_and_a_larger_one_only_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fits, too_large = Service("ж" * 199_400), Service("ж" * 210_000)
    for _ in range(2):
        assert cached("photos", key="fits", ttl=DAY, produce=fits) == fits.answer
        assert cached("photos", key="too large", ttl=DAY, produce=too_large) == too_large.answer
    assert (fits.asked, too_large.asked) == (1, 2)
    assert caplog.records == []


def test_a_failing_cache_costs_one_request_and_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_get(*_: object, **__: object) -> None:
        raise GetError("down")

    def no_put(*_: object, **__: object) -> None:
        raise PutError("down")

    service = Service()
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        broken.setattr(CacheRow, "get", no_get)
        broken.setattr(CacheRow, "save", no_put)
        assert cached("photos", key="bread", ttl=DAY, produce=service) == "found"
    assert [record.message for record in caplog.records] == [
        "the cache could not be read",
        "the cache could not be written",
    ]
    assert cached("photos", key="bread", ttl=DAY, produce=service) == "found"
    assert cached("photos", key="bread", ttl=DAY, produce=service) == "found"
    assert service.asked == 2

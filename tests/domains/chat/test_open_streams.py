"""Limit on a visitor's open streams. It applies only behind the edge (CloudFront)."""

from dataclasses import replace

import pytest

from chalicelib.core.errors import RateLimitedError
from chalicelib.domains.chat.store import open_streams
from tests.conftest import Time, run_concurrently

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database", "unscaled_limits")]


@pytest.fixture
def unscaled_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(open_streams.settings(), rate_limit_scale=1)
    monkeypatch.setattr(open_streams, "settings", lambda: config)


def test_at_most_ten_streams_are_open_and_an_ended_one_makes_room() -> None:
    for number in range(10):
        open_streams.begin("v", request_id=f"{number}")
    with pytest.raises(RateLimitedError):
        open_streams.begin("v", request_id="more")
    open_streams.begin("other", request_id="more")
    open_streams.end("v", request_id="3")
    open_streams.end("v", request_id="3")
    open_streams.begin("v", request_id="more")
    with pytest.raises(RateLimitedError):
        open_streams.begin("v", request_id="and more")


def test_streams_that_never_end_expire(time: Time) -> None:
    for number in range(10):
        open_streams.begin("v", request_id=f"{number}")
    time.pass_by(minutes=6, seconds=1)
    open_streams.begin("v", request_id="more")


def test_of_many_concurrent_streams_ten_are_admitted() -> None:
    def begin(number: int) -> bool:
        try:
            open_streams.begin("v", request_id=f"{number}")
        except RateLimitedError:
            return False
        return True

    assert sum(run_concurrently(14, begin)) == 10

"""Token buckets: a steady rate, a burst, and headers that say what is left."""

import pytest

from chalicelib.core.errors import RateLimitedError
from chalicelib.core.ratelimit import TokenBuckets
from chalicelib.transports import auth
from tests.conftest import Api, Owner, at_once


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


def test_a_burst_is_let_through_and_the_next_is_told_when_to_come(ticks: Ticks) -> None:
    buckets = TokenBuckets(2, 4, clock=ticks)
    assert [buckets.take("k").remaining for _ in range(4)] == [3, 2, 1, 0]
    with pytest.raises(RateLimitedError) as refused:
        buckets.take("k")
    assert refused.value.headers["Retry-After"] == "1"
    ticks.now += 0.5
    assert buckets.take("k").remaining == 0


def test_buckets_refill_to_the_burst_and_no_further(ticks: Ticks) -> None:
    buckets = TokenBuckets(2, 4, clock=ticks)
    buckets.take("k")
    ticks.now += 3600
    assert buckets.take("k").remaining == 3


def test_one_key_does_not_drain_another(ticks: Ticks) -> None:
    buckets = TokenBuckets(1, 1, clock=ticks)
    buckets.take("a")
    assert buckets.take("b").remaining == 0


def test_the_least_recently_used_names_are_forgotten(ticks: Ticks) -> None:
    buckets = TokenBuckets(1, 1, clock=ticks, names=2)
    for name in ("a", "b", "c", "a"):
        buckets.take(name)
    with pytest.raises(RateLimitedError):
        buckets.take("c")


def test_threads_never_get_more_than_the_burst(ticks: Ticks) -> None:
    buckets = TokenBuckets(1, 10, clock=ticks)

    def take(_: int) -> bool:
        try:
            buckets.take("k")
        except RateLimitedError:
            return False
        return True

    assert sum(at_once(32, take)) == 10


def test_the_api_answers_429_in_the_envelope_and_tells_what_is_left(
    owner: Owner, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = TokenBuckets(1, 2, clock=ticks)
    monkeypatch.setattr(auth, "key_limits", lambda: buckets)
    api = Api(owner.token())
    left = [api.call("GET", "/api/projects/list").headers for _ in range(2)]
    assert [h["RateLimit-Remaining"] for h in left] == ["1", "0"]
    assert {h["RateLimit-Limit"] for h in left} == {"2"}
    refused = api.refused("GET", "/api/projects/list")
    assert (refused.status, refused.data["code"]) == (429, "rate_limited")
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["RateLimit-Remaining"] == "0"

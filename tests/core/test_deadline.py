"""Deadlines: a call to an external service never takes longer than the request that makes it."""

import pytest

from chalicelib.core import deadline
from chalicelib.core.deadline import Deadline
from chalicelib.gateways import fetch
from chalicelib.gateways.json_api import JsonApiError, get_json


def test_a_deadline_ends_after_its_own_seconds_or_with_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
    alone = Deadline(15)
    with deadline.within(24):
        early = Deadline(15)
        now[0] += 20
        late = Deadline(15)
    assert (alone.left(), early.passed, late.left(), late.left(1.5)) == (0, True, 4, 1.5)


def test_no_external_call_starts_after_the_request_has_ended() -> None:
    with deadline.within(0):
        with pytest.raises(fetch.UpstreamError):
            fetch.fetch("https://example.com/a.png")
        with pytest.raises(JsonApiError, match="was not asked because the time was up"):
            get_json("a service", "https://example.com", {}, deadline=Deadline(3))

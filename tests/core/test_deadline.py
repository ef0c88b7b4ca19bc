"""A call to an external service never takes longer than the request that makes the call."""

from threading import Event

import pytest

from chalicelib.core import deadline
from chalicelib.core.deadline import Deadline
from chalicelib.gateways import fetch
from chalicelib.gateways.json_api import JsonApiError, get_json
from chalicelib.gateways.public_http import UpstreamError
from tests.support.patience import PATIENCE


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
    assert (alone.seconds_left(), early.passed) == (0, True)
    assert (late.seconds_left(), late.seconds_left(1.5)) == (4, 1.5)


def test_no_external_call_starts_after_the_request_has_ended() -> None:
    with deadline.within(0):
        with pytest.raises(UpstreamError):
            fetch.fetch("https://example.com/a.png")
        with pytest.raises(
            JsonApiError, match="was not called, because the time limit was reached"
        ):
            get_json("a service", url="https://example.com", query={}, deadline=Deadline(3))


def test_calls_side_by_side_run_at_the_same_time_under_the_deadline_of_the_request() -> None:
    begun = Event()
    with deadline.within(0), deadline.side_by_side() as start:
        waits = start(lambda: begun.wait(PATIENCE) and deadline.passed())
        begins = start(begun.set)
        assert (waits.result(), begins.result()) == (True, None)


def test_errors_of_calls_side_by_side_are_raised_in_the_order_in_which_results_are_read() -> None:
    failed, finished = Event(), Event()

    def fail_late() -> None:
        failed.wait(PATIENCE)
        raise ValueError("late")

    def fail_early() -> None:
        failed.set()
        raise KeyError("early")

    def succeed() -> None:
        failed.wait(PATIENCE)
        finished.set()

    def run() -> None:
        with deadline.side_by_side() as start:
            late, early, _ = start(fail_late), start(fail_early), start(succeed)
            late.result()
            early.result()

    with pytest.raises(ValueError, match="late"):
        run()
    assert finished.is_set()

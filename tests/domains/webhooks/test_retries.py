"""Pauses between attempts, and when a webhook is switched off."""

from datetime import UTC, datetime, timedelta

import pytest

from chalicelib.domains.webhooks.rules.retries import (
    PAUSES,
    is_to_be_switched_off,
    next_attempt,
)

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize("attempts", range(1, len(PAUSES) + 1))
def test_each_pause_is_up_to_a_fifth_longer_than_stated(attempts: int) -> None:
    stated, pauses = PAUSES[attempts - 1], set()
    for _ in range(50):
        at = next_attempt(attempts, NOW, None)
        assert at is not None
        assert NOW + stated <= at <= NOW + 1.2 * stated
        pauses.add(at)
    assert len(pauses) > 1


def test_nothing_follows_the_last_attempt() -> None:
    assert next_attempt(len(PAUSES) + 1, NOW, timedelta(hours=1)) is None


def test_receiver_may_only_lengthen_the_pause() -> None:
    assert next_attempt(1, NOW, timedelta(hours=1)) == NOW + timedelta(hours=1)
    at = next_attempt(2, NOW, timedelta(seconds=1))
    assert at is not None
    assert at >= NOW + PAUSES[1]


@pytest.mark.parametrize(
    ("failures", "hours", "switched_off"),
    [(10, 72, True), (9, 72, False), (10, 71.99, False), (11, 80, True), (10, None, False)],
)
def test_webhook_is_switched_off_after_ten_failures_over_three_days(
    failures: int, hours: float | None, *, switched_off: bool
) -> None:
    since = None if hours is None else NOW - timedelta(hours=hours)
    assert is_to_be_switched_off(failures, since, NOW) == switched_off

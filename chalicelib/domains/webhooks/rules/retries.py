"""When a delivery is sent again, and when a webhook is switched off."""

import random
from datetime import datetime, timedelta

# Pauses after failed attempts, as Standard Webhooks recommends. After the last attempt, a delivery
# has failed.
PAUSES = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
MAX_FAILURES = 10  # in a row, before a webhook is switched off after ``MAX_FAILING``
MAX_FAILING = timedelta(hours=72)  # in which every attempt fails; the webhook is then switched off
_JITTER = 0.2


def next_attempt(attempts: int, now: datetime, retry_after: timedelta | None) -> datetime | None:
    """Return when to send again, or None. ``retry_after`` is a receiver's wish, up to 24 hours."""
    if attempts > len(PAUSES):
        return None
    # A pause is up to a fifth longer than stated, so that deliveries that failed together are not
    # repeated together.
    pause = PAUSES[attempts - 1] * (1 + random.uniform(0, _JITTER))  # noqa: S311  no secret
    return now + max(pause, retry_after or timedelta(0))


def is_to_be_switched_off(failures: int, failing_since: datetime | None, now: datetime) -> bool:
    """Whether a webhook has failed too often for too long."""
    if failing_since is None or failures < MAX_FAILURES:
        return False
    return now - failing_since >= MAX_FAILING

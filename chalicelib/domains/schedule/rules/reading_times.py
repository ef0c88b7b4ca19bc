"""When a calendar is read again (ADR 135)."""

from datetime import timedelta

SOON = timedelta(minutes=15)  # for staff with open hours in the next ``NEAR``
SELDOM = timedelta(hours=1)
NEAR = timedelta(days=7)
LONGEST_PAUSE = timedelta(hours=4)  # between readings that fail


def pause(*, is_open_soon: bool, failures: int) -> timedelta:
    """Return the time until the next reading. It doubles with each failure in a row.

    >>> [pause(is_open_soon=True, failures=failures) // SOON for failures in range(7)]
    [1, 2, 4, 8, 16, 16, 16]
    """
    usual = SOON if is_open_soon else SELDOM
    return min(LONGEST_PAUSE, usual * 2.0 ** min(failures, 16))

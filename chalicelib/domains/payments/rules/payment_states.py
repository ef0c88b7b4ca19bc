"""When the service asks a provider for the state of a payment, and which states may follow."""

from datetime import datetime, timedelta
from typing import Literal

PaymentStatus = Literal["created", "pending", "succeeded", "expired", "failed"]
RefundStatus = Literal["requested", "sent", "done", "failed"]
# Why money is returned: the booking was cancelled, the payment came too late or twice, or the
# business returns it.
RefundReason = Literal["cancelled", "late", "twice", "business"]
FIRST_CHECKS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
HOURLY_FOR = timedelta(hours=25)
# Time after which a payment without a final state counts as expired. Both providers end a payment
# that nobody makes within a day. The owner may need longer to replace a secret that no longer
# works. A webhook is still accepted later.
CHECKED_FOR = timedelta(days=8)
# Time within which a balance is topped up after the page of the provider was opened.
TOP_UP_OPEN_FOR = timedelta(hours=1)
# Pause before a refund whose result is unknown is sent or read again, in its first hour.
REFUND_PAUSE = timedelta(minutes=5)


def next_check(created_at: datetime, *, now: datetime) -> datetime | None:
    """Return when to ask for the state of a payment next, or None if its time has ended.

    The checks follow 1, 5, 15 and 60 minutes after the creation, then hourly, and then daily.

    >>> from datetime import UTC
    >>> made = datetime(2027, 1, 18, 10, tzinfo=UTC)
    >>> next_check(made, now=made + timedelta(minutes=2)) - made
    datetime.timedelta(seconds=300)
    """
    age = now - created_at
    if age >= CHECKED_FOR:
        return None
    for check in FIRST_CHECKS:
        if age < check:
            return created_at + check
    step = timedelta(hours=1) if age < HOURLY_FOR else timedelta(days=1)
    return created_at + step * (age // step + 1)


def next_refund_check(first_sent_at: datetime, *, now: datetime) -> datetime:
    """Return when to send a refund again, or to read its state again."""
    is_recent = now - first_sent_at < timedelta(hours=1)
    return now + (REFUND_PAUSE if is_recent else timedelta(hours=1))


def may_follow(status: str, *, new_status: str) -> bool:
    """Whether a payment with a status may get a new one."""
    # Money may arrive late, so a payment that expired or failed may still succeed. Nothing follows
    # the success.
    if status in ("succeeded", new_status):
        return False
    return new_status == "succeeded" or status in {"created", "pending"}


def deposit(price: int, *, percent: int, step: int = 1) -> int:
    """Return the part of a price that is paid in advance, in minor units, rounded up.

    It is a multiple of ``step``, which the provider requires, and never more than the price.

    >>> deposit(999, percent=50), deposit(1000, percent=100), deposit(0, percent=50)
    (500, 1000, 0)
    >>> deposit(1505, percent=50, step=10), deposit(1505, percent=100, step=10)
    (760, 1500)
    """
    exact = -(-price * percent // 100)
    return min(-(-exact // step) * step, price // step * step)

"""The channels by which a client is told of a booking, and the order in which they are tried."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, get_args

Channel = Literal["telegram", "max", "sms", "mail"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
# What a workspace uses until its owner chooses. SMS cost money, so the owner turns them on.
DEFAULT_ORDER: tuple[Channel, ...] = ("telegram", "max", "mail")
# A message about money is a paper that the client keeps. It goes by mail first.
_MONEY = frozenset({"refund_started", "refunded", "refund_failed"})


class BusyChannelError(Exception):
    """A channel has certainly not sent a message, and takes it after ``retry_after`` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"try again in {retry_after} s")
        self.retry_after = retry_after


class Outcome(NamedTuple):
    """What a channel did with a message: it was sent, or it passes to the next channel."""

    state: Literal["sent", "passed"]
    # Why it was not sent. None if the channel does not lead to the client, so nothing is noted.
    reason: str | None = None

    @classmethod
    def sent(cls) -> Self:
        return cls("sent")

    @classmethod
    def passed(cls, reason: str | None = None) -> Self:
        return cls("passed", reason)


def order_of(kind: str, chosen: Sequence[str] | None) -> tuple[Channel, ...]:
    """Return the channels of a kind of message, the first to try first.

    ``chosen`` is what the workspace has chosen, or None. Unknown names are left out.

    >>> order_of("refunded", ["max", "mail"])
    ('mail', 'max')
    """
    used = DEFAULT_ORDER if chosen is None else chosen
    order: list[Channel] = [
        channel for name in dict.fromkeys(used) for channel in CHANNELS if channel == name
    ]
    if kind in _MONEY:
        order.sort(key=lambda channel: channel != "mail")
    return tuple(order)

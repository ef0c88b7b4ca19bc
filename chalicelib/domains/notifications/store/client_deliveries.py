"""What became of a message to a client on each channel, so that a repeated job sends it once.

The state is written before a channel is tried. Whoever finds the state of a try that has no outcome
cannot know whether the message was sent, so the channel is not tried again.
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, cast

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.domains.notifications.rules.client_channels import Channel
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.tables import ControlRow

# Longer than the earliest reminder, so that no message is forgotten while a job may repeat it.
KEPT_FOR = timedelta(days=35)
State = Literal["sending", "waiting", "sent", "passed"]


class ClientDeliveryRow(ControlRow):
    """A message on one channel. The row has no text and no address."""

    state = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)  # why it was passed on
    since = UTCDateTimeAttribute()  # of the state; of a waiting message, of its first try
    attempt = UnicodeAttribute()  # another value for each try


class Place(NamedTuple):
    """A message and a channel."""

    workspace_id: str
    message_id: str
    channel: Channel


class Delivery(NamedTuple):
    """The stored state of a message on a channel."""

    state: State
    reason: str | None
    since: datetime
    attempt: str


def read(workspace_id: str, *, message_id: str) -> dict[Channel, Delivery]:
    """Return the states of a message, by channel."""
    found = {}
    for row in ClientDeliveryRow.partition(_partition(workspace_id, message_id)):
        channel = cast("Channel", row.sk)
        state = cast("State", row.state)
        found[channel] = Delivery(state, row.reason, row.since, row.attempt)
    return found


def begin(place: Place, attempt: str, *, waiting: Delivery | None = None) -> bool:
    """Write that a channel is tried now. Return False if another run has begun meanwhile.

    ``waiting`` is the state that was read of a message that waits for the channel.
    """
    row = _row(place, attempt, state="sending")
    is_free = (
        ClientDeliveryRow.attempt == waiting.attempt
        if waiting is not None
        else ClientDeliveryRow.pk.does_not_exist()
    )
    try:
        # The second condition recognizes this write if it is sent again after a lost response.
        row.save(condition=is_free | (ClientDeliveryRow.attempt == attempt))
    except PutError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return False
    return True


def end(
    place: Place,
    attempt: str,
    *,
    state: State,
    reason: str | None = None,
    since: datetime | None = None,
) -> None:
    """Write the outcome of a try."""
    row = _row(place, attempt, state=state, reason=reason)
    row.since = since or row.since
    with reaching():
        row.save()


def _row(
    place: Place, attempt: str, *, state: State, reason: str | None = None
) -> ClientDeliveryRow:
    now = clock.now()
    return ClientDeliveryRow(
        _partition(place.workspace_id, place.message_id),
        place.channel,
        state=state,
        reason=reason,
        since=now,
        attempt=attempt,
        expires=now + KEPT_FOR,
    )


def _partition(workspace_id: str, message_id: str) -> str:
    return f"W#{workspace_id}#CLIENT-MESSAGE#{message_id}"

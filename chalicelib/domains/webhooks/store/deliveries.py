"""Store one delivery for each event and webhook, for 30 days.

A delivery that is not finished has the time of its next attempt as the key of an index, so that one
query finds what is due. A delivery has no body: each attempt reads the live record.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import PutError
from pynamodb.expressions.update import Action

from chalicelib.core import clock, deadline
from chalicelib.core.clock import iso
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import ContentRow

KEPT_FOR = timedelta(days=30)
_BETWEEN_IDS = "."
# States of a delivery. One that failed is not sent again, unless a member requests another attempt.
WAITING, DELIVERED, FAILED = "waiting", "delivered", "failed"


class DeliveryRow(ContentRow):
    """A delivery, whose sort key is the event's id. ``o1`` is when to send it next, if ever."""

    type = UnicodeAttribute()
    record_id = UnicodeAttribute()
    record_revision = NumberAttribute(null=True)
    previous_status = UnicodeAttribute(null=True)
    actor = UnicodeAttribute(null=True)
    occurred_at = UTCDateTimeAttribute()
    state = UnicodeAttribute()
    # The latest time that a member asked to send it again.
    asked_at = UTCDateTimeAttribute(null=True)
    attempts = NumberAttribute(default=0)
    attempted_at = UTCDateTimeAttribute(null=True)
    status = NumberAttribute(null=True)  # of the latest attempt, like the next three
    milliseconds = NumberAttribute(null=True)
    reply = UnicodeAttribute(null=True)  # the beginning of the response to an attempt that failed
    error = UnicodeAttribute(null=True)

    @property
    def event_id(self) -> str:
        """Id of the event, which is the same for each webhook and attempt."""
        return self.sk

    @property
    def id(self) -> str:
        """Id of the delivery in the API: the webhook's id and the event's."""
        return f"{self.pk.rpartition('#')[2]}{_BETWEEN_IDS}{self.sk}"

    @property
    def wanted_since(self) -> datetime:
        """The time since which it is to be sent."""
        since: datetime = self.asked_at or self.occurred_at
        return since

    @property
    def due_at(self) -> datetime | None:
        return datetime.fromisoformat(self.o1) if self.o1 else None


def row(workspace_id: str, *, webhook_id: str, event_id: str, **values: Any) -> DeliveryRow:  # noqa: ANN401  the row's attributes
    """Return a new delivery, which is due immediately."""
    return DeliveryRow(
        _partition(workspace_id, webhook_id=webhook_id),
        event_id,
        state=WAITING,
        o1=iso(clock.now()),
        expires=clock.now() + KEPT_FOR,
        **values,
    )


def add(delivery: DeliveryRow) -> None:
    """Write a new delivery, unless it exists."""
    try:
        delivery.save(condition=DeliveryRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)


def webhook_of(delivery_id: str) -> str:
    """Return the id of the webhook of a delivery.

    >>> webhook_of("01ARZ3NDEKTSV4RRFFQ69G5FAV.evt_01ARZ3NDEKTSV4RRFFQ69G5FAW")
    '01ARZ3NDEKTSV4RRFFQ69G5FAV'
    """
    return delivery_id.partition(_BETWEEN_IDS)[0]


def find(workspace_id: str, delivery_id: str) -> DeliveryRow | None:
    """Return a delivery, or None."""
    webhook_id, _, event_id = delivery_id.partition(_BETWEEN_IDS)
    return DeliveryRow.find(_partition(workspace_id, webhook_id=webhook_id), event_id)


def due(workspace_id: str, *, webhook_id: str, limit: int) -> list[DeliveryRow]:
    """Return due deliveries, the longest due first."""
    now = iso(clock.now())
    pk = _partition(workspace_id, webhook_id=webhook_id)
    with reaching():
        keys = [
            (pk, row.sk)
            # A stale read could return a delivery that was just sent.
            for row in DeliveryRow.by_o1.query(
                pk, ContentRow.o1 <= now, limit=limit, consistent_read=True
            )
        ]
    return fetch_of(DeliveryRow, keys)


def next_due(workspace_id: str, *, webhook_id: str) -> datetime | None:
    """Return when the next delivery is due, or None if none waits."""
    with reaching():
        for row in DeliveryRow.by_o1.query(
            _partition(workspace_id, webhook_id=webhook_id), limit=1, consistent_read=True
        ):
            return datetime.fromisoformat(row.o1)
    return None


def latest(workspace_id: str, *, webhook_id: str, limit: int) -> list[DeliveryRow]:
    """Return the latest deliveries, newest first."""
    with reaching():
        return list(
            DeliveryRow.query(
                _partition(workspace_id, webhook_id=webhook_id),
                scan_index_forward=False,
                limit=limit,
                consistent_read=True,
            )
        )


def note_attempt(
    delivery: DeliveryRow,
    number: int,
    next_attempt_at: datetime | None,
    *,
    is_ok: bool,
    **outcome: Any,  # noqa: ANN401  the row's attributes
) -> None:
    """Store what came of an attempt: its ``number``, and the time of the next one, if any."""
    state = DELIVERED if is_ok else WAITING if next_attempt_at else FAILED
    values = {"attempts": number, "attempted_at": clock.now(), "state": state, **outcome}
    actions = [_set(name, value) for name, value in values.items()]
    actions.append(
        DeliveryRow.o1.set(iso(next_attempt_at)) if next_attempt_at else DeliveryRow.o1.remove()
    )
    # It may have been given up, or may be wanted again, since it was read.
    update_if(delivery, actions, DeliveryRow.o1 == delivery.o1)


def forget_replies(
    workspace_id: str, *, webhook_id: str, record_ids: Collection[str] | None = None
) -> None:
    """Remove the replies to the events of some records, or to all events.

    Raises UnavailableError, also if the request's time is used up.
    """
    with reaching():
        # All deliveries of the webhook are read, because no index has their records.
        for row in DeliveryRow.query(
            _partition(workspace_id, webhook_id=webhook_id),
            filter_condition=DeliveryRow.reply.exists(),
            consistent_read=True,
        ):
            if deadline.passed():
                raise UnavailableError
            if record_ids is None or row.record_id in record_ids:
                update_if(row, [DeliveryRow.reply.remove()], DeliveryRow.pk.exists())


def stop(delivery: DeliveryRow) -> None:
    """Give up a delivery that waits."""
    actions: list[Action] = [DeliveryRow.state.set(FAILED), DeliveryRow.o1.remove()]
    # An attempt may have finished the delivery since it was read.
    update_if(delivery, actions, DeliveryRow.o1 == delivery.o1)


def to_send_again(delivery: DeliveryRow) -> tuple[DeliveryRow, list[Action]]:
    """Return the update that makes a delivery due now, with all earlier attempts."""
    return delivery, [
        DeliveryRow.state.set(WAITING),
        DeliveryRow.attempts.set(0),
        DeliveryRow.asked_at.set(clock.now()),
        DeliveryRow.o1.set(iso(clock.now())),
    ]


def _set(name: str, value: Any) -> Action:  # noqa: ANN401  an attribute's value
    attribute: Any = getattr(DeliveryRow, name)
    action: Action = attribute.remove() if value is None else attribute.set(value)
    return action


def _partition(workspace_id: str, *, webhook_id: str) -> str:
    return f"W#{workspace_id}#DELIVERY#{webhook_id}"

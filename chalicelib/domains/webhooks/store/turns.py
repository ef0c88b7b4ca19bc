"""Lock a webhook for one worker, and store the outcome of its attempts."""

from datetime import datetime, timedelta
from uuid import uuid4

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.tables import ControlRow

SORT_KEY = "-"
# Time after the latest turn. No delivery waits longer, so the state is not needed afterwards.
KEPT_FOR = timedelta(days=31)


class TurnRow(ControlRow):
    """The state of sending to a webhook."""

    # Random, for a worker to recognize its turn even after a lost response.
    turn = UnicodeAttribute(null=True)
    until = UTCDateTimeAttribute(null=True)
    # The webhook rests until then, after a failed turn.
    rest_until = UTCDateTimeAttribute(null=True)
    failures = NumberAttribute(default=0)  # since the latest success
    failing_since = UTCDateTimeAttribute(null=True)  # time of the first of these failures
    succeeded_at = UTCDateTimeAttribute(null=True)


Change = tuple[TurnRow, list[Action], Condition]  # the arguments of ``UnitOfWork.update``


def find(workspace_id: str, *, webhook_id: str) -> TurnRow:
    """Return the state of sending to a webhook."""
    pk = _place(workspace_id, webhook_id=webhook_id)
    return TurnRow.find(pk, SORT_KEY) or TurnRow(pk, SORT_KEY)


def take(workspace_id: str, *, webhook_id: str, length: timedelta) -> TurnRow | None:
    """Take the turn for a while. Returns None if another worker has it."""
    state = TurnRow(_place(workspace_id, webhook_id=webhook_id), SORT_KEY)
    turn, now = str(uuid4()), clock.now()
    # The last condition recognizes this worker if the update is sent again after a lost response.
    free = TurnRow.until.does_not_exist() | (TurnRow.until <= now) | (TurnRow.turn == turn)
    actions: list[Action] = [
        TurnRow.turn.set(turn),
        TurnRow.until.set(now + length),
        TurnRow.expires.set(now + KEPT_FOR),
    ]
    return state if update_if(state, actions, free) else None


def release(state: TurnRow, pause: timedelta) -> None:
    """End the turn, if this worker still has it. The next turn begins after a pause."""
    rests = TurnRow.rest_until
    rest_action = rests.set(clock.now() + pause) if pause else rests.remove()
    _change(state, [TurnRow.until.remove(), rest_action])


def note_success(state: TurnRow) -> None:
    """Record a success, which ends a series of failures."""
    _change(
        state,
        [
            TurnRow.failures.set(0),
            TurnRow.failing_since.remove(),
            TurnRow.succeeded_at.set(clock.now()),
        ],
    )


def end_rest(workspace_id: str, *, webhook_id: str, forget_failures: bool) -> Change:
    """Return the update that ends the rest of a webhook, because a member sends something now."""
    place = TurnRow(_place(workspace_id, webhook_id=webhook_id), SORT_KEY)
    always = TurnRow.pk.exists() | TurnRow.pk.does_not_exist()
    actions: list[Action] = [
        TurnRow.rest_until.remove(),
        TurnRow.expires.set(clock.now() + KEPT_FOR),
    ]
    # The member has switched the webhook on again.
    if forget_failures:
        actions += [TurnRow.failures.set(0), TurnRow.failing_since.remove()]
    return place, actions, always


def note_failures(state: TurnRow, count: int) -> None:
    """Record failed attempts."""
    since: datetime = state.failing_since or clock.now()
    _change(state, [TurnRow.failures.add(count), TurnRow.failing_since.set(since)])


def _change(state: TurnRow, actions: list[Action]) -> None:
    # A worker whose turn has ended must not overwrite the state of the next one.
    update_if(state, actions, TurnRow.turn == state.turn)


def _place(workspace_id: str, *, webhook_id: str) -> str:
    return f"W#{workspace_id}#WEBHOOK-TURN#{webhook_id}"

"""E-mails that were admitted, sent or withheld, and how many a workspace has withheld."""

from datetime import date, timedelta
from typing import Literal, NamedTuple, cast

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.engine.connection import raise_failure
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork

# Longer than the earliest reminder, so that no e-mail is forgotten while a job may repeat it.
KEPT_FOR = timedelta(days=35)
Reason = Literal[
    "by_address",
    "by_plan",
    "by_share",
    "by_bounce",
    "by_pause",
    "by_server",
    "unsupported",
    "too_late",
    "refused",
    "unproved",
]
State = Literal["admitted", "sent", "withheld"]
SORT_KEY = "mail"


class ClientMailRow(ControlRow):
    """State of an e-mail that was counted or withheld. The row contains no address."""

    state = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)


class WithheldRow(ControlRow):
    """The e-mails that were withheld in a workspace on a day, by reason. Days are in UTC."""

    by_address = NumberAttribute(default=0)
    by_plan = NumberAttribute(default=0)
    by_share = NumberAttribute(default=0)
    by_bounce = NumberAttribute(default=0)
    by_pause = NumberAttribute(default=0)
    unsupported = NumberAttribute(default=0)
    too_late = NumberAttribute(default=0)
    refused = NumberAttribute(default=0)


class Withheld(NamedTuple):
    """Numbers of e-mails that were withheld, by reason."""

    by_address: int = 0  # the limits of addresses
    by_plan: int = 0  # the limits of the plan
    by_share: int = 0  # a visitor's part of the plan
    by_bounce: int = 0  # of the address
    by_pause: int = 0  # of the workspace's e-mails
    unsupported: int = 0  # SES does not take the address.
    too_late: int = 0
    refused: int = 0  # by the mail server


class Known(NamedTuple):
    """Outcome of an e-mail."""

    state: State
    reason: Reason | None  # set if it was withheld


def find(tenant: str, *, mail_id: str) -> Known | None:
    """Return what became of an e-mail, or None for one that was not tried."""
    row = ClientMailRow.find(_place(tenant, mail_id=mail_id), SORT_KEY)
    return Known(cast("State", row.state), cast("Reason | None", row.reason)) if row else None


def stage_admission(unit: UnitOfWork, mail_id: str) -> None:
    """Stage that an e-mail is admitted, with the limits that it counts for."""
    unit.create(_row(unit.workspace_id, mail_id=mail_id, state="admitted"))


def stage_withheld(unit: UnitOfWork, mail_id: str, reason: Reason) -> None:
    """Stage that an e-mail is withheld for a reason, and count it."""
    unit.save(_row(unit.workspace_id, mail_id=mail_id, state="withheld", reason=reason))
    if reason not in Withheld._fields:
        return
    row = WithheldRow(_days(unit.workspace_id), clock.now().date().isoformat())
    count: NumberAttribute = getattr(WithheldRow, reason)
    actions: list[Action] = [count.add(1), WithheldRow.expires.set(clock.now() + KEPT_FOR)]
    unit.update(row, actions, WithheldRow.pk.exists() | WithheldRow.pk.does_not_exist())


def note_sent(workspace_id: str, *, mail_id: str) -> None:
    """Record that an e-mail was sent, so that a job that is repeated does not send it again."""
    row = ClientMailRow(_place(workspace_id, mail_id=mail_id), SORT_KEY)
    try:
        row.update([ClientMailRow.state.set("sent")])
    except UpdateError as error:
        raise_failure(error)


def withheld(workspace_id: str, day: date) -> Withheld:
    """Return how many e-mails were withheld on a day."""
    row = WithheldRow.find(_days(workspace_id), day.isoformat())
    if row is None:
        return Withheld()
    return Withheld(*(int(getattr(row, name)) for name in Withheld._fields))


def _row(
    workspace_id: str, *, mail_id: str, state: State, reason: Reason | None = None
) -> ClientMailRow:
    place, expires = _place(workspace_id, mail_id=mail_id), clock.now() + KEPT_FOR
    return ClientMailRow(place, SORT_KEY, state=state, reason=reason, expires=expires)


def _place(workspace_id: str, *, mail_id: str) -> str:
    return f"W#{workspace_id}#CLIENT-MAIL#{mail_id}"


def _days(workspace_id: str) -> str:
    return f"W#{workspace_id}#WITHHELD-MAILS"

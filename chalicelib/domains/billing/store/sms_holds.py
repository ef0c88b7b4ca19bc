"""Money that an SMS holds until it is known whether, and how long, it was sent.

A hold is a row of its own beside those of bots: it has a price by segment, and no budget.
"""

from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Self

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.jobs import JobKind, Queue
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.billing.store.ledger import HoldClosedError, HoldTakenError, WalletRow
from chalicelib.engine import jobs
from chalicelib.engine.tables import ControlRow, DateAttribute, LedgerRow
from chalicelib.engine.unit import UnitOfWork

# Closes a hold whose SMS may have been sent: the response of the provider was lost, or the process
# has ended.
SETTLE_SMS = JobKind("settle-sms", Queue.EVENTS)


class SmsHoldRow(LedgerRow):
    """A hold, with all that closing it needs. It has neither the number nor the text."""

    state = UnicodeAttribute()  # as of the hold of a bot's request
    workspace_id = UnicodeAttribute()
    country = UnicodeAttribute()
    price = NumberAttribute()  # kopecks a segment, when the SMS was sent
    segments = NumberAttribute()
    amount = NumberAttribute()
    day = DateAttribute()
    due_at = UTCDateTimeAttribute()
    closed_at = UTCDateTimeAttribute(null=True)
    charged_segments = NumberAttribute(null=True)
    cost = NumberAttribute(null=True)


class SmsHold(NamedTuple):
    """A reservation for one SMS."""

    request_id: str  # another one for each attempt to send a message
    account_id: str  # of the workspace's owner
    workspace_id: str
    country: str
    price: int  # kopecks a segment
    segments: int
    day: date  # of the workspace, which counts what was spent
    due_at: datetime  # when a job closes it, if nothing else has

    @property
    def amount(self) -> int:
        return self.price * self.segments

    @property
    def job(self) -> jobs.JobRow:
        """Reference to the job that closes the hold."""
        return jobs.ref(SETTLE_SMS, self.due_at, self.request_id)


def find(account_id: str, *, request_id: str) -> SmsHoldRow | None:
    """Return the row of a hold, or None."""
    return SmsHoldRow.find(_partition(account_id), request_id)


def read_all(account_id: str) -> list[SmsHoldRow]:
    """Return all holds of an account, open and closed."""
    return SmsHoldRow.partition(_partition(account_id))


def hold_of(row: SmsHoldRow) -> SmsHold:
    """Return the hold as it was reserved, from its row."""
    return SmsHold(
        request_id=row.sk,
        account_id=row.pk.split("#")[1],
        workspace_id=row.workspace_id,
        country=row.country,
        price=int(row.price),
        segments=int(row.segments),
        day=row.day,
        due_at=row.due_at,
    )


def stage_open(unit: UnitOfWork, wallet: WalletRow, hold: SmsHold, payload: dict[str, Any]) -> None:
    """Stage a hold with its ledger entry, and the job that closes it, with its payload."""
    row = SmsHoldRow(
        _partition(hold.account_id),
        hold.request_id,
        state=ledger.OPEN,
        workspace_id=hold.workspace_id,
        country=hold.country,
        price=hold.price,
        segments=hold.segments,
        amount=hold.amount,
        day=hold.day,
        due_at=hold.due_at,
    )
    unit.create(row, on_conflict=HoldTakenError())
    ledger.post(
        unit, wallet, ledger.RESERVE, amount=0, held_change=hold.amount, request_id=hold.request_id
    )
    named = {"accountId": hold.account_id, "requestId": hold.request_id}
    job = jobs.row(
        SETTLE_SMS, hold.workspace_id, payload | named, hold.due_at, job_id=hold.request_id
    )
    unit.create(job)


def stage_close(unit: UnitOfWork, wallet: WalletRow, hold: SmsHold, charged: int | None) -> int:
    """Stage closing a hold with the charged segments, or None if nothing was sent.

    Returns the cost. An excess over the held segments is not charged. Raises ConcurrentUpdateError
    if the wallet's reserved money is less than the hold.
    """
    # The hold may have been closed since the wallet was read, and the retry finds that.
    if wallet.reserved < hold.amount:
        raise ConcurrentUpdateError
    segments = min(charged or 0, hold.segments)
    cost = segments * hold.price
    changes: list[Action] = [
        SmsHoldRow.state.set(ledger.RELEASED if charged is None else ledger.SETTLED),
        SmsHoldRow.closed_at.set(clock.now()),
        SmsHoldRow.charged_segments.set(segments),
        SmsHoldRow.cost.set(cost),
    ]
    row = SmsHoldRow(_partition(hold.account_id), hold.request_id)
    # The condition on the state lets exactly one of several settlements commit.
    unit.update(row, changes, SmsHoldRow.state == ledger.OPEN, on_conflict=HoldClosedError())
    kind = ledger.RELEASE if charged is None else ledger.SMS
    details = {} if charged is None else {"segments": segments}
    ledger.post(
        unit,
        wallet,
        kind,
        amount=-cost,
        held_change=-hold.amount,
        request_id=hold.request_id,
        **details,
    )
    # The job is deleted with the settlement, so a closed hold has no job.
    unit.delete(hold.job)
    return cost


class LowBalanceNoticeRow(ControlRow):
    """The mark of a day on which an owner was told that the balance is too low for SMS."""

    @classmethod
    def of(cls, account_id: str) -> Self:
        """Return the mark of today, to find or create it."""
        now = clock.now()
        day = now.date().isoformat()
        return cls(f"A#{account_id}#SMS-NOTICE", day, expires=now + timedelta(days=2))


def _partition(account_id: str) -> str:
    return f"A#{account_id}#SMS"

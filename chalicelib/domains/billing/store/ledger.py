"""Store wallets of accounts, holds on their money, and a ledger entry for every change.

Every ledger transaction reads the account's wallet, requires its ``seq`` unchanged, and writes the
entry ``seq + 1``. DynamoDB returns no values from a transaction, so only this condition makes an
entry's balance correct (ADR 23). Amounts are integers, in kopecks. Ledger entries are never
deleted.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, Self

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.jobs import JobKind
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.rules.spending_windows import WindowKeys
from chalicelib.engine import jobs
from chalicelib.engine.reading import Key
from chalicelib.engine.tables import LedgerRow
from chalicelib.engine.unit import UnitOfWork

SORT_KEY = "-"
OPEN, SETTLED, RELEASED = "open", "settled", "released"
TOPUP, ADJUST, RESERVE, RELEASE = "topup", "adjust", "reserve", "release"
SETTLE, EMPTY, SMS = "settle", "empty", "sms"
# The kinds of entries. ``empty`` is the charge for a request that the model did not answer, and
# ``sms`` the charge for an SMS.
# ``topup_returned`` follows a top-up that was refunded or disputed at the provider. It alone may
# make ``available`` negative.
TOPUP_RETURNED = "topup_returned"
SETTLE_HOLD = JobKind("settle-hold")  # closes a hold after a crash


class HoldTakenError(Exception):
    """The request has a hold already. Internal: the caller of ``reserve`` reads that hold."""

    precedence = 0  # over other conflicts of the same transaction


class HoldClosedError(Exception):
    """The hold has been settled or released already. Internal, like ``HoldTakenError``."""

    precedence = 0


class WalletRow(LedgerRow):
    """Money of an account in kopecks: ``available``, and ``reserved`` by open holds."""

    available = NumberAttribute(default=0)
    reserved = NumberAttribute(default=0)
    seq = NumberAttribute(default=0)  # entries so far; the row is created with the first one

    @property
    def account_id(self) -> str:
        return self.pk.partition("#")[2]


class LedgerEntryRow(LedgerRow):
    """A change of a wallet. A settlement also has the model and its tokens."""

    kind = UnicodeAttribute()
    amount = NumberAttribute()  # change of available and reserved money together
    held = NumberAttribute()  # change of reserved money
    balance_after = NumberAttribute()  # available money
    at = UTCDateTimeAttribute()
    request_id = UnicodeAttribute(null=True)
    agent_id = UnicodeAttribute(null=True)
    reason = UnicodeAttribute(null=True)
    model = UnicodeAttribute(null=True)
    input_tokens = NumberAttribute(null=True)
    output_tokens = NumberAttribute(null=True)
    segments = NumberAttribute(null=True)  # of an SMS

    @property
    def seq(self) -> int:
        return int(self.sk)


class HoldRow(LedgerRow):
    """Money that a request has reserved, with all that closing it needs, even if prices change."""

    state = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    agent_id = UnicodeAttribute()
    model = UnicodeAttribute()
    message_id = UnicodeAttribute()
    input_price = NumberAttribute()
    output_price = NumberAttribute()
    input_tokens = NumberAttribute()
    granted = NumberAttribute()
    amount = NumberAttribute()
    daily_key = UnicodeAttribute()
    weekly_key = UnicodeAttribute()
    monthly_key = UnicodeAttribute()
    due_at = UTCDateTimeAttribute()
    closed_at = UTCDateTimeAttribute(null=True)
    cost = NumberAttribute(null=True)
    used_input = NumberAttribute(null=True)
    used_output = NumberAttribute(null=True)
    spenders: ListAttribute[str] = ListAttribute(null=True)


class CreditKeyRow(LedgerRow):
    """The idempotency key of a credit or an adjustment, and its result. It is never deleted."""

    fingerprint = UnicodeAttribute()
    balance = NumberAttribute()


class Hold(NamedTuple):
    """A reservation for a request: how many tokens and how much money it may use."""

    request_id: str
    account_id: str
    workspace_id: str
    agent_id: str
    model: str
    message_id: str  # of the message that has the answer's text
    prices: Prices
    input_tokens: int
    granted: int  # output tokens
    amount: int  # kopecks; 0 for a free model, which has no hold row
    windows: WindowKeys
    due_at: datetime
    # The visitor and network whose shares of the bot's limits it counts for.
    spenders: tuple[str, ...] = ()

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Self:
        return cls(
            **{
                **payload,
                "prices": Prices(*payload["prices"]),
                "windows": WindowKeys(*payload["windows"]),
                "due_at": datetime.fromisoformat(payload["due_at"]),
            }
        )

    @property
    def payload(self) -> dict[str, Any]:
        values = {**self._asdict(), "due_at": self.due_at.isoformat()}  # of a free model
        del values["spenders"]  # A free answer spends nothing of a share.
        return values

    @property
    def free(self) -> bool:
        """Whether the model is free, so that nothing is reserved or charged."""
        return self.prices.free

    @property
    def job(self) -> jobs.JobRow:
        """Reference to the job that closes the hold after a crash."""
        return jobs.ref(SETTLE_HOLD, self.due_at, self.request_id)


def wallet_key(account_id: str) -> Key:
    """Return the key of an account's wallet, for ``fetch`` together with a budget."""
    return Key(WalletRow, f"A#{account_id}", SORT_KEY)


def wallet(account_id: str) -> WalletRow:
    """Return an account's wallet, or an empty one if none is stored."""
    key = wallet_key(account_id)
    return WalletRow.find(key.pk, key.sk) or WalletRow(key.pk, key.sk)


def post(
    unit: UnitOfWork,
    wallet: WalletRow,
    kind: str,
    *,
    amount: int,
    held_change: int = 0,
    **details: Any,  # noqa: ANN401  the entry's other attributes
) -> int:
    """Stage a change of a wallet with its entry, and return the available money afterwards.

    Raises ValueError if the entry would take more than there is. The caller must rule this out.
    """
    # Only the condition on ``seq`` makes this balance right: it fails after any other change.
    seq, available = wallet.seq + 1, wallet.available + amount - held_change
    reserved = wallet.reserved + held_change
    # After a returned top-up the balance may be negative, and may rise, but nothing is spent.
    is_overdrawn = available < min(0, wallet.available) and kind != TOPUP_RETURNED
    if is_overdrawn or reserved < 0:
        balance = f"{wallet.available} and {wallet.reserved}"
        msg = f"an entry {kind} of {amount} and {held_change} on {balance}"
        raise ValueError(msg)
    if wallet.seq:
        changes: list[Action] = [
            WalletRow.available.set(available),
            WalletRow.reserved.set(reserved),
            WalletRow.seq.set(seq),
        ]
        unit.update(wallet, changes, WalletRow.seq == wallet.seq)
    else:
        unit.create(
            WalletRow(wallet.pk, wallet.sk, available=available, reserved=reserved, seq=seq)
        )
    # Fifteen digits sort like numbers, so the newest entries are read from the end.
    entry = LedgerEntryRow(_entries(wallet.account_id), f"{seq:015}")
    entry.kind, entry.amount, entry.held = kind, amount, held_change
    entry.balance_after, entry.at = available, clock.now()
    for name, value in details.items():
        setattr(entry, name, value)
    unit.create(entry)
    return int(available)


def entries(
    account_id: str, limit: int | None = None, *, before_number: int | None = None
) -> list[LedgerEntryRow]:
    """Return an account's entries below a number, newest first, at most ``limit``."""
    options: dict[str, Any] = {} if limit is None else {"limit": limit}
    if before_number is not None:
        options["range_key_condition"] = LedgerEntryRow.sk < f"{before_number:015}"
    return LedgerEntryRow.partition(_entries(account_id), scan_index_forward=False, **options)


def _entries(account_id: str) -> str:
    return f"A#{account_id}#ENTRY"


def _holds(account_id: str) -> str:
    return f"A#{account_id}#HOLD"


def hold_key(account_id: str, *, request_id: str) -> Key:
    """Return the key of a request's hold, for ``fetch`` together with the wallet."""
    return Key(HoldRow, _holds(account_id), request_id)


def find_hold(account_id: str, *, request_id: str) -> HoldRow | None:
    """Return the row of a request's hold, or None."""
    return HoldRow.find(_holds(account_id), request_id)


def holds(account_id: str) -> list[HoldRow]:
    """Return all holds of an account, open and closed."""
    return HoldRow.partition(_holds(account_id))


def hold_of(row: HoldRow) -> Hold:
    """Return the hold as it was reserved, from its row."""
    return Hold(
        request_id=row.sk,
        account_id=row.pk.split("#")[1],
        workspace_id=row.workspace_id,
        agent_id=row.agent_id,
        model=row.model,
        message_id=row.message_id,
        prices=Prices(int(row.input_price), int(row.output_price)),
        input_tokens=int(row.input_tokens),
        granted=int(row.granted),
        amount=int(row.amount),
        windows=WindowKeys(row.daily_key, row.weekly_key, row.monthly_key),
        due_at=row.due_at,
        spenders=tuple(row.spenders or ()),
    )


def open_hold(unit: UnitOfWork, wallet: WalletRow, hold: Hold) -> None:
    """Stage a hold with its ledger entry, and the job that closes the hold after a crash."""
    row = HoldRow(
        _holds(hold.account_id),
        hold.request_id,
        state=OPEN,
        workspace_id=hold.workspace_id,
        agent_id=hold.agent_id,
        model=hold.model,
        message_id=hold.message_id,
        input_price=hold.prices.input,
        output_price=hold.prices.output,
        input_tokens=hold.input_tokens,
        granted=hold.granted,
        amount=hold.amount,
        daily_key=hold.windows.daily,
        weekly_key=hold.windows.weekly,
        monthly_key=hold.windows.monthly,
        due_at=hold.due_at,
        spenders=list(hold.spenders) or None,
    )
    unit.create(row, on_conflict=HoldTakenError())
    names = {"request_id": hold.request_id, "agent_id": hold.agent_id}
    post(unit, wallet, RESERVE, amount=0, held_change=hold.amount, **names)
    payload = {"account_id": hold.account_id, "request_id": hold.request_id}
    unit.create(_job(hold, payload))


def close_hold(  # noqa: PLR0913  the fields of an entry
    unit: UnitOfWork,
    wallet: WalletRow,
    hold: Hold,
    cost: int,
    used: TokenUsage | None,
    *,
    kind: str,
) -> None:
    """Stage closing a hold, or releasing it without usage, with its entry and its job's end.

    Raises ConcurrentUpdateError if the wallet's reserved money is less than the hold.
    """
    # The hold may have been closed since the wallet was read, and the retry finds that.
    if wallet.reserved < hold.amount:
        raise ConcurrentUpdateError
    row = HoldRow(_holds(hold.account_id), hold.request_id)
    changes: list[Action] = [
        HoldRow.state.set(RELEASED if used is None else SETTLED),
        HoldRow.closed_at.set(clock.now()),
        HoldRow.cost.set(cost),
    ]
    details: dict[str, Any] = {"request_id": hold.request_id, "agent_id": hold.agent_id}
    if used is not None:
        changes += [
            HoldRow.used_input.set(used.input_tokens),
            HoldRow.used_output.set(used.output_tokens),
        ]
        details |= {"model": hold.model} | used._asdict()
    # The condition on the state lets exactly one of several settlements commit.
    unit.update(row, changes, HoldRow.state == OPEN, on_conflict=HoldClosedError())
    post(unit, wallet, kind, amount=-cost, held_change=-hold.amount, **details)
    # The job is deleted with the settlement, so a closed hold has no job.
    unit.delete(hold.job)


def open_free(unit: UnitOfWork, hold: Hold) -> None:
    """Stage the start of a free request, for which only a job is stored."""
    unit.create(_job(hold, {"free": hold.payload}), on_conflict=HoldTakenError())


def close_free(unit: UnitOfWork, hold: Hold) -> None:
    """Stage the deletion of a free request's job, which succeeds once."""
    unit.delete(hold.job, if_there=True, on_conflict=HoldClosedError())


def _job(hold: Hold, payload: dict[str, Any]) -> jobs.JobRow:
    due_at, job_id = hold.due_at, hold.request_id
    return jobs.row(SETTLE_HOLD, hold.workspace_id, payload, due_at, job_id=job_id)


def credit_key(kind: str, *, key: str) -> CreditKeyRow:
    """Return the row of an operator's idempotency key, to find or create it."""
    # Keys are unique across the whole platform. If a payment is credited to the wrong account by
    # mistake, repeating the call with another account does not credit it again.
    hashed = hashlib.sha256(key.encode()).hexdigest()
    return CreditKeyRow(f"KEY#{kind}#{hashed}", SORT_KEY)


def find_credit(row: CreditKeyRow) -> CreditKeyRow | None:
    """Return the stored row of an idempotency key, or None."""
    return CreditKeyRow.find(row.pk, row.sk)

"""Balances of accounts, and statements of what changed them.

The operator credits and adjusts balances. A session reads the balance of its own account. These
operations have neither a tool nor an API route.
"""

import hashlib
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError, to_json

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError, IdempotencyMismatchError, NotFoundError
from chalicelib.core.idempotency_keys import IdempotencyKey
from chalicelib.core.operations import MANAGED, OPERATOR, operation
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.core.wire.money import MAX_KOPECKS
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional, printable
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.billing.store.ledger import LedgerEntryRow, WalletRow
from chalicelib.domains.identity.store import accounts
from chalicelib.engine.listing.registry import listing_of
from chalicelib.lib.contact_fields import Email


def _not_zero(kopecks: int) -> int:
    if not kopecks:
        raise PydanticCustomError("zero", "expected an amount other than 0")
    return kopecks


Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=500),
    AfterValidator(printable),
]


EntryNumber = Annotated[int, Field(ge=1, le=10**15 - 1)]


class _Entry(Wire):
    account: Email = Field(description="E-mail address of the account.")
    reason: Reason = Field(description="Reason; stored with the entry.")
    idempotency_key: IdempotencyKey = Field(
        description="A repeated call with this key returns the first result and adds nothing."
    )


class Credit(_Entry):
    """Money to add to an account."""

    kopecks: Annotated[int, Field(ge=1, le=MAX_KOPECKS)] = Field(description="Amount in kopecks.")


class Adjustment(_Entry):
    """A correction of an account's balance."""

    kopecks: Annotated[int, Field(ge=-MAX_KOPECKS, le=MAX_KOPECKS), AfterValidator(_not_zero)] = (
        Field(description="Amount in kopecks; negative to subtract.")
    )


class CreditResult(Wire):
    """Balance after a credit or an adjustment."""

    account_id: Id = Field(description="Account id.")
    balance: int = Field(description="Kopecks available afterwards.")


class BalanceQuery(Wire):
    """Account whose balance to read."""

    account: Email | None = optional(
        "E-mail address of the account; the session's account if omitted."
    )


class Balance(Wire):
    """Available and reserved money of an account."""

    account_id: Id = Field(description="Account id.")
    available: int = Field(description="Kopecks available for spending.")
    reserved: int = Field(description="Kopecks held for answers and SMS in progress.")
    entries: int = Field(description="Number of ledger entries.")

    @classmethod
    def from_record(cls, wallet: WalletRow, **fields: Any) -> Self:  # noqa: ANN401  fields of any type
        return cls.from_row(
            wallet.attribute_values, account_id=wallet.account_id, entries=wallet.seq, **fields
        )


class LedgerQuery(BalanceQuery):
    """Entries to return."""

    limit: int = Field(
        default=100, ge=1, le=1000, description="Maximum number of entries, up to 1,000."
    )
    before: EntryNumber | None = optional("Only entries before this number.")


class EntryOut(Wire):
    """An entry of the ledger, in kopecks."""

    id: str = Field(description="Number of the entry, from 1.")
    kind: str = Field(
        description="topup, topup_returned, adjust, reserve, settle, empty, sms or release."
    )
    amount: int = Field(description="Change of available and reserved together.")
    held: int = Field(description="Change of reserved.")
    balance_after: int = Field(description="Available money after the entry.")
    request_id: str | None = Field(description="Request that it belongs to, or null.")
    agent_id: Id | None = Field(description="Bot that it belongs to, or null.")
    at: Timestamp = Field(description="When the entry was made.")

    @classmethod
    def from_record(cls, entry: LedgerEntryRow, **fields: Any) -> Self:  # noqa: ANN401  as above
        return cls.from_row(entry.attribute_values, id=str(entry.seq), **fields)


class StatementQuery(Wire):
    """Entries of the session's own account to return."""

    limit: int = Field(default=50, ge=1, le=100, description="Entries per page.")
    before: EntryNumber | None = optional("Value of next on the previous page, for older entries.")
    outcomes: bool = Field(
        default=False,
        description="Only what changed the balance for good: one entry for each answer, without"
        " the reservation before it. Entries of a page may be fewer than limit.",
    )


class StatementLine(EntryOut):
    """An entry of the ledger with its bot, reason and usage."""

    agent_name: str | None = Field(
        description="Name of the bot; null if it is not in this workspace."
    )
    reason: str | None = Field(description="Reason of a credit or an adjustment, or null.")
    model: str | None = Field(description="Model that answered, for a settlement, or null.")
    input_tokens: int | None = Field(description="Tokens sent to the model, or null.")
    output_tokens: int | None = Field(description="Tokens that the model generated, or null.")
    segments: int | None = Field(description="Segments of an SMS, or null.")


class Statement(Balance):
    """Balance of an account and a page of its ledger entries."""

    lines: list[StatementLine] = Field(description="Entries of the ledger, newest first.")
    next: int | None = Field(description="Value to send as before for older entries, or null.")


class LedgerResult(Wire):
    """Entries of the ledger."""

    entries: list[EntryOut] = Field(description="The last entries, newest first.")


def _account(args: Credit | Adjustment) -> str:
    return accounts.require_by_email(args.account).id


def _readable_account(ctx: Context, args: BalanceQuery) -> str:
    if isinstance(ctx.principal, SessionPrincipal):
        caller_account = ctx.principal.account_id
        if args.account is None or accounts.get(caller_account).email == args.account:
            return caller_account
        raise NotFoundError("A session can read only its own account.", key="account")
    if args.account is None:
        raise NotFoundError(
            "account: expected an e-mail address. Send the e-mail address of the account.",
            key="account",
        )
    return accounts.require_by_email(args.account).id


def _post(ctx: Context, kind: str, args: Credit | Adjustment) -> CreditResult:
    account_id = ctx.unit.tenant
    arguments = [account_id, args.kopecks, args.reason]
    # The key is stored as a row of the ledger.
    key = ledger.credit_key(kind, key=args.idempotency_key)
    key.fingerprint = hashlib.sha256(to_json(arguments)).hexdigest()
    if used := ledger.find_credit(key):
        if used.fingerprint != key.fingerprint:
            msg = (
                "This idempotency key was used with other arguments. Use a new key for a new call."
            )
            raise IdempotencyMismatchError(msg)
        return CreditResult(account_id=account_id, balance=int(used.balance))
    wallet = ledger.wallet(account_id)
    if wallet.available + args.kopecks < min(0, wallet.available):
        msg = (
            f"The account has {wallet.available} kopecks available. The balance cannot fall "
            "below 0. Debit a smaller amount."
        )
        raise ConflictError(msg, key="balance_too_low")
    balance = key.balance = ledger.post(
        ctx.unit, wallet, kind, amount=args.kopecks, reason=args.reason
    )
    ctx.unit.create(key)
    ctx.unit.mention(f"account:{account_id}")
    return CreditResult(account_id=account_id, balance=balance)


@operation(
    title="Credit an account",
    audience=OPERATOR,
    resolve=_account,
    idempotent=True,
    example={"account": "OWNER_EMAIL", "kopecks": 5, "reason": "Paid", "idempotencyKey": "bill-1"},
)
def credit(ctx: Context, args: Credit) -> CreditResult:
    """Add money to an account, once per idempotency key. The key never expires."""
    return _post(ctx, ledger.TOPUP, args)


@operation(
    title="Adjust a balance",
    audience=OPERATOR,
    resolve=_account,
    idempotent=True,
    example={"account": "OWNER_EMAIL", "kopecks": 5, "reason": "Gift", "idempotencyKey": "gift-1"},
)
def adjust(ctx: Context, args: Adjustment) -> CreditResult:
    """Correct the available money of an account, never below 0, once per idempotency key."""
    return _post(ctx, ledger.ADJUST, args)


@operation(
    title="Read a balance", audience=MANAGED, role=Role.OWNER, example={"account": "OWNER_EMAIL"}
)
def get_balance(ctx: Context, args: BalanceQuery) -> Balance:
    """Return the available and reserved money of an account."""
    return Balance.from_record(ledger.wallet(_readable_account(ctx, args)))


@operation(
    title="Read the ledger", audience=OPERATOR, example={"account": "OWNER_EMAIL", "limit": 5}
)
def list_ledger(ctx: Context, args: LedgerQuery) -> LedgerResult:
    """Return the last entries of an account's ledger, newest first."""
    rows = ledger.entries(_readable_account(ctx, args), args.limit, before_number=args.before)
    return LedgerResult(entries=[EntryOut.from_record(row) for row in rows])


@operation(title="Read one's own statement", role=Role.OWNER, example={"limit": 5})
def get_statement(ctx: Context, args: StatementQuery) -> Statement:
    """Return the balance of the session's account and its ledger entries, newest first."""
    account_id = ctx.principal.account_id
    rows, last = _statement_rows(account_id, args)
    bots = {row.agent_id for row in rows if row.agent_id}
    names = {bot.id: bot.name for bot in listing_of("AGENT").fetch(ctx.workspace_id, bots)}
    return Statement.from_record(
        ledger.wallet(account_id),
        lines=[StatementLine.from_record(row, agent_name=names.get(row.agent_id)) for row in rows],
        next=last if last > 1 else None,  # Entry numbers start at 1 and have no gaps.
    )


def _statement_rows(account_id: str, args: StatementQuery) -> tuple[list[LedgerEntryRow], int]:
    if not args.outcomes:
        rows = ledger.entries(account_id, args.limit, before_number=args.before)
        return rows, rows[-1].seq if rows else 0
    # An answer has two entries, so a page of outcomes reads twice as many.
    read = ledger.entries(account_id, 2 * args.limit, before_number=args.before)
    rows = [row for row in read if row.kind != ledger.RESERVE][: args.limit]
    if len(rows) == args.limit:
        return rows, rows[-1].seq
    return rows, read[-1].seq if read else 0

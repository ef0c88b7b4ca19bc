"""Charge an SMS exactly once: hold its price before it is sent, then settle or release it."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from chalicelib.core.errors import AppError
from chalicelib.domains.billing.flows.wallet_transactions import SECONDS, Payer, carry_out
from chalicelib.domains.billing.rules import spending_windows
from chalicelib.domains.billing.rules.spending_windows import InsufficientBalanceError
from chalicelib.domains.billing.store import ledger, sms_holds, spent
from chalicelib.domains.billing.store.ledger import HoldClosedError
from chalicelib.domains.billing.store.sms_holds import LowBalanceNoticeRow, SmsHold
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork, run_unit

__all__ = ["SmsHold", "find_open", "release", "reserve", "settle", "tell_low_balance"]

log = logging.getLogger(__name__)

# Stages other writes of a step in the same transaction. It may run several times.
Stage = Callable[[UnitOfWork], object]


class SmsCost(NamedTuple):
    """What an SMS has cost: nothing if it was released."""

    kopecks: int
    # This call wrote nothing, because the hold was closed before.
    adopted: bool = False


def reserve(hold: SmsHold, payload: dict[str, Any], stage: Stage) -> None:
    """Hold the price of an SMS, and make the job that closes the hold, with a payload.

    ``hold.request_id`` is new and unique. If ``stage`` raises, or one of its writes conflicts,
    that error is raised here and nothing is held.

    Raises:
        InsufficientBalanceError: the owner's balance is too low.
        UnavailableError: the wallet was too busy, or the database failed. After an
            ``OutcomeUnknownError`` the money may be held until the job releases it.
    """

    def staged(unit: UnitOfWork) -> bool:
        wallet = ledger.wallet(hold.account_id)
        if wallet.available < hold.amount:
            raise InsufficientBalanceError("The balance is too low for an SMS.")
        sms_holds.stage_open(unit, wallet, hold, payload)
        stage(unit)
        return True

    def find() -> bool | None:
        return sms_holds.find(hold.account_id, request_id=hold.request_id) is not None or None

    carry_out(_payer(hold), staged, find, SECONDS)


def settle(hold: SmsHold, segments: int, stage: Stage) -> SmsCost:
    """Charge an SMS for its segments, at most the held ones, and return the rest.

    The writes of ``stage`` commit in the same transaction, and therefore once. A second call adopts
    the first call's outcome and writes nothing. Raises UnavailableError if the hold was not closed.
    The job will close it.
    """
    return _close(hold, segments, stage)


def release(hold: SmsHold) -> SmsCost:
    """Return the held money of an SMS that was not sent. Raises as ``settle`` does."""
    return _close(hold, None, lambda _: None)


def _close(hold: SmsHold, segments: int | None, stage: Stage) -> SmsCost:
    def staged(unit: UnitOfWork) -> SmsCost:
        if find_open(hold.account_id, request_id=hold.request_id) is None:
            raise HoldClosedError
        wallet = ledger.wallet(hold.account_id)
        total = int(wallet.available + wallet.reserved)
        cost = sms_holds.stage_close(unit, wallet, hold, segments)
        if spending_windows.becomes_low(total, balance_after=total - cost):
            unit.outbox.emit(Event("balance.low", hold.account_id))
        if segments is not None:
            charged = min(segments, hold.segments)
            spent.count_sms(unit, hold.workspace_id, hold.day, kopecks=cost, segments=charged)
        stage(unit)
        return SmsCost(cost)

    def find() -> SmsCost | None:
        row = sms_holds.find(hold.account_id, request_id=hold.request_id)
        if row is None or row.state == ledger.OPEN:
            return None
        return SmsCost(int(row.cost), adopted=True)

    return carry_out(_payer(hold), staged, find, SECONDS)


def find_open(account_id: str, *, request_id: str) -> SmsHold | None:
    """Return a hold, or None if it has been closed."""
    row = sms_holds.find(account_id, request_id=request_id)
    return sms_holds.hold_of(row) if row and row.state == ledger.OPEN else None


def tell_low_balance(workspace_id: str, *, account_id: str) -> None:
    """Emit ``balance.low`` for an owner whose balance did not suffice, once a day."""

    def stage(unit: UnitOfWork) -> None:
        mark = LowBalanceNoticeRow.of(account_id)
        if LowBalanceNoticeRow.find(mark.pk, mark.sk) is None:
            unit.create(mark)
            unit.outbox.emit(Event("balance.low", account_id))

    try:
        run_unit(workspace_id, None, stage)
    except AppError:
        # The next SMS for which the balance is too low emits the event.
        log.warning("a low balance was not told", exc_info=True)


def _payer(hold: SmsHold) -> Payer:
    return Payer(hold.workspace_id, hold.account_id)

"""Read the funds of a bot, which are its owner's wallet and its own budget."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.domains.billing.rules import pricing, spending_windows
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.billing.rules.spending_windows import (
    WINDOWS,
    DailyLimitError,
    InsufficientBalanceError,
    MonthlyLimitError,
    SpendingError,
    VisitorShareError,
    WeeklyLimitError,
    Window,
)
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.billing.store.budgets import BudgetRow, LimitNoticeRow, VisitorSpendingRow
from chalicelib.domains.billing.store.ledger import Hold, HoldClosedError, HoldRow, WalletRow
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.unit import UnitOfWork, run_unit

OPEN_HOLDS_RETURN = 5  # Retry-After in seconds, if a limit is reached only because of open holds


class Funds(NamedTuple):
    """The wallet that pays for a bot, and the bot's budget."""

    wallet: WalletRow
    budget: BudgetRow
    # What the visitor, and the visitor's network, have spent or hold today.
    spent: Mapping[str, int] = {}


def keys(
    account_id: str, *, workspace_id: str, agent_id: str, spenders: Sequence[str] = ()
) -> list[Key]:
    """Return the keys of a bot's funds, to read them with other rows."""
    shared = [ledger.wallet_key(account_id), budgets.budget_key(workspace_id, agent_id=agent_id)]
    return [
        *shared,
        *(
            budgets.visitor_key(workspace_id, agent_id=agent_id, spender=spender)
            for spender in spenders
        ),
    ]


def read(
    account_id: str,
    *,
    workspace_id: str,
    agent_id: str,
    spenders: Sequence[str] = (),
    rows: Rows | None = None,
) -> Funds:
    """Return the funds of a bot, from ``rows`` if given, with empty rows for missing rows."""
    wallet_key, budget_key, *_ = row_keys = keys(
        account_id, workspace_id=workspace_id, agent_id=agent_id, spenders=spenders
    )
    wallet = WalletRow(wallet_key.pk, wallet_key.sk)
    budget = BudgetRow(budget_key.pk, budget_key.sk)
    spent = {}
    for row in (rows or Rows()).fetch(row_keys):
        match row:
            case WalletRow():
                wallet = row
            case BudgetRow():
                budget = row
            case VisitorSpendingRow():
                spent[row.sk] = int(row.used)
    return Funds(wallet, budget, spent)


def read_with_open_hold(hold: Hold) -> Funds:
    """Return the funds of a hold, read in the same request, or raise HoldClosedError."""
    hold_key, rows = ledger.hold_key(hold.account_id, request_id=hold.request_id), Rows()
    rows.read(
        [*keys(hold.account_id, workspace_id=hold.workspace_id, agent_id=hold.agent_id), hold_key]
    )
    row = rows.find(HoldRow, hold_key)
    if row is not None and row.state != ledger.OPEN:
        raise HoldClosedError
    return read(hold.account_id, workspace_id=hold.workspace_id, agent_id=hold.agent_id, rows=rows)


def priced(hold: Hold, zone: str, early: Funds | None = None) -> tuple[Hold, Funds]:
    """Return the hold with as much output as its funds cover, and these funds.

    ``early`` is what was read before. Raises SpendingError if they do not cover the minimum output.
    """
    if early is not None:
        with suppress(SpendingError):
            return _priced(hold, early, zone), early
    # The commit of the hold checks ``early``, but nothing would check a refusal.
    funds = read(
        hold.account_id,
        workspace_id=hold.workspace_id,
        agent_id=hold.agent_id,
        spenders=hold.spenders,
    )
    return _priced(hold, funds, zone), funds


def _priced(hold: Hold, funds: Funds, zone: str) -> Hold:
    wallet, budget, spent = funds
    windows = budget.current(hold.windows)
    rooms = dict(zip(WINDOWS, map(budget.room, WINDOWS, windows), strict=True))
    min_cost = pricing.least_cost(hold.prices, hold.input_tokens, max_output_tokens=hold.granted)
    # The longest window that is used up decides how long the caller has to wait.
    for window in reversed(WINDOWS):
        room = rooms[window]
        if room is not None and room < min_cost:
            key = windows[WINDOWS.index(window)]
            settled_alone = budget.room(window, key, settled_alone=True) or 0
            error = _limit_error(window, zone, returns=settled_alone >= min_cost)
            if settled_alone < min_cost and budget.limit(window):
                error.used_up = f"{window}#{key}"
            raise error
    shares = {spender: budget.share(spender) for spender in hold.spenders}
    visitor_rooms = [
        part - spent.get(spender, 0) for spender, part in shares.items() if part is not None
    ]
    if min(visitor_rooms, default=min_cost) < min_cost:
        wait = spending_windows.seconds_left("daily", clock.now(), "UTC")  # the visitor's day
        msg = "You have used your part of this bot's spending limit for today. Try again tomorrow."
        raise VisitorShareError(msg, headers={"Retry-After": str(wait)}, key="visitor_share")
    shared = [room for room in rooms.values() if room is not None]
    max_cost = min([int(wallet.available), *shared, *visitor_rooms])
    output_tokens = pricing.fitting_output(
        hold.prices, hold.input_tokens, max_output_tokens=hold.granted, room=max_cost
    )
    if output_tokens is None:
        msg = "The balance of this bot's owner is too low for an answer. The owner can add funds."
        raise InsufficientBalanceError(msg)
    amount = pricing.cost(hold.prices, TokenUsage(hold.input_tokens, output_tokens))
    spenders = hold.spenders if visitor_rooms else ()
    return hold._replace(granted=output_tokens, amount=amount, windows=windows, spenders=spenders)


_LIMITS: dict[Window, tuple[type[SpendingError], str]] = {
    "daily": (DailyLimitError, "day"),
    "weekly": (WeeklyLimitError, "week"),
    "monthly": (MonthlyLimitError, "month"),
}


def _limit_error(window: Window, zone: str, *, returns: bool) -> SpendingError:
    error, name = _LIMITS[window]
    wait = (
        OPEN_HOLDS_RETURN if returns else spending_windows.seconds_left(window, clock.now(), zone)
    )
    msg = f"This bot has reached its spending limit for the {name}. Try again later."
    return error(msg, headers={"Retry-After": str(wait)})


log = logging.getLogger(__name__)


def emit_limit_reached(workspace_id: str, *, agent_id: str, window: str) -> None:
    """Emit ``bot.limit_reached``, unless it was emitted for this window of the bot."""

    def stage(unit: UnitOfWork) -> None:
        mark = LimitNoticeRow.new(workspace_id, agent_id=agent_id, window=window)
        # Each request that the limit refuses comes here, and a read costs less than a refused
        # write.
        if LimitNoticeRow.find(mark.pk, mark.sk) is None:
            unit.create(mark)
            unit.outbox.emit(Event("bot.limit_reached", agent_id))

    try:
        run_unit(workspace_id, None, stage)
    except AppError:
        # The next request that the limit refuses emits the event.
        log.warning("an event of a reached limit was not emitted", exc_info=True)

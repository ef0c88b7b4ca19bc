"""Charging a bot's requests exactly once: reserve before the model is asked, settle by its usage.

Each step is one transaction. Whether it was carried out is told by a row of its own, the hold (or,
of a request without a price, the job), so a lost answer is looked up, never guessed (ADR 23).
"""

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from threading import RLock
from typing import Literal, NamedTuple, TypeVar

from chalicelib.core import clock, deadline
from chalicelib.core.errors import AppError, UnavailableError
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.retry import Patience, backoff
from chalicelib.domains.billing.rules import pricing, spending
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.rules.spending import (
    WINDOWS,
    DailyLimitError,
    InsufficientBalanceError,
    MonthlyLimitError,
    SpendingError,
    WeeklyLimitError,
    Window,
)
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.billing.store.budgets import BudgetRow
from chalicelib.domains.billing.store.ledger import (
    Hold,
    HoldClosedError,
    HoldRow,
    HoldTakenError,
    WalletRow,
)
from chalicelib.engine import jobs
from chalicelib.engine.reading import fetch
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork, run_unit

__all__ = [
    "Hold",
    "Prices",
    "Recovered",
    "Settled",
    "Terms",
    "TokenUsage",
    "nothing",
    "recovers_holds",
    "release",
    "reserve",
    "settle",
]

SETTLED_AFTER = timedelta(minutes=10)
"""When a job closes what a crash left open."""
SECONDS = 15.0
"""How long a step may take, with all its attempts; then it is a 503."""
PATIENCE = Patience(attempts=None, longest_pause=1.5)
"""A wallet has one writer at a time: whoever loses tries until time is up, spread out."""
OPEN_HOLDS_RETURN = 5
"""Seconds until a limit that only open holds fill may have room again."""

Stage = Callable[[UnitOfWork], object]
"""Stages what else belongs to a step, in its transaction. It may run several times."""
Outcome = Literal["settled", "released"]
T = TypeVar("T")

log = logging.getLogger(__name__)


class Terms(NamedTuple):
    """Who pays for what at which prices: the workspace's owner, whose ``account_id`` it is.

    Windows are those of ``zone``, the workspace's time zone.
    """

    account_id: str
    workspace_id: str
    agent_id: str
    zone: str
    prices: Prices
    model: str


class Settled(NamedTuple):
    """What a request came to, in kopecks.

    ``adopted`` if this call wrote nothing, since the request was closed before: by another, or by
    this very call, whose answer was lost.
    """

    outcome: Outcome
    cost: int
    adopted: bool = False


class Recovered(NamedTuple):
    """What a crashed request left: its usage, or None if it produced nothing, and what to stage."""

    usage: TokenUsage | None
    stage: Stage


def nothing(_: UnitOfWork) -> None:
    """Stage nothing else."""


def reserve(  # noqa: PLR0913  what a hold is made of
    terms: Terms,
    request_id: str,
    input_tokens: int,
    max_output_tokens: int,
    stage: Stage = nothing,
    *,
    message_id: str = "",
) -> Hold:
    """Reserve what a request may cost at most; the hold says how much output is granted.

    If the balance or a limit is short but covers the input and 64 output tokens, less output is
    granted. ``request_id`` is the server's own, one a request. What ``stage`` raises, and what its
    writes mean if they fail, is raised here, with nothing reserved.

    Raises:
        DailyLimitError: or of the week or the month: it is used up.
        InsufficientBalanceError: the owner's money is.
        UnavailableError: the wallet was too busy, or the database failed; after an
            ``OutcomeUnknownError`` the money may be held, until the job releases it.
    """
    now = clock.now()
    asked = Hold(
        request_id=request_id,
        account_id=terms.account_id,
        workspace_id=terms.workspace_id,
        agent_id=terms.agent_id,
        model=terms.model,
        message_id=message_id,
        prices=terms.prices,
        input_tokens=input_tokens,
        granted=max_output_tokens,
        amount=0,
        windows=spending.window_keys(now, terms.zone),
        due_at=now + SETTLED_AFTER,
    )

    def staged(unit: UnitOfWork) -> Hold:
        hold = asked
        if hold.free:
            ledger.open_free(unit, hold)
        else:
            wallet, budget = _read(hold)
            hold = _priced(hold, wallet, budget, terms.zone)
            ledger.open_hold(unit, wallet, hold)
            budgets.use(unit, budget, hold)
        stage(unit)
        return hold

    def find() -> Hold | None:
        if asked.free:
            return asked if jobs.is_there(asked.job) else None
        row = ledger.find_hold(asked.account_id, request_id)
        return None if row is None else ledger.hold_of(row)

    return _carry_out(asked, staged, find, SECONDS)


def settle(
    hold: Hold, usage: TokenUsage, stage: Stage = nothing, *, seconds: float = SECONDS
) -> Settled:
    """Charge a request for what it used, never more than was held, and return the rest.

    What ``stage`` adds happens in the same transaction, and so once: whoever comes second adopts
    the outcome and writes nothing.

    Raises:
        UnavailableError: not within ``seconds``; the job will.
    """
    return _close(hold, usage, stage, seconds)


def release(hold: Hold, stage: Stage = nothing, *, seconds: float = SECONDS) -> Settled:
    """Return all that was held for a request that used nothing; ``stage`` as for ``settle``.

    Raises:
        UnavailableError: not within ``seconds``; the job will.
    """
    return _close(hold, None, stage, seconds)


def _close(hold: Hold, usage: TokenUsage | None, stage: Stage, seconds: float) -> Settled:
    used = 0 if usage is None else pricing.cost(hold.prices, usage)
    cost = min(used, hold.amount)
    settled = Settled("released" if usage is None else "settled", cost)

    def staged(unit: UnitOfWork) -> Settled:
        if hold.free:
            ledger.close_free(unit, hold)
        else:
            wallet, budget = _read(hold, still_open=True)
            ledger.close_hold(unit, wallet, hold, cost, usage)
            budgets.give_back(unit, budget, hold, hold.amount - cost)
        stage(unit)
        return settled

    def find() -> Settled | None:
        if hold.free:
            return None if jobs.is_there(hold.job) else settled._replace(adopted=True)
        row = ledger.find_hold(hold.account_id, hold.request_id)
        if row is None or row.state == ledger.OPEN:
            return None
        outcome: Outcome = "settled" if row.state == ledger.SETTLED else "released"
        return Settled(outcome, int(row.cost), adopted=True)

    closed = _carry_out(hold, staged, find, seconds)
    if used > hold.amount and not closed.adopted:
        log.error(
            "a request used more than was held; the excess is not charged",
            extra={"request": hold.request_id, "agent": hold.agent_id, "model": hold.model},
        )
    return closed


def _read(hold: Hold, *, still_open: bool = False) -> tuple[WalletRow, BudgetRow]:
    """Return the wallet and the budget of a hold, in one request.

    Raises:
        HoldClosedError: it is not ``still_open``.
    """
    wallet_key = ledger.wallet_key(hold.account_id)
    budget_key = budgets.budget_key(hold.workspace_id, hold.agent_id)
    hold_key = ledger.hold_key(hold.account_id, hold.request_id)
    wallet = WalletRow(wallet_key.pk, wallet_key.sk)
    budget = BudgetRow(budget_key.pk, budget_key.sk)
    for row in fetch([wallet_key, budget_key, *([hold_key] if still_open else ())]):
        match row:
            case WalletRow():
                wallet = row
            case BudgetRow():
                budget = row
            case HoldRow() if row.state != ledger.OPEN:
                raise HoldClosedError
    return wallet, budget


def _priced(hold: Hold, wallet: WalletRow, budget: BudgetRow, zone: str) -> Hold:
    """Return a hold with as much output as money and limits suffice for.

    Raises:
        SpendingError: they do not suffice for the least.
    """
    windows = budget.current(hold.windows)
    rooms = dict(zip(WINDOWS, map(budget.room, WINDOWS, windows), strict=True))
    least = pricing.least_cost(hold.prices, hold.input_tokens, hold.granted)
    for window in reversed(WINDOWS):
        room = rooms[window]
        if room is not None and room < least:
            key = windows[WINDOWS.index(window)]
            settled_alone = budget.room(window, key, settled_alone=True) or 0
            raise _limit_error(window, zone, returns=settled_alone >= least)
    most = min([int(wallet.available), *(room for room in rooms.values() if room is not None)])
    granted = pricing.fitting_output(hold.prices, hold.input_tokens, hold.granted, most)
    if granted is None:
        msg = "The balance of this bot's owner does not suffice for an answer."
        raise InsufficientBalanceError(msg)
    amount = pricing.cost(hold.prices, TokenUsage(hold.input_tokens, granted))
    return hold._replace(granted=granted, amount=amount, windows=windows)


_LIMITS: dict[Window, tuple[type[SpendingError], str]] = {
    "daily": (DailyLimitError, "day"),
    "weekly": (WeeklyLimitError, "week"),
    "monthly": (MonthlyLimitError, "month"),
}


def _limit_error(window: Window, zone: str, *, returns: bool) -> SpendingError:
    """Return the refusal of a window, and when to come again."""
    error, name = _LIMITS[window]
    wait = OPEN_HOLDS_RETURN if returns else spending.seconds_left(window, clock.now(), zone)
    msg = f"This bot has reached its spending limit of the {name}. Try again later."
    return error(msg, headers={"Retry-After": str(wait)})


def _carry_out(
    hold: Hold, staged: Callable[[UnitOfWork], T], find: Callable[[], T | None], seconds: float
) -> T:
    """Commit a step once, however often answers are lost; ``find`` says whether it is done.

    A transaction whose answer was lost may be carried out later still. The conditions on the hold
    and the wallet let one of several through.
    """
    lost = False
    with deadline.within(deadline.remaining(seconds)), _alone_with_wallet(hold):
        for number in count():
            try:
                return _attempt(hold, staged, find, lost=lost)
            except UnavailableError as error:
                lost = lost or isinstance(error, OutcomeUnknownError)
                if deadline.passed():
                    if lost:
                        raise OutcomeUnknownError from error
                    raise
            backoff(number, PATIENCE.longest_pause)
    raise AssertionError("unreachable")


def _attempt(
    hold: Hold, staged: Callable[[UnitOfWork], T], find: Callable[[], T | None], *, lost: bool
) -> T:
    """Commit a step, or find it done.

    After a lost answer, whatever the next attempt fails with may be what the lost one did.
    """
    problem: AppError
    try:
        return run_unit(hold.workspace_id, None, staged, patience=PATIENCE)
    except (HoldTakenError, HoldClosedError):
        problem = OutcomeUnknownError()
    except AppError as error:
        if not lost and not isinstance(error, OutcomeUnknownError):
            raise
        problem = error
    try:
        found = find()
    except UnavailableError as error:
        raise OutcomeUnknownError from error
    if found is None:
        raise problem
    return found


_LOCKS = [RLock() for _ in range(64)]


@contextmanager
def _alone_with_wallet(hold: Hold) -> Iterator[None]:
    """Let one thread of this process at a time change a wallet: they would only lose to each other.

    Raises:
        UnavailableError: the others took all the time.
    """
    if hold.free:
        yield
        return
    lock = _LOCKS[zlib.crc32(hold.account_id.encode()) % len(_LOCKS)]
    while not lock.acquire(timeout=deadline.remaining(SECONDS)):
        if deadline.passed():
            raise UnavailableError
    try:
        yield
    finally:
        lock.release()


_recoveries: list[Callable[[Hold], Recovered]] = []


def recovers_holds(recover: Callable[[Hold], Recovered]) -> Callable[[Hold], Recovered]:
    """Declare who knows what a crashed request has produced. There is one such function.

    Raises:
        ValueError: there is another.
    """
    if _recoveries:
        raise ValueError("two functions recover holds")
    _recoveries.append(recover)
    return recover


@job_handler(ledger.SETTLE_HOLD)
def settle_hold(job: Job) -> None:
    """Close a hold that a crash left open: settle what was produced, or release it."""
    hold = _hold_of(job)
    if hold is None:
        return
    (recover,) = _recoveries
    usage, stage = recover(hold)
    if usage is None:
        release(hold, stage)
    else:
        settle(hold, usage, stage)


def _hold_of(job: Job) -> Hold | None:
    """Return the hold of a job; None if it has been closed."""
    if "free" in job.payload:
        return Hold.from_payload(job.payload["free"])
    row = ledger.find_hold(**job.payload)
    return ledger.hold_of(row) if row and row.state == ledger.OPEN else None

"""Tests that chats are reserved, charged, refused and released, each step exactly once."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.core import deadline
from chalicelib.core.errors import AppError, ConflictError, UnavailableError
from chalicelib.core.jobs import JobKind
from chalicelib.domains.billing.flows import charging, funds
from chalicelib.domains.billing.flows.charging import Hold, Settled, Terms
from chalicelib.domains.billing.flows.funds import Funds
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.rules.spending_windows import DailyLimitError, SpendingError, Window
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.engine.events.outbox import Event, Outbox
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Time
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

KOPECK = 10**6
TERMS = Terms("acc", "ws", "bot", "Europe/Moscow", Prices(KOPECK, KOPECK), "model")
"""One kopeck per token."""


def top_up(kopecks: int, account_id: str = "acc") -> None:
    def stage(unit: UnitOfWork) -> None:
        ledger.post(unit, ledger.wallet(account_id), ledger.TOPUP, amount=kopecks)

    run_unit(account_id, None, stage)


def limit(**limits: int | None) -> None:
    """Set limits of the bot: ``limit(daily=100)``."""
    window_limits: dict[Window, int | None] = limits  # type: ignore[assignment]  # names of windows

    def stage(unit: UnitOfWork) -> None:
        budgets.set_limits(unit, budgets.budget("ws", agent_id="bot"), window_limits)

    run_unit("acc", None, stage)


def money() -> tuple[int, int]:
    """Return the available and the reserved amount."""
    wallet = ledger.wallet("acc")
    return wallet.available, wallet.reserved


def used() -> tuple[int, int, int]:
    """Return the amounts used in the day, the week and the month."""
    budget = budgets.budget("ws", agent_id="bot")
    return budget.daily_used, budget.weekly_used, budget.monthly_used


def kinds() -> list[str]:
    return [entry.kind for entry in reversed(ledger.entries("acc"))]


def reserve(request_id: str = "r", max_output: int = 100, terms: Terms = TERMS) -> Hold:
    return charging.reserve(terms, request_id, 10, max_output_tokens=max_output)


def refusal(request_id: str = "refused", max_output: int = 100) -> tuple[str, str | None]:
    """Make a reservation that must be refused. Return the code and the seconds until a retry."""
    state_before = money(), used()
    with pytest.raises(AppError) as caught:
        reserve(request_id, max_output)
    assert caught.value.status == 429
    assert not any(character.isdigit() for character in caught.value.message)
    assert (money(), used()) == state_before
    assert ledger.find_hold("acc", request_id=request_id) is None
    return caught.value.code, caught.value.headers.get("Retry-After")


def test_an_account_without_a_wallet_has_no_money() -> None:
    assert refusal() == ("insufficient_balance", None)


def test_usage_is_charged_and_the_rest_of_the_reservation_returned() -> None:
    top_up(1000)
    hold = reserve()
    assert (hold.granted, hold.amount) == (100, 110)
    assert (money(), used()) == ((890, 110), (110, 110, 110))
    assert charging.settle(hold, TokenUsage(10, 30)) == Settled("settled", 40)
    assert (money(), used()) == ((960, 0), (40, 40, 40))
    assert kinds() == ["topup", "reserve", "settle"]
    last, reserved, _ = ledger.entries("acc")
    assert (reserved.amount, reserved.held, reserved.balance_after) == (0, 110, 890)
    assert (last.amount, last.held, last.balance_after) == (-40, -110, 960)
    assert (last.request_id, last.agent_id, last.model) == ("r", "bot", "model")
    assert (last.input_tokens, last.output_tokens) == (10, 30)


def reserve_with(funds_read: Funds, request_id: str = "r") -> Hold:
    return charging.reserve(TERMS, request_id, 10, max_output_tokens=100, read=funds_read)


def test_a_reservation_is_exact_if_funds_change_after_its_read() -> None:
    top_up(200)
    outdated = funds.read("acc", workspace_id="ws", agent_id="bot")
    assert reserve_with(outdated, "one").amount == 110
    assert reserve_with(outdated, "two").amount == 90
    assert (money(), used()) == ((0, 200), (200, 200, 200))


def test_a_reservation_is_not_refused_because_of_outdated_funds() -> None:
    outdated = funds.read("acc", workspace_id="ws", agent_id="bot")
    top_up(1000)
    limit(daily=0)
    limited = funds.read("acc", workspace_id="ws", agent_id="bot")
    limit(daily=None)
    assert [reserve_with(outdated, "one").amount, reserve_with(limited, "two").amount] == [110, 110]


def test_a_reservation_obeys_a_limit_set_after_its_read() -> None:
    top_up(1000)
    outdated = funds.read("acc", workspace_id="ws", agent_id="bot")
    limit(daily=10)
    with pytest.raises(DailyLimitError):
        reserve_with(outdated)
    assert money() == (1000, 0)


def test_a_released_reservation_costs_nothing() -> None:
    top_up(1000)
    hold = reserve()
    assert charging.release(hold) == Settled("released", 0)
    assert charging.settle(hold, TokenUsage(10, 30)) == Settled("released", 0, adopted=True)
    assert (money(), used()) == ((1000, 0), (0, 0, 0))
    assert kinds() == ["topup", "reserve", "release"]


def test_closing_a_hold_twice_returns_the_outcome_and_writes_nothing() -> None:
    top_up(1000)
    hold, stages = reserve(), list[str]()
    charging.settle(hold, TokenUsage(10, 30), lambda _: stages.append("first"))
    ways: list[Callable[[], Settled]] = [
        lambda: charging.settle(hold, TokenUsage(10, 99), lambda _: stages.append("second")),
        lambda: charging.release(hold, lambda _: stages.append("third")),
    ]
    for way in ways:
        assert way() == Settled("settled", 40, adopted=True)
    assert stages == ["first"]
    assert kinds() == ["topup", "reserve", "settle"]


def test_the_charge_never_exceeds_the_hold_and_the_excess_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    top_up(1000)
    hold = reserve()
    assert charging.settle(hold, TokenUsage(10, 500)).cost == 110
    (record,) = [r for r in caplog.records if r.name == charging.__name__]
    assert "excess" in record.getMessage()
    caplog.clear()
    assert charging.settle(hold, TokenUsage(10, 500)).adopted
    assert money() == (890, 0)
    assert charging.settle(reserve("exact"), TokenUsage(10, 100)).cost == 110
    assert not [r for r in caplog.records if r.name == charging.__name__]


class TestLowerGrant:
    def test_a_low_balance_lowers_the_granted_output(self) -> None:
        top_up(10 + 64)
        hold = reserve()
        assert (hold.granted, hold.amount) == (64, 74)
        assert money() == (0, 74)

    def test_a_low_limit_lowers_the_granted_output(self) -> None:
        top_up(1000)
        limit(weekly=85)
        assert reserve().granted == 75

    def test_a_grant_too_small_for_an_answer_is_refused(self) -> None:
        top_up(10 + 63)
        assert refusal() == ("insufficient_balance", None)

    def test_a_request_below_the_smallest_reduced_grant_is_granted(self) -> None:
        top_up(10 + 20)
        assert reserve(max_output=20).granted == 20


class TestLimits:
    @pytest.fixture(autouse=True)
    def _funds(self, time: Time) -> None:
        time.now = datetime(2027, 1, 14, 20, 59, 30, tzinfo=UTC)  # 23:59:30 on a Thursday
        top_up(10_000)

    def test_a_limit_of_zero_refuses_everything(self) -> None:
        limit(daily=0)
        assert refusal() == ("limit_daily", "30")

    def test_a_refusal_names_the_longest_window_that_is_exhausted(self) -> None:
        limit(daily=50, weekly=50)
        assert refusal() == ("limit_weekly", str(3 * 86_400 + 30))
        limit(monthly=50)
        assert refusal() == ("limit_monthly", str(17 * 86_400 + 30))

    def test_limits_are_checked_before_the_balance(self) -> None:
        limit(daily=10_000)
        reserve(max_output=9_900)
        limit(daily=50)
        assert refusal()[0] == "limit_daily"

    def test_a_limit_filled_by_open_holds_is_refused_with_a_short_retry_after(self) -> None:
        limit(daily=150)
        hold = reserve()
        assert refusal() == ("limit_daily", "5")
        charging.settle(hold, TokenUsage(10, 90))
        assert refusal() == ("limit_daily", "30")

    def test_a_new_limit_counts_earlier_usage(self) -> None:
        charging.settle(reserve(), TokenUsage(10, 100))
        limit(daily=150)
        assert refusal()[0] == "limit_daily"
        limit(daily=None)
        assert reserve().granted == 100

    def error(self, terms: Terms = TERMS) -> SpendingError:
        with pytest.raises(SpendingError) as caught:
            reserve("refused", terms=terms)
        return caught.value

    def test_a_limit_is_used_up_by_spending_and_not_by_open_holds(self) -> None:
        limit(daily=110)
        hold = reserve()
        assert self.error().used_up is None
        charging.settle(hold, TokenUsage(10, 30))
        assert self.error().used_up == "daily#2027-01-14"
        limit(daily=0)
        assert self.error().used_up is None

    def test_a_limit_without_a_single_kopeck_left_returns_nothing(self) -> None:
        limit(daily=1)
        cheap = TERMS._replace(prices=Prices(1, 1))
        hold = reserve("open", terms=cheap)
        assert self.error(cheap).headers["Retry-After"] == str(funds.OPEN_HOLDS_RETURN)
        charging.settle(hold, TokenUsage(10, 30))
        error = self.error(cheap)
        assert error.used_up == "daily#2027-01-14"
        assert error.headers["Retry-After"] == "30"


class TestWithoutAPrice:
    TERMS = TERMS._replace(prices=Prices(0, 0))

    def test_a_model_without_a_price_holds_nothing_and_each_step_happens_once(self) -> None:
        stages = list[str]()
        hold = charging.reserve(
            self.TERMS, "r", 10, max_output_tokens=100, stage=lambda _: stages.append("reserved")
        )
        assert (hold.granted, hold.amount) == (100, 0)
        assert jobs.is_there(hold.job)
        first = charging.settle(hold, TokenUsage(10, 5), lambda _: stages.append("settled"))
        second = charging.settle(hold, TokenUsage(10, 5))
        assert (first, second.adopted) == (Settled("settled", 0), True)
        assert not jobs.is_there(hold.job)
        assert kinds() == []
        assert used() == (0, 0, 0)


class TestStage:
    def test_a_stage_that_raises_an_error_prevents_the_reservation(self) -> None:
        top_up(1000)

        def busy(_: UnitOfWork) -> None:
            raise ConflictError("busy")

        with pytest.raises(ConflictError):
            charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=busy)
        assert (money(), kinds()) == ((1000, 0), ["topup"])

    def test_the_writes_of_a_stage_are_part_of_the_step(self) -> None:
        top_up(1000)
        note = jobs.row(JobKind("note"), "ws", {})
        hold = charging.reserve(
            TERMS, "r", 10, max_output_tokens=100, stage=lambda unit: unit.create(note)
        )
        assert jobs.is_there(note)
        charging.release(hold, lambda unit: unit.delete(note))
        assert not jobs.is_there(note)


def test_one_request_is_reserved_once() -> None:
    top_up(1000)
    assert reserve() == reserve()
    assert kinds() == ["topup", "reserve"]


def test_a_step_takes_one_read_and_one_transaction() -> None:
    """The transaction contains the wallet, its entry, the hold, the budget and the job.

    A settlement also counts what the bot spends.
    """
    top_up(900)
    seen: list[tuple[str, int]] = []

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        seen.append((model.name, len(params.get("TransactItems", ()))))

    events = connection().client.meta.events
    events.register("provide-client-params.dynamodb", note)
    try:
        charging.settle(reserve(), TokenUsage(10, 30))
    finally:
        events.unregister("provide-client-params.dynamodb", note)
    assert seen == [
        ("BatchGetItem", 0),
        ("TransactWriteItems", 5),
        ("BatchGetItem", 0),
        ("TransactWriteItems", 6),
    ]


def test_a_balance_becomes_low_by_charges_and_not_by_open_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Event] = []
    monkeypatch.setattr(Outbox, "emit", lambda _, event: seen.append(event))
    top_up(10_050)
    first, second, third, released = (reserve(request_id) for request_id in "abcd")
    charging.release(released)
    charging.settle(first, TokenUsage(10, 30))
    assert seen == []
    charging.settle(second, TokenUsage(10, 30))
    assert seen == [Event("balance.low", "acc")]
    charging.settle(third, TokenUsage(10, 30))
    assert len(seen) == 1


def test_a_step_waits_for_another_step_only_until_its_deadline() -> None:
    top_up(1000)
    started, may_end = threading.Event(), threading.Event()

    def wait(_: UnitOfWork) -> None:
        started.set()
        assert may_end.wait(PATIENCE)

    slow = threading.Thread(
        target=charging.reserve,
        args=(TERMS, "slow", 10),
        kwargs={"max_output_tokens": 100, "stage": wait},
    )
    slow.start()
    assert started.wait(PATIENCE)
    with deadline.within(0.01), pytest.raises(UnavailableError):
        reserve("late")
    free = TERMS._replace(prices=Prices(0, 0))
    assert reserve("free", terms=free).amount == 0  # A free model needs no wallet.
    may_end.set()
    slow.join()
    assert money() == (890, 110)

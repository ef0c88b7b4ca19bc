"""Tests that each step of charging happens once despite lost responses, crashes and new windows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from chalicelib.core import deadline
from chalicelib.core.errors import ConflictError, UnavailableError
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.rules.spending_windows import DailyLimitError, SpendingError, Window
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.engine import reading
from chalicelib.engine.connection import connection
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Time, call_operator
from tests.domains.billing import books
from tests.domains.billing.charging_faults.helpers import FREE, note, noted
from tests.domains.billing.test_charging import TERMS, limit, money, reserve, top_up, used
from tests.fakes.dynamodb_faults import (
    FAULTS,
    TIMES,
    TRANSACTION,
    Fault,
    closed,
    conflict,
    crashed,
    faulty,
    refusal,
)
from tests.support.effort import matrix

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


@dataclass
class Step:
    """A step of charging, and the resulting state of the account."""

    act: Callable[[], Any]
    money: tuple[int, int]
    noted: str = ""


def reserving() -> Step:
    stage = note("reserved")
    return Step(
        lambda: charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=stage),
        (890, 110),
        "reserved",
    )


def settling() -> Step:
    hold = reserve()
    return Step(lambda: charging.settle(hold, TokenUsage(10, 30), note("s")), (960, 0), "s")


def releasing() -> Step:
    hold = reserve()
    return Step(lambda: charging.release(hold, note("r")), (1000, 0), "r")


def crediting() -> Step:
    call_operator("create_account", email="a@example.com", password="long enough")
    same: dict[str, Any] = {"account": "a@example.com", "reason": "x", "idempotencyKey": "k"}

    def act() -> None:
        assert call_operator("credit", kopecks=500, **same)["balance"] == 500

    return Step(act, (1000, 0))


def reserving_free() -> Step:
    return Step(
        lambda: charging.reserve(FREE, "f", 10, max_output_tokens=100, stage=note("f")),
        (1000, 0),
        "f",
    )


def settling_free() -> Step:
    hold = charging.reserve(FREE, "f", 10, max_output_tokens=100)
    return Step(lambda: charging.settle(hold, TokenUsage(10, 30), note("sf")), (1000, 0), "sf")


STEPS = [reserving, settling, releasing, crediting, reserving_free, settling_free]


@matrix("step, fault, when, times", STEPS, FAULTS, TIMES, [1, 3])
def test_lost_responses_do_not_repeat_a_step(
    step: Callable[[], Step], fault: Fault, when: str, times: int
) -> None:
    top_up(1000)
    charge_step = step()
    with faulty(TRANSACTION, fault, when, times) as requests:
        charge_step.act()
    assert len(requests) >= (2 if when == "before" else 1)
    assert money() == charge_step.money
    assert not charge_step.noted or noted(charge_step.noted)
    books.audit("acc", "ws", "bot")


@pytest.mark.parametrize("step", STEPS)
def test_a_step_with_only_lost_responses_is_503_and_happens_at_most_once(
    step: Callable[[], Step],
) -> None:
    top_up(1000)
    charge_step = step()
    money_before = money()
    with faulty(TRANSACTION, closed, "before"), pytest.raises(OutcomeUnknownError):
        charge_step.act()
    assert money() == money_before
    charge_step.act()
    assert money() == charge_step.money
    books.audit("acc", "ws", "bot")


@pytest.mark.parametrize("step", [reserving, settling, releasing])
def test_a_step_is_unknown_if_only_refusals_follow_a_lost_response(
    step: Callable[[], Step],
) -> None:
    top_up(1000)
    charge_step = step()
    attempts: list[int] = []
    throttled = refusal("ProvisionedThroughputExceededException", 400)

    def lost_once(http: Any, parsed: dict[str, Any]) -> None:
        attempts.append(1)
        (throttled if len(attempts) > 1 else closed)(http, parsed)

    with faulty(TRANSACTION, lost_once, "before"), pytest.raises(OutcomeUnknownError):
        charge_step.act()
    with faulty(TRANSACTION, throttled, "before"), pytest.raises(UnavailableError) as caught:
        charge_step.act()
    assert not isinstance(caught.value, OutcomeUnknownError)


def test_a_step_is_unknown_if_the_deadline_passes_after_a_lost_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The deadline passes while the second attempt looks for the outcome of the first."""
    top_up(1000)
    now, searches, find = [0.0], count(1), ledger.find_hold
    throttled = refusal("ProvisionedThroughputExceededException", 400)

    def find_slowly(account_id: str, request_id: str) -> ledger.HoldRow | None:
        row = find(account_id, request_id=request_id)
        now[0] += 1_000 * (next(searches) == 2)
        return row

    def lost_once(http: Any, parsed: dict[str, Any]) -> None:
        (throttled if next(attempts) > 1 else closed)(http, parsed)

    attempts = count(1)
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
    monkeypatch.setattr(ledger, "find_hold", find_slowly)
    with faulty(TRANSACTION, lost_once, "before"), pytest.raises(OutcomeUnknownError):
        charging.reserve(TERMS, "r", 10, max_output_tokens=100)


@pytest.mark.parametrize("step", STEPS)
def test_a_conflict_after_a_lost_response_finds_the_step_done(step: Callable[[], Step]) -> None:
    top_up(1000)
    charge_step = step()
    with faulty(TRANSACTION, crashed, "after", 1) as requests, conflicting(requests):
        charge_step.act()
    assert money() == charge_step.money
    books.audit("acc", "ws", "bot")


@contextmanager
def conflicting(requests: list[str]) -> Iterator[None]:
    """Reject the second transaction."""

    def reject(**_: Any) -> None:
        if len(requests) == 2:
            raise conflict()

    events = connection().client.meta.events
    events.register_last(f"before-call.dynamodb.{TRANSACTION}", reject)
    try:
        yield
    finally:
        events.unregister(f"before-call.dynamodb.{TRANSACTION}", reject)


MIDNIGHTS = {
    "daily": datetime(2027, 1, 13, 20, 59, 59, tzinfo=UTC),  # a Wednesday, in Moscow
    "weekly": datetime(2027, 1, 17, 20, 59, 59, tzinfo=UTC),  # a Sunday
    "monthly": datetime(2027, 1, 31, 20, 59, 59, tzinfo=UTC),  # a Sunday, the last of the month
}


class TestWindows:
    """Windows end at midnight, on Monday and on the first of the month, in the workspace's zone."""

    @pytest.mark.parametrize("window", MIDNIGHTS)
    def test_exhausted_windows_are_empty_when_the_next_ones_begin(
        self, window: Window, time: Time
    ) -> None:
        time.now = MIDNIGHTS[window]
        top_up(1000)
        limit(**{window: 120})
        charging.settle(reserve("a"), TokenUsage(10, 100))
        with pytest.raises(SpendingError) as caught:
            reserve("b")
        assert caught.value.code == f"limit_{window}"
        assert caught.value.headers["Retry-After"] == "1"
        time.pass_by(seconds=1)
        assert reserve("c").amount == 110

    @pytest.mark.parametrize("window", MIDNIGHTS)
    def test_a_hold_from_an_earlier_window_returns_nothing_to_the_new_one(
        self, window: Window, time: Time
    ) -> None:
        time.now = MIDNIGHTS[window]
        top_up(1000)
        limit(**{window: 120})
        old = reserve("old")
        time.pass_by(seconds=1)
        new = reserve("new")
        charging.settle(old, TokenUsage(10, 0))
        with pytest.raises(SpendingError):
            reserve("refused")
        number = list(MIDNIGHTS).index(window)
        assert used()[number] == 110
        charging.settle(new, TokenUsage(10, 0))
        assert used()[number] == 10
        books.audit("acc", "ws", "bot")

    def test_a_window_that_has_not_ended_gets_the_unused_amount_back(self, time: Time) -> None:
        time.now = MIDNIGHTS["daily"]
        top_up(1000)
        old = reserve("old")
        time.pass_by(seconds=1)
        assert used() == (110, 110, 110)
        charging.settle(old, TokenUsage(10, 0))
        reserve("new")
        assert used() == (110, 120, 120)

    def test_a_window_in_another_zone_begins_at_midnight_there(self, time: Time) -> None:
        time.now = datetime(2027, 1, 14, 4, 59, 59, tzinfo=UTC)  # 23:59:59 in New York
        top_up(1000)
        limit(daily=120)
        there = TERMS._replace(zone="America/New_York")
        reserve("a", terms=there)
        with pytest.raises(DailyLimitError):
            reserve("b", terms=there)
        time.pass_by(seconds=1)
        assert reserve("c", terms=there).windows.daily == "2027-01-14"

    def test_a_window_does_not_begin_again_when_the_zone_moves_west(self, time: Time) -> None:
        time.now = datetime(2027, 1, 14, 1, tzinfo=UTC)  # the 14th in Moscow, the 13th in New York
        top_up(1000)
        limit(daily=120)
        reserve("a")
        with pytest.raises(DailyLimitError):
            reserve("b", terms=TERMS._replace(zone="America/New_York"))
        limit(daily=1000)
        later = reserve("c", terms=TERMS._replace(zone="America/New_York"))
        assert later.windows.daily == "2027-01-14"
        books.audit("acc", "ws", "bot")


def test_limits_that_change_between_reading_and_writing_are_read_again() -> None:
    top_up(1000)
    limit(daily=500)

    def lower(unit: UnitOfWork) -> None:
        if budgets.budget("ws", agent_id="bot").rev == 1:
            limit(daily=50)

    with pytest.raises(DailyLimitError):
        charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=lower)
    assert money() == (1000, 0)


def test_changed_terms_do_not_affect_an_open_hold() -> None:
    top_up(1000)
    hold = reserve(terms=Terms("acc", "ws", "bot", "UTC", Prices(2 * 10**6, 10**6), "dear"))
    assert charging.settle(hold, TokenUsage(10, 10)).cost == 30


def test_a_hold_that_was_never_carried_out_cannot_be_settled() -> None:
    top_up(1000)
    never = reserve()._replace(request_id="never")
    with pytest.raises(OutcomeUnknownError):
        charging.settle(never, TokenUsage(10, 30))
    assert money() == (890, 110)


def test_an_unavailable_database_is_a_503() -> None:
    top_up(1000)
    with faulty("BatchGetItem", crashed, "before"), pytest.raises(UnavailableError):
        reserve()
    assert money() == (1000, 0)


def test_a_hold_and_a_wallet_read_at_different_times_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are read in one request, but not as one snapshot (DynamoDB, BatchGetItem)."""
    top_up(1000)
    hold, fetch = reserve(), reading.fetch
    torn: list[Any] = []

    def fetch_torn(keys: Any, **options: Any) -> Any:
        if torn:
            return fetch(keys, **options)
        torn.extend(row for row in fetch(keys, **options) if isinstance(row, ledger.HoldRow))
        charging.settle(hold, TokenUsage(10, 30), note("first"))
        return [*fetch(keys, **options)[:2], *torn]

    monkeypatch.setattr(reading, "fetch", fetch_torn)
    assert charging.settle(hold, TokenUsage(10, 90), note("second")).cost == 40
    assert (money(), noted("second")) == ((960, 0), False)
    books.audit("acc", "ws", "bot")


class TestABotWhoseOwnerChanges:
    """Two wallets pay for one bot for a while. Only the bot's budget counts both."""

    HEIR = TERMS._replace(account_id="heir")

    @pytest.fixture(autouse=True)
    def _money(self, time: Time) -> None:
        time.now = MIDNIGHTS["daily"]
        top_up(1000)
        top_up(1000, "heir")

    def run_once(self, act: Callable[[], object]) -> Callable[[UnitOfWork], None]:
        """Return a stage that runs another action once."""
        pending = [act]
        return lambda _: [pending.pop()() for _ in pending[:]] and None

    def test_a_bot_with_two_wallets_has_one_window(self) -> None:
        other = self.run_once(
            lambda: charging.reserve(self.HEIR, "other", 10, max_output_tokens=100)
        )
        charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=other)
        assert used() == (220, 220, 220)

    def test_a_bot_with_two_wallets_has_one_limit(self) -> None:
        limit(daily=150)
        charging.settle(reserve("first"), TokenUsage(10, 0))
        other = self.run_once(
            lambda: charging.reserve(self.HEIR, "other", 10, max_output_tokens=100)
        )
        with pytest.raises(DailyLimitError):
            charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=other)
        assert used() == (120, 120, 120)

    def test_an_old_hold_returns_nothing_to_another_wallets_window(self, time: Time) -> None:
        hold = reserve()

        def next_day() -> None:
            time.pass_by(seconds=1)
            charging.reserve(self.HEIR, "other", 10, max_output_tokens=100)

        charging.settle(hold, TokenUsage(10, 0), self.run_once(next_day))
        assert used() == (110, 120, 120)
        assert money() == (990, 0)


def test_a_conflict_may_come_from_the_steps_own_lost_request() -> None:
    """A busy session may be locked by the same request, whose response was lost."""
    top_up(1000)

    def lock_session(unit: UnitOfWork) -> None:
        if noted("session"):
            raise ConflictError("busy")
        note("session")(unit)

    with faulty(TRANSACTION, closed, "after", 1):
        hold = charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=lock_session)
    assert (hold.amount, money()) == (110, (890, 110))
    with pytest.raises(ConflictError):
        charging.reserve(TERMS, "another", 10, max_output_tokens=100, stage=lock_session)
    assert money() == (890, 110)

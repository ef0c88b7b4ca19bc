"""Charging despite lost answers, crashes and ending windows: each step happens once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from chalicelib.core import deadline, retry
from chalicelib.core.errors import ConflictError, UnavailableError
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Recovered, Settled, Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.rules.spending import DailyLimitError, SpendingError, Window
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Time, as_operator
from tests.domains.billing import books
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
)
from tests.support.effort import matrix

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


@pytest.fixture(autouse=True)
def _instant_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses take no real time, but they move the clock."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(retry, "sleep", pause)
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])


@pytest.fixture
def usages(monkeypatch: pytest.MonkeyPatch) -> dict[str, TokenUsage]:
    """Usage that requests have recorded, for the recovery job."""
    left: dict[str, TokenUsage] = {}
    monkeypatch.setattr(charging, "_recoveries", [])

    @charging.recovers_holds
    def recover(hold: Hold) -> Recovered:
        return Recovered(left.get(hold.request_id), note(hold.request_id))

    return left


def note(name: str) -> Callable[[UnitOfWork], None]:
    """Return a stage that succeeds only once."""
    row = jobs.row("note", "ws", {}, datetime(2030, 1, 1, tzinfo=UTC), job_id=name)
    return lambda unit: unit.create(row, on_conflict=ConflictError("twice"))


def noted(name: str) -> bool:
    return jobs.is_there(jobs.ref("note", datetime(2030, 1, 1, tzinfo=UTC), name))


def run_jobs() -> dict[str, int]:
    return jobs.run({ledger.SETTLE_HOLD: charging.settle_hold})


@dataclass
class Step:
    """A step of charging, and the state of the account after it."""

    act: Callable[[], Any]
    money: tuple[int, int]
    noted: str = ""


def reserving() -> Step:
    stage = note("reserved")
    return Step(lambda: charging.reserve(TERMS, "r", 10, 100, stage), (890, 110), "reserved")


def settling() -> Step:
    hold = reserve()
    return Step(lambda: charging.settle(hold, TokenUsage(10, 30), note("s")), (960, 0), "s")


def releasing() -> Step:
    hold = reserve()
    return Step(lambda: charging.release(hold, note("r")), (1000, 0), "r")


def crediting() -> Step:
    as_operator("create_account", email="a@example.com", password="long enough")
    same: dict[str, Any] = {"account": "a@example.com", "reason": "x", "idempotencyKey": "k"}

    def act() -> None:
        assert as_operator("credit", kopecks=500, **same)["balance"] == 500

    return Step(act, (1000, 0))


FREE = TERMS._replace(prices=Prices(0, 0))


def reserving_free() -> Step:
    return Step(lambda: charging.reserve(FREE, "f", 10, 100, note("f")), (1000, 0), "f")


def settling_free() -> Step:
    hold = charging.reserve(FREE, "f", 10, 100)
    return Step(lambda: charging.settle(hold, TokenUsage(10, 30), note("sf")), (1000, 0), "sf")


STEPS = [reserving, settling, releasing, crediting, reserving_free, settling_free]


@matrix("step, fault, when, times", STEPS, FAULTS, TIMES, [1, 3])
def test_lost_answers_do_not_repeat_a_step(
    step: Callable[[], Step], fault: Fault, when: str, times: int
) -> None:
    top_up(1000)
    made = step()
    with faulty(TRANSACTION, fault, when, times) as sent:
        made.act()
    assert len(sent) >= (2 if when == "before" else 1)
    assert money() == made.money
    assert not made.noted or noted(made.noted)
    books.audit("acc", "ws", "bot")


@pytest.mark.parametrize("step", STEPS)
def test_a_step_whose_answers_are_all_lost_is_a_503_and_happens_at_most_once(
    step: Callable[[], Step],
) -> None:
    top_up(1000)
    made = step()
    before = money()
    with faulty(TRANSACTION, closed, "before"), pytest.raises(OutcomeUnknownError):
        made.act()
    assert money() == before
    made.act()
    assert money() == made.money
    books.audit("acc", "ws", "bot")


@pytest.mark.parametrize("step", STEPS)
def test_a_conflict_after_a_lost_answer_finds_the_step_done(step: Callable[[], Step]) -> None:
    top_up(1000)
    made = step()
    with faulty(TRANSACTION, crashed, "after", 1) as sent, conflicting(sent):
        made.act()
    assert money() == made.money
    books.audit("acc", "ws", "bot")


@contextmanager
def conflicting(sent: list[str]) -> Iterator[None]:
    """Reject the second transaction."""

    def reject(**_: Any) -> None:
        if len(sent) == 2:
            raise conflict()

    events = connection().client.meta.events
    events.register_last(f"before-call.dynamodb.{TRANSACTION}", reject)
    try:
        yield
    finally:
        events.unregister(f"before-call.dynamodb.{TRANSACTION}", reject)


@pytest.mark.parametrize("reads", [2, 3])
class TestALateTransaction:
    """A transaction that is carried out after its answer was lost, once the next one is prepared.

    This happens right after the search for the first transaction failed, or right after the wallet
    was read again.
    """

    @contextmanager
    def late(self, reads: int) -> Iterator[None]:
        """Delay the first transaction until this many reads have been made."""
        client = connection().client
        send, kept = client._make_api_call, list[Any]()
        state = {"reads": 0}

        def call(name: str, request: dict[str, Any]) -> Any:
            if name == TRANSACTION and not kept:
                kept.append(request)
                raise ReadTimeoutError(endpoint_url="http://nowhere")
            if name != TRANSACTION:
                state["reads"] += 1
            answer = send(name, request)
            if state["reads"] == reads and len(kept) == 1:
                kept.append(send(TRANSACTION, kept[0]))
            return answer

        client._make_api_call = call
        try:
            yield
        finally:
            client._make_api_call = send
        assert len(kept) == 2

    def test_a_late_reservation_happens_once(self, reads: int) -> None:
        top_up(1000)
        with self.late(reads):
            hold = charging.reserve(TERMS, "r", 10, 100, note("reserved"))
        assert (hold.amount, money()) == (110, (890, 110))
        books.audit("acc", "ws", "bot")

    def test_a_late_reservation_of_the_whole_balance_is_not_refused(self, reads: int) -> None:
        top_up(110)
        with self.late(reads):
            assert charging.reserve(TERMS, "r", 10, 100).amount == 110
        books.audit("acc", "ws", "bot")

    def test_a_late_settlement_happens_once(self, reads: int) -> None:
        top_up(1000)
        hold = reserve()
        with self.late(reads):
            assert charging.settle(hold, TokenUsage(10, 30), note("s")).cost == 40
        assert money() == (960, 0)
        books.audit("acc", "ws", "bot")


class TestJob:
    def test_the_job_settles_a_crashed_request(
        self, usages: dict[str, TokenUsage], time: Time
    ) -> None:
        top_up(1000)
        reserve("produced")
        reserve("nothing")
        usages["produced"] = TokenUsage(10, 7)
        time.pass_by(minutes=9.9)
        assert run_jobs() == {"settle-hold": 0}
        time.pass_by(minutes=0.2)
        assert run_jobs() == {"settle-hold": 2}
        assert money() == (1000 - 17, 0)
        assert noted("produced")
        assert noted("nothing")
        books.audit("acc", "ws", "bot")

    def test_the_job_does_nothing_for_a_settled_request(
        self, usages: dict[str, TokenUsage], time: Time
    ) -> None:
        top_up(1000)
        charging.settle(reserve(), TokenUsage(10, 30))
        time.pass_by(hours=1)
        assert run_jobs() == {"settle-hold": 0}
        assert usages == {}

    def test_the_job_and_the_request_close_a_hold_once(
        self, usages: dict[str, TokenUsage], time: Time
    ) -> None:
        top_up(1000)
        hold = reserve()
        usages["r"] = TokenUsage(10, 7)
        time.pass_by(minutes=11)
        run_jobs()
        late = charging.settle(hold, TokenUsage(10, 90), note("late"))
        assert late == Settled("settled", 17, adopted=True)
        assert not noted("late")
        assert money() == (983, 0)

    def test_the_job_closes_a_request_without_a_price(
        self, usages: dict[str, TokenUsage], time: Time
    ) -> None:
        hold = charging.reserve(FREE, "f", 10, 100, message_id="m")
        usages["f"] = TokenUsage(10, 7)
        time.pass_by(minutes=11)
        assert run_jobs() == {"settle-hold": 1}
        assert noted("f")
        assert charging.settle(hold, TokenUsage(10, 7)).adopted

    def test_the_job_passes_the_request_to_recovery(
        self, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[Hold] = []
        monkeypatch.setattr(charging, "_recoveries", [])

        @charging.recovers_holds
        def recover(hold: Hold) -> Recovered:
            seen.append(hold)
            return Recovered(None, charging.nothing)

        top_up(1000)
        holds = [
            charging.reserve(terms, f"r{number}", 10, 100, message_id="m")
            for number, terms in enumerate((TERMS, FREE))
        ]
        time.pass_by(minutes=11)
        run_jobs()
        assert sorted(seen) == sorted(holds)

    def test_the_job_stays_scheduled_while_the_usage_is_unknown(
        self, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(charging, "_recoveries", [])
        top_up(1000)
        hold = reserve()
        time.pass_by(minutes=11)
        assert run_jobs() == {"settle-hold": 0}
        assert jobs.is_there(hold.job)
        assert money() == (890, 110)


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
        if budgets.budget("ws", "bot").rev == 1:
            limit(daily=50)

    with pytest.raises(DailyLimitError):
        charging.reserve(TERMS, "r", 10, 100, lower)
    assert money() == (1000, 0)


def test_changed_terms_do_not_affect_an_open_hold() -> None:
    top_up(1000)
    hold = reserve(terms=Terms("acc", "ws", "bot", "UTC", Prices(2 * 10**6, 10**6), "dear"))
    assert charging.settle(hold, TokenUsage(10, 10)).cost == 30


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
    hold, fetch = reserve(), charging.fetch
    torn: list[Any] = []

    def fetch_torn(keys: Any) -> Any:
        if torn:
            return fetch(keys)
        torn.extend(row for row in fetch(keys) if isinstance(row, ledger.HoldRow))
        charging.settle(hold, TokenUsage(10, 30), note("first"))
        return [*fetch(keys)[:2], *torn]

    monkeypatch.setattr(charging, "fetch", fetch_torn)
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

    def meanwhile(self, act: Callable[[], object]) -> Callable[[UnitOfWork], None]:
        """Return a stage that runs another action once."""
        left = [act]
        return lambda _: [left.pop()() for _ in left[:]] and None

    def test_a_bot_with_two_wallets_has_one_window(self) -> None:
        other = self.meanwhile(lambda: charging.reserve(self.HEIR, "other", 10, 100))
        charging.reserve(TERMS, "r", 10, 100, other)
        assert used() == (220, 220, 220)

    def test_a_bot_with_two_wallets_has_one_limit(self) -> None:
        limit(daily=150)
        charging.settle(reserve("first"), TokenUsage(10, 0))
        other = self.meanwhile(lambda: charging.reserve(self.HEIR, "other", 10, 100))
        with pytest.raises(DailyLimitError):
            charging.reserve(TERMS, "r", 10, 100, other)
        assert used() == (120, 120, 120)

    def test_an_old_hold_returns_nothing_to_a_window_that_another_wallet_began(
        self, time: Time
    ) -> None:
        hold = reserve()

        def next_day() -> None:
            time.pass_by(seconds=1)
            charging.reserve(self.HEIR, "other", 10, 100)

        charging.settle(hold, TokenUsage(10, 0), self.meanwhile(next_day))
        assert used() == (110, 120, 120)
        assert money() == (990, 0)


def test_a_conflict_after_a_lost_answer_may_be_the_steps_own() -> None:
    """A session that is busy may be locked by the very request whose answer was lost."""
    top_up(1000)

    def lock_session(unit: UnitOfWork) -> None:
        if noted("session"):
            raise ConflictError("busy")
        note("session")(unit)

    with faulty(TRANSACTION, closed, "after", 1):
        hold = charging.reserve(TERMS, "r", 10, 100, lock_session)
    assert (hold.amount, money()) == (110, (890, 110))
    with pytest.raises(ConflictError):
        charging.reserve(TERMS, "another", 10, 100, lock_session)
    assert money() == (890, 110)

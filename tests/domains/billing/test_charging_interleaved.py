"""Tests of money while steps start, crash or lose their responses in any order.

Interruptions happen between two requests to the database. The process crashes, a response is
lost, or another process runs a whole step.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ConnectionClosedError
from hypothesis import given
from hypothesis import strategies as st
from pynamodb.attributes import NumberAttribute

from chalicelib.core import retry
from chalicelib.core.errors import ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.rules.spending_windows import WINDOWS, SpendingError
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.chat.flows import exchange
from chalicelib.domains.chat.flows.exchange import Recovered
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Time, call_operator
from tests.domains.billing import books
from tests.support.effort import examples

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

PRICES = [Prices(10**6, 10**6), Prices(300_000, 1_700_000), Prices(0, 0)]


class CrashError(BaseException):
    """The simulated process has crashed."""


class TallyRow(ControlRow):
    """Side effects that the steps of a request have written. Each is written once."""

    reserved = NumberAttribute(default=0)
    closed = NumberAttribute(default=0)


class Interruption(NamedTuple):
    """An event before or after the request with this number within a step."""

    request: int
    is_after: bool
    what: Any
    """``crash``, ``lose`` (the response, so always after the request), or another action."""


class Action(NamedTuple):
    """An action of a process. The drawn ``numbers`` are its parameters."""

    name: str
    numbers: tuple[int, int, int]
    interruption: Interruption | None = None


@contextmanager
def interrupted(interruption: Interruption | None, act: Callable[[Action], None]) -> Iterator[None]:
    """Run an event between the requests that follow."""
    request_count, busy = 0, False

    def happens(*, is_after: bool) -> None:
        nonlocal request_count, busy
        if busy or interruption is None:
            return
        request_count += not is_after
        if request_count != interruption.request or is_after != interruption.is_after:
            return
        if interruption.what == "crash":
            raise CrashError
        if interruption.what == "lose":
            raise ConnectionClosedError(endpoint_url="http://nowhere")
        busy = True
        try:
            act(interruption.what)
        finally:
            busy = False

    def interrupt_before(**_: Any) -> None:
        happens(is_after=False)

    def interrupt_after(**_: Any) -> None:
        happens(is_after=True)

    events = connection().client.meta.events
    events.register_first("before-call.dynamodb", interrupt_before)
    events.register_first("after-call.dynamodb", interrupt_after)
    try:
        yield
    finally:
        events.unregister("before-call.dynamodb", interrupt_before)
        events.unregister("after-call.dynamodb", interrupt_after)


@dataclass
class World:
    """An account with two bots, and processes that start and crash."""

    time: Time
    email: str
    account: str
    workspace: str = field(default_factory=new_id)
    agents: tuple[str, str] = field(default_factory=lambda: (new_id(), new_id()))
    holds: list[Hold] = field(default_factory=list)
    usages: dict[str, TokenUsage | None] = field(default_factory=dict)
    """Usage that each request has recorded, for the recovery job."""
    request_count: int = 0

    def act(self, action: Action) -> None:
        """Run an action. A crash ends its process."""
        try:
            with interrupted(action.interruption, self.act):
                getattr(self, action.name)(*action.numbers)
        except (CrashError, SpendingError, ConflictError):
            pass

    def tally(self, request_id: str) -> tuple[int, int]:
        row = TallyRow.find(f"TALLY#{request_id}", "-")
        return (row.reserved, row.closed) if row else (0, 0)

    def note(self, request_id: str, what: str) -> Callable[[UnitOfWork], None]:
        row = TallyRow(f"TALLY#{request_id}", "-")
        action = getattr(TallyRow, what).add(1)
        either = TallyRow.pk.exists() | TallyRow.pk.does_not_exist()
        return lambda unit: unit.update(row, [action], either)

    def reserve(self, which: int, tokens: int, max_output: int) -> None:
        self.request_count += 1
        request_id = f"{self.workspace}-{self.request_count}"
        agent = self.agents[which % 2]
        terms = Terms(
            self.account, self.workspace, agent, "Europe/Moscow", PRICES[which % 3], "model"
        )
        self.usages[request_id] = TokenUsage(tokens, max_output // 2) if which % 5 else None
        stage = self.note(request_id, "reserved")
        self.holds.append(
            charging.reserve(
                terms, request_id, tokens, max_output_tokens=max_output + 1, stage=stage
            )
        )

    def settle(self, which: int, tokens: int, output: int) -> None:
        if self.holds:
            hold = self.holds[which % len(self.holds)]
            charging.settle(hold, TokenUsage(tokens, output), self.note(hold.request_id, "closed"))

    def release(self, which: int, *_: int) -> None:
        if self.holds:
            hold = self.holds[which % len(self.holds)]
            charging.release(hold, self.note(hold.request_id, "closed"))

    def recover(self, hold: Hold) -> Recovered:
        return Recovered(self.usages[hold.request_id], self.note(hold.request_id, "closed"))

    def run_jobs(self, *_: int) -> None:
        self.time.pass_by(minutes=11)
        jobs.run({ledger.SETTLE_HOLD: exchange.settle_hold})

    def credit(self, kopecks: int, *_: int) -> None:
        self._change("credit", kopecks + 1)

    def adjust(self, kopecks: int, down: int, _: int) -> None:
        self._change("adjust", -kopecks - 1 if down % 2 else kopecks + 1)

    def _change(self, operation: str, kopecks: int) -> None:
        same = {"account": self.email, "reason": "x", "idempotencyKey": new_id()}
        answers = [call_operator(operation, kopecks=kopecks, **same) for _ in range(2)]
        assert answers[0] == answers[1]

    def limit(self, which: int, kopecks: int, lifted: int) -> None:
        window = WINDOWS[which % 3]

        def stage(unit: UnitOfWork) -> None:
            budget = budgets.budget(self.workspace, agent_id=self.agents[which % 2])
            budgets.set_limits(unit, budget, {window: None if lifted % 3 == 0 else kopecks})

        # With an event, as operations have. A transaction whose response is lost is sent again.
        run_unit(self.workspace, AuditEvent("set_bot_limits", "operator"), stage)

    def pass_time(self, hours: int, *_: int) -> None:
        self.time.pass_by(hours=hours % 40)

    def check(self) -> None:
        books.audit(self.account, self.workspace, *self.agents)
        rows = {row.sk: row for row in ledger.holds(self.account)}
        for request_id in self.usages:
            reserved, closed = self.tally(request_id)
            if request_id in rows:
                is_open = rows[request_id].state == ledger.OPEN
                assert (reserved, closed) == (1, 0 if is_open else 1)
            else:  # refused, crashed before, or without a price
                assert 0 <= closed <= reserved <= 1


names = st.sampled_from(
    ["reserve"] * 6 + ["settle"] * 4 + ["release"] * 2 + ["credit"] * 2
    + ["run_jobs", "adjust", "limit", "pass_time"]
)  # fmt: skip
numbers = st.tuples(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200))
requests = st.integers(1, 5)
quiet = st.tuples(names, numbers).map(lambda drawn: Action(*drawn))
interruptions = st.one_of(
    st.none(),
    st.tuples(requests, st.booleans(), st.just("crash") | quiet).map(lambda d: Interruption(*d)),
    requests.map(lambda request: Interruption(request, is_after=True, what="lose")),
)
actions = st.tuples(names, numbers, interruptions).map(lambda drawn: Action(*drawn))


@pytest.fixture
def world_of(time: Time, monkeypatch: pytest.MonkeyPatch) -> Callable[[], World]:
    """Return a function that creates a new world for each example."""
    monkeypatch.setattr(retry, "sleep", lambda _: None)
    known: list[World] = []

    def recover(hold: Hold) -> Recovered:
        (world,) = [w for w in known if w.workspace == hold.workspace_id]
        return world.recover(hold)

    monkeypatch.setattr(exchange, "recover", recover)

    def make() -> World:
        # Ten minutes before midnight in Moscow. The next day is a Monday and the first of a month.
        time.now = datetime(2027, 1, 31, 20, 50, tzinfo=UTC)
        email = f"{new_id()}@example.com"
        account = call_operator("create_account", email=email, password="long enough")
        known.append(World(time, email, account["accountId"]))
        return known[-1]

    return make


@examples(80)
@given(first=st.integers(0, 3000), happening=st.lists(actions, min_size=1, max_size=14))
def test_all_totals_are_right_after_every_step(
    world_of: Callable[[], World], first: int, happening: list[Action]
) -> None:
    world = world_of()
    world.credit(first)
    for action in happening:
        world.act(action)
        world.check()
    for _ in range(3):
        world.run_jobs()
    world.check()
    assert books.open_holds(world.account) == []
    assert ledger.wallet(world.account).reserved == 0
    for request_id in world.usages:
        reserved, closed = world.tally(request_id)
        assert reserved == closed

"""The recovery job and late transactions of charging."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Settled
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.chat.flows import exchange
from chalicelib.domains.chat.flows.exchange import Recovered
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from tests.conftest import Time
from tests.domains.billing import books
from tests.domains.billing.charging_faults.helpers import FREE, note, noted
from tests.domains.billing.test_charging import TERMS, money, reserve, top_up
from tests.fakes.dynamodb_faults import (
    TRANSACTION,
)

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


@pytest.fixture
def usages(monkeypatch: pytest.MonkeyPatch) -> dict[str, TokenUsage]:
    """Usage that requests have recorded, for the recovery job."""
    usage_by_request: dict[str, TokenUsage] = {}

    def recover(hold: Hold) -> Recovered:
        return Recovered(usage_by_request.get(hold.request_id), note(hold.request_id))

    monkeypatch.setattr(exchange, "recover", recover)
    return usage_by_request


def unavailable(_: Hold) -> Recovered:
    raise UnavailableError


def run_jobs() -> dict[str, int]:
    return jobs.run({ledger.SETTLE_HOLD: exchange.settle_hold})


@pytest.mark.parametrize("reads", [2, 3])
class TestALateTransaction:
    """A transaction whose response was lost is carried out while the next one is prepared.

    This happens right after the search for the first transaction failed, or right after the wallet
    was read again.
    """

    @contextmanager
    def late(self, reads: int) -> Iterator[None]:
        """Delay the first transaction until this many reads have been made."""
        client = connection().client
        send, delayed = client._make_api_call, list[Any]()
        state = {"reads": 0}

        def call(name: str, request: dict[str, Any]) -> Any:
            if name == TRANSACTION and not delayed:
                delayed.append(request)
                raise ReadTimeoutError(endpoint_url="http://nowhere")
            if name != TRANSACTION:
                state["reads"] += 1
            answer = send(name, request)
            if state["reads"] == reads and len(delayed) == 1:
                delayed.append(send(TRANSACTION, delayed[0]))
            return answer

        client._make_api_call = call
        try:
            yield
        finally:
            client._make_api_call = send
        assert len(delayed) == 2

    def test_a_late_reservation_happens_once(self, reads: int) -> None:
        top_up(1000)
        with self.late(reads):
            hold = charging.reserve(TERMS, "r", 10, max_output_tokens=100, stage=note("reserved"))
        assert (hold.amount, money()) == (110, (890, 110))
        books.audit("acc", "ws", "bot")

    def test_a_late_reservation_of_the_whole_balance_is_not_refused(self, reads: int) -> None:
        top_up(110)
        with self.late(reads):
            assert charging.reserve(TERMS, "r", 10, max_output_tokens=100).amount == 110
        books.audit("acc", "ws", "bot")

    def test_a_late_settlement_happens_once(self, reads: int) -> None:
        top_up(900)
        hold = reserve()
        with self.late(reads):
            assert charging.settle(hold, TokenUsage(10, 30), note("s")).cost == 40
        assert money() == (860, 0)
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
        hold = charging.reserve(FREE, "f", 10, max_output_tokens=100, message_id="m")
        usages["f"] = TokenUsage(10, 7)
        time.pass_by(minutes=11)
        assert run_jobs() == {"settle-hold": 1}
        assert noted("f")
        assert charging.settle(hold, TokenUsage(10, 7)).adopted

    def test_the_job_passes_the_request_to_recovery(
        self, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[Hold] = []

        def recover(hold: Hold) -> Recovered:
            seen.append(hold)
            return Recovered(None, charging.nothing)

        monkeypatch.setattr(exchange, "recover", recover)
        top_up(1000)
        holds = [
            charging.reserve(terms, f"r{number}", 10, max_output_tokens=100, message_id="m")
            for number, terms in enumerate((TERMS, FREE))
        ]
        time.pass_by(minutes=11)
        run_jobs()
        assert sorted(seen) == sorted(holds)

    def test_the_job_stays_scheduled_while_the_usage_is_unknown(
        self, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exchange, "recover", unavailable)
        top_up(1000)
        hold = reserve()
        time.pass_by(minutes=11)
        assert run_jobs() == {"settle-hold": 0}
        assert jobs.is_there(hold.job)
        assert money() == (890, 110)


def test_the_job_of_a_closed_hold_recovers_nothing(
    usages: dict[str, TokenUsage], monkeypatch: pytest.MonkeyPatch
) -> None:
    top_up(1000)
    hold = reserve()
    charging.settle(hold, TokenUsage(10, 30))
    recovered: list[Hold] = []
    monkeypatch.setattr(exchange, "recover", recovered.append)
    payload = {"account_id": "acc", "request_id": hold.request_id}
    exchange.settle_hold(jobs.row(ledger.SETTLE_HOLD, "ws", payload, hold.due_at))
    assert recovered == []
    assert money() == (960, 0)


def test_the_job_of_a_hold_that_was_never_written_recovers_nothing(
    usages: dict[str, TokenUsage], time: Time
) -> None:
    payload = {"account_id": "acc", "request_id": "unknown"}
    job = jobs.row(ledger.SETTLE_HOLD, "ws", payload)
    assert charging.find_open_hold(job) is None
    exchange.settle_hold(job)
    assert not noted("unknown")


def test_the_job_ignores_a_hold_for_ten_minutes(usages: dict[str, TokenUsage], time: Time) -> None:
    top_up(1000)
    reserve()
    time.pass_by(minutes=9, seconds=59)
    run_jobs()
    assert money() == (890, 110)
    time.pass_by(seconds=1)
    run_jobs()
    assert money() == (1000, 0)

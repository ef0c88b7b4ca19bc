"""An SMS is charged exactly once, whatever comes between the hold and the settlement."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock, deadline, retry
from chalicelib.core.errors import ConflictError, UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.domains.billing.flows import sms_charging
from chalicelib.domains.billing.flows.sms_charging import SmsHold
from chalicelib.domains.billing.rules.spending_windows import InsufficientBalanceError
from chalicelib.domains.billing.store import ledger, sms_holds, spent
from chalicelib.domains.billing.store.ledger import HoldTakenError
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import run_concurrently
from tests.domains.billing.test_charging import top_up
from tests.fakes.dynamodb_faults import FAULTS, TIMES, TRANSACTION, Fault, closed, faulty
from tests.support.effort import matrix

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]
PRICE = 800


def nothing(_: UnitOfWork) -> None:
    """Stage no other writes."""


def new_hold(**fields: Any) -> SmsHold:
    """Return a hold of two segments that is not reserved yet."""
    now = clock.now()
    hold = SmsHold(
        request_id=new_id(),
        account_id="acc",
        workspace_id="ws",
        country="RU",
        price=PRICE,
        segments=2,
        day=now.date(),
        due_at=now + timedelta(minutes=10),
    )
    return hold._replace(**fields)


def reserved(**fields: Any) -> SmsHold:
    """Return a hold that is reserved."""
    hold = new_hold(**fields)
    sms_charging.reserve(hold, {}, nothing)
    return hold


def money() -> tuple[int, int]:
    """Return the available and the reserved money."""
    wallet = ledger.wallet("acc")
    return int(wallet.available), int(wallet.reserved)


def audit() -> None:
    """Check that the ledger, the holds and the counters of an account agree."""
    entries = ledger.entries("acc")[::-1]
    wallet, rows = ledger.wallet("acc"), sms_holds.read_all("acc")
    assert [entry.seq for entry in entries] == list(range(1, int(wallet.seq) + 1))
    assert wallet.available == sum(entry.amount - entry.held for entry in entries)
    assert wallet.reserved == sum(row.amount for row in rows if row.state == ledger.OPEN)
    for row in rows:
        reserve, *closing = (entry for entry in entries if entry.request_id == row.sk)
        assert (reserve.kind, reserve.held) == (ledger.RESERVE, row.amount)
        assert jobs.is_there(sms_holds.hold_of(row).job) == (row.state == ledger.OPEN)
        if row.state == ledger.OPEN:
            assert not closing
            continue
        (close,) = closing
        kind = ledger.SMS if row.state == ledger.SETTLED else ledger.RELEASE
        assert (close.kind, close.amount, close.held) == (kind, -row.cost, -row.amount)
    settled = [row for row in rows if row.state == ledger.SETTLED]
    today = clock.now().date()
    assert spent.read_sms("ws", today - timedelta(2), last=today) == (
        sum(row.cost for row in settled),
        len(settled),
        sum(row.charged_segments for row in settled),
    )


@pytest.fixture
def instant_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses take no real time, but they move the clock of deadlines."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(retry, "sleep", pause)
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])


def test_an_sms_is_held_and_then_charged_for_its_segments() -> None:
    top_up(10_000)
    hold = reserved()
    assert money() == (8_400, 1_600)
    audit()
    assert sms_charging.settle(hold, 1, nothing) == (800, False)
    assert money() == (9_200, 0)
    audit()


@pytest.mark.parametrize(("segments", "cost"), [(1, 800), (2, 1_600), (3, 1_600), (9, 1_600)])
def test_more_segments_than_were_held_are_not_charged(segments: int, cost: int) -> None:
    top_up(10_000)
    assert sms_charging.settle(reserved(), segments, nothing).kopecks == cost
    audit()


def test_an_sms_that_was_not_sent_costs_nothing() -> None:
    top_up(10_000)
    sms_charging.release(reserved())
    assert money() == (10_000, 0)
    audit()


def test_a_price_that_changes_meanwhile_is_that_of_the_hold() -> None:
    top_up(10_000)
    hold = reserved(price=500)
    found = sms_charging.find_open("acc", request_id=hold.request_id)
    assert found == hold
    sms_charging.settle(found, 2, nothing)
    assert money() == (9_000, 0)


@pytest.mark.parametrize("balance", [0, 1, 1_599])
def test_an_sms_that_the_balance_does_not_cover_holds_nothing(balance: int) -> None:
    if balance:
        top_up(balance)
    with pytest.raises(InsufficientBalanceError):
        reserved()
    assert money() == (balance, 0)
    assert not sms_holds.read_all("acc")


def test_a_refused_write_of_the_caller_holds_nothing() -> None:
    top_up(10_000)

    def refuse(unit: UnitOfWork) -> None:
        raise ConflictError("no")

    with pytest.raises(ConflictError):
        sms_charging.reserve(new_hold(), {}, refuse)
    assert money() == (10_000, 0)


@pytest.mark.parametrize(
    "close", [sms_charging.release, lambda h: sms_charging.settle(h, 2, nothing)]
)
def test_a_second_closing_adopts_the_first_one(close: Callable[[SmsHold], Any]) -> None:
    top_up(10_000)
    hold = reserved()
    sms_charging.settle(hold, 1, nothing)
    assert close(hold) == (800, True)
    assert money() == (9_200, 0)
    audit()


@pytest.mark.usefixtures("instant_pauses")
@matrix("fault, when, times", FAULTS, TIMES, [1, 3])
def test_lost_responses_charge_once(fault: Fault, when: str, times: int) -> None:
    top_up(10_000)
    hold = new_hold()
    with faulty(TRANSACTION, fault, when, times):
        sms_charging.reserve(hold, {}, nothing)
    assert money() == (8_400, 1_600)
    audit()
    with faulty(TRANSACTION, fault, when, times):
        sms_charging.settle(hold, 2, nothing)
    assert money() == (8_400, 0)
    audit()


def test_two_that_close_a_hold_at_once_charge_once() -> None:
    top_up(10_000)
    hold = reserved()
    acts = [lambda: sms_charging.settle(hold, 2, nothing), lambda: sms_charging.release(hold)]
    outcomes = run_concurrently(8, lambda number: acts[number % 2]())
    assert [outcome.adopted for outcome in outcomes].count(False) == 1
    assert len({outcome.kopecks for outcome in outcomes}) == 1
    audit()


def test_many_sms_at_once_spend_no_more_than_the_balance() -> None:
    top_up(5 * 1_600)

    def send(_: int) -> bool:
        try:
            sms_charging.settle(reserved(), 2, nothing)
        except InsufficientBalanceError:
            return False
        return True

    assert run_concurrently(12, send).count(True) == 5
    assert money() == (0, 0)
    audit()


def test_one_hold_is_opened_once() -> None:
    top_up(10_000)
    hold = reserved()

    def again(unit: UnitOfWork) -> None:
        sms_holds.stage_open(unit, ledger.wallet("acc"), hold, {})

    with pytest.raises(HoldTakenError):
        run_unit("ws", None, again)
    assert money() == (8_400, 1_600)


@pytest.mark.usefixtures("instant_pauses")
def test_an_unavailable_database_leaves_the_hold_for_the_job() -> None:
    top_up(10_000)
    hold = reserved()
    with faulty(TRANSACTION, closed, "before"), pytest.raises(UnavailableError):
        sms_charging.settle(hold, 2, nothing)
    assert jobs.is_there(hold.job)
    assert sms_charging.find_open("acc", request_id=hold.request_id) == hold
    audit()

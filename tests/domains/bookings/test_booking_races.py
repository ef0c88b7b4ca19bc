"""Tests that concurrent bookings never sell a time twice, and that no possible booking fails."""

import random
from collections import Counter
from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest
from urllib3.util import Timeout

from chalicelib.application.invoke import invoke
from chalicelib.core import deadline
from chalicelib.core import jobs as job_kinds
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from tests.conftest import Answer, Api, Owner, Time, run_concurrently
from tests.factories.salon import ALL_DAYS, CREATE, Salon, bookings_of, check_calendars
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.store

ROUND_THE_CLOCK = [{"weekdays": ALL_DAYS, "start": "00:00", "end": "24:00"}]


def outcomes(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    return Counter((answer.status, answer.data.get("code")) for answer in answers)


@pytest.fixture
def _slow_commits() -> Iterator[None]:
    """Make every commit take 25 ms longer."""

    def wait(**_: Any) -> None:
        sleep(0.025)

    events, name = connection().client.meta.events, "before-send.dynamodb.TransactWriteItems"
    events.register(name, wait)
    yield
    events.unregister(name, wait)


@pytest.fixture(autouse=True)
def _late_answers(database: None) -> Iterator[None]:
    """Wait as long as DynamoDB Local needs, which runs one transaction after another.

    On a busy machine some of twenty concurrent requests wait longer than the service would wait for
    AWS.
    """
    # botocore has no public option for the timeouts of open pools.
    pools = connection().client._endpoint.http_session._manager.pools
    timeouts = {key: pools[key].timeout for key in pools.keys()}  # noqa: SIM118  not a mapping
    for key in timeouts:
        pools[key].timeout = Timeout(connect=PATIENCE, read=PATIENCE)
    yield
    for key, timeout in timeouts.items():
        pools[key].timeout = timeout


@pytest.mark.slow
def test_of_twenty_concurrent_requests_for_one_time_one_succeeds(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{}], ROUND_THE_CLOCK)
    for number in range(20):
        start = f"2027-01-{18 + number // 10}T{10 + number % 10}:00"
        answers = run_concurrently(
            20, lambda n, start=start: salon.try_to_book(start, f"Client {n}")
        )
        assert outcomes(answers) == {(200, None): 1, (409, "slot_unavailable"): 19}
    check_calendars(owner.workspace.id, salon.resources)
    assert len(bookings_of(owner.workspace.id)) == 20


@pytest.mark.usefixtures("_slow_commits")
@pytest.mark.slow
def test_fifty_concurrent_bookings_of_different_times_all_succeed(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{"timezone": "UTC"}], ROUND_THE_CLOCK, durationMin=15)
    starts = [f"2027-01-18T{4 + n // 4:02}:{n % 4 * 15:02}" for n in range(50)]
    answers = run_concurrently(50, lambda n: salon.try_to_book(starts[n], f"Client {n}"))
    assert outcomes(answers) == {(200, None): 50}
    check_calendars(owner.workspace.id, salon.resources)
    assert len(bookings_of(owner.workspace.id)) == 50


@pytest.mark.usefixtures("_slow_commits")
@pytest.mark.slow
def test_fifty_concurrent_visitors_get_the_times_that_they_choose(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{"timezone": "UTC"}], ROUND_THE_CLOCK, durationMin=15)

    def book(number: int) -> int:
        start = f"2027-01-18T{4 + number // 4:02}:{number % 4 * 15:02}:00Z"
        body = salon.order(start, f"Client {number}")
        visitor, create = VisitorPrincipal(visitor=str(number)), REGISTRY["create_public_booking"]
        # As a request of HTTP, which all visitors of a test would send from one address.
        with deadline.within(deadline.REQUEST_SECONDS):
            return invoke(create, visitor, lambda: body, request_id=new_id()).status

    assert run_concurrently(50, book) == [200] * 50
    check_calendars(owner.workspace.id, salon.resources)
    assert len(bookings_of(owner.workspace.id)) == 50


def test_seats_are_sold_up_to_the_capacity(api: Api, owner: Owner, time: Time) -> None:
    salon = Salon.opened(api, [{"capacity": 5}])
    answers = run_concurrently(20, lambda n: salon.try_to_book("2027-01-18T10:00", f"Client {n}"))
    assert outcomes(answers) == {(200, None): 5, (409, "slot_unavailable"): 15}
    check_calendars(owner.workspace.id, salon.resources, capacity=5)


def test_concurrent_bookings_of_any_resource_use_all_resources(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{}] * 4)
    answers = run_concurrently(12, lambda n: salon.try_to_book("2027-01-18T10:00", f"Client {n}"))
    assert outcomes(answers) == {(200, None): 4, (409, "slot_unavailable"): 8}
    check_calendars(owner.workspace.id, salon.resources)


def test_concurrent_moves_and_bookings_of_one_time_give_it_to_one(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{}, {}])
    movers = [
        salon.book(f"2027-01-18T{10 + n}:00", f"Client {n}", resourceId=salon.resources[n % 2])
        for n in range(6)
    ]

    def act(number: int) -> Answer:
        place = {"startAt": "2027-01-19T12:00", "resourceId": salon.resource}
        if number < len(movers):
            return salon.set_status(movers[number]["id"], "confirmed", **place)
        return salon.try_to_book(place["startAt"], resourceId=salon.resource)

    for _ in range(3):
        answers = run_concurrently(12, act)
        assert outcomes(answers) == {(200, None): 1, (409, "slot_unavailable"): 11}
        check_calendars(owner.workspace.id, salon.resources)
        winner = next(answer.data["booking"]["id"] for answer in answers if answer.status == 200)
        salon.set_status(winner, "cancelled")
        movers = [booking for booking in movers if booking["id"] != winner]


@pytest.mark.parametrize("whole_workspace", [False, True])
def test_a_booking_made_while_time_off_is_created_is_reported_or_refused(
    whole_workspace: bool, api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{}])

    def act(number: int) -> Answer:
        if number == 0:
            body = {"startAt": "2027-01-18", "endAt": "2027-01-18"}
            whose = {} if whole_workspace else {"resourceId": salon.resource}
            return api.call("POST", "/api/resources/create-time-off", body | whose)
        return salon.try_to_book(f"2027-01-18T{8 + number:02}:00", f"Client {number}")

    off, *answers = run_concurrently(10, act)
    assert off.status == 200
    assert {answer.status for answer in answers} <= {200, 409}
    assert off.data["affectedTotal"] == sum(answer.status == 200 for answer in answers)
    assert salon.starts(first="2027-01-18", to="2027-01-18") == []
    check_calendars(owner.workspace.id, salon.resources)


def test_a_concurrent_lapse_payment_and_booking_give_the_time_to_one(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api, [{}], requirePayment=True)
    for number in range(5):
        start = f"2027-01-18T{10 + number}:00"
        hold_id = salon.book(start)["id"]
        time.pass_by(minutes=31)

        def act(n: int, start: str = start, hold_id: str = hold_id) -> object:
            if n == 0:
                return jobs.run(job_kinds.JOB_HANDLERS)
            if n < 3:
                return salon.set_status(hold_id, "confirmed")
            return salon.try_to_book(start, f"Client {n}", status="confirmed")

        run_concurrently(6, act)
        check_calendars(owner.workspace.id, salon.resources)
        blocking = [
            row
            for row in bookings_of(owner.workspace.id)
            if row.status == "confirmed" and row.starts_at.hour == 7 + number
        ]
        assert len(blocking) == 1


def test_ten_concurrent_calls_with_one_idempotency_key_book_once(
    api: Api, owner: Owner, time: Time
) -> None:
    salon = Salon.opened(api)
    body = salon.order("2027-01-18T10:00")
    answers = run_concurrently(
        10, lambda _: api.call("POST", CREATE, body, {"Idempotency-Key": "k"})
    )
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    check_calendars(owner.workspace.id, salon.resources)


@pytest.mark.parametrize("seed", range(4))
def test_random_concurrent_actions_never_sell_a_seat_twice(
    seed: int, api: Api, owner: Owner, time: Time
) -> None:
    capacity = 1 + seed % 2
    salon = Salon.opened(
        api,
        [{"capacity": capacity}] * 2,
        ROUND_THE_CLOCK,
        durationMin=60,
        slotStepMin=30,
        bufferAfterMin=15,
        requirePayment=seed >= 2,
    )
    booking_ids = [salon.book(f"2027-01-18T0{hour}:00")["id"] for hour in range(4)]

    def act(number: int) -> None:
        dice = random.Random(f"{seed} {number}")
        for _ in range(4):
            start = f"2027-01-18T{dice.randrange(5):02}:{dice.choice(['00', '30'])}"
            one = dice.choice(booking_ids)
            match dice.randrange(4):
                case 0:
                    resource = dice.choice(salon.resources)
                    answer = salon.try_to_book(start, f"C {number}", resourceId=resource)
                case 1:
                    status = dice.choice(["cancelled", "no_show"])
                    answer = salon.set_status(one, status)
                case 2:
                    answer = salon.set_status(one, dice.choice(["confirmed", "pending_payment"]))
                case _:
                    place = {"startAt": start, "resourceId": dice.choice(salon.resources)}
                    answer = salon.set_status(one, "confirmed", **place)
            assert answer.status in {200, 409}, answer.body

    run_concurrently(8, act)
    check_calendars(owner.workspace.id, salon.resources, capacity)

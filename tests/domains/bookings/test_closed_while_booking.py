"""Nobody books a time that is closed before the booking is committed, at whatever moment.

A day is closed before each request of a call, from the first one that reads what decides to the
transaction of the booking. The order of the reads alone cannot show whether they are right.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chalicelib.core.errors import AppError
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Api, Owner, Time
from tests.domains.notifications.clients import BOOK, visitor
from tests.domains.payments.checkout import Checkout, call_visitor
from tests.domains.payments.conftest import checkout, inbox, shop  # noqa: F401  fixtures
from tests.factories.booking_links import FORM, requested
from tests.factories.chat import new_bot, propose_booking
from tests.factories.salon import DAILY, Salon, bookings_of, check_calendars
from tests.support.effort import slow_but_for
from tests.support.interleaving import before_request
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import GRACE, BookingPage

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("large_share")]

FIRST_START = datetime(2027, 1, 16, 10, tzinfo=ZoneInfo("Europe/Moscow"))
DECIDING = (b"#LOCK", b"#TIME_OFF", b"#SCHEDULE")
"""Parts of the keys of rows that decide whether a day is open."""
MOMENTS = 3
"""Requests of a call that books, from the first that decides, at least: rows, time off, commit."""


@dataclass
class World:
    """A salon whose days are booked and closed, one for each moment of a closure."""

    owner: Owner
    salon: Salon

    @property
    def api(self) -> Api:
        return self.salon.api

    def booked(self, day: date) -> set[str]:
        """Return the ids of the bookings that occupy time on a day."""
        rows = bookings_of(self.owner.workspace.id)
        return {row.id for row in rows if row.blocks and row.starts_at.date() == day}


def open_salon(api: Api) -> Salon:
    staff: list[dict[str, Any]] = [{"capacity": 2}, {}]
    return Salon.opened(api, staff, bufferBeforeMin=10, bufferAfterMin=15)


@pytest.fixture
def world(owner: Owner, api: Api, time: Time) -> World:
    return World(owner, open_salon(api))


def day_after(start: datetime) -> str:
    return (start + timedelta(days=1)).isoformat()


Caller = Callable[[World, datetime], Callable[[], object]]
"""Prepares a call that books a start, and returns the call."""


def by_key(world: World, start: datetime) -> Callable[[], object]:
    return lambda: world.salon.try_to_book(start.isoformat())


def by_key_in_local_time(world: World, start: datetime) -> Callable[[], object]:
    return lambda: world.salon.try_to_book(f"{start:%Y-%m-%dT%H:%M}")


def by_key_with_one_of_the_staff(world: World, start: datetime) -> Callable[[], object]:
    staff = world.salon.resource
    return lambda: world.salon.try_to_book(start.isoformat(), resourceId=staff)


def by_visitor(world: World, start: datetime) -> Callable[[], object]:
    body = world.salon.order(start.isoformat())
    return lambda: visitor.call("POST", BOOK, body)


def on_page(world: World, start: datetime) -> Callable[[], object]:
    page = BookingPage.opened(world.owner, world.salon)
    return lambda: page.send(start.isoformat())


def by_link_of_an_assistant(world: World, start: datetime) -> Callable[[], object]:
    page = BookingPage.opened(world.owner, world.salon)
    assistant = Assistant.admitted(page)
    link = assistant.call(
        "prepare_booking", serviceId=world.salon.service, startAt=start.isoformat()
    )["url"]
    prepared = link.partition("prepared=")[2].partition("&")[0]
    return lambda: page.send(start.isoformat(), prepared=prepared)


def by_link_in_an_email(world: World, start: datetime) -> Callable[[], object]:
    BookingPage.opened(world.owner, world.salon)
    email = f"grace{start:%m%d}@example.com"
    on_page = {
        "workspace": world.owner.workspace.slug,
        "serviceId": world.salon.service,
        "startAt": start.isoformat(),
        "client": GRACE | {"email": email},
        "language": "en",
    }
    token = requested(world.owner.workspace.id, on_page)
    return lambda: visitor.call("POST", f"/booking/confirm/{token}", b"", FORM)


def by_proposal_of_a_bot(world: World, start: datetime) -> Callable[[], object]:
    bot = new_bot(world.owner, capabilities=["catalog", "slots", "booking"])
    session, proposal = propose_booking(bot.id, world.salon.service, world.salon.resource, start)
    path = f"/api/agents/public/actions/{proposal.id}"
    return lambda: visitor.call("POST", path, {"sessionId": session, "decision": "confirm"})


def move(world: World, start: datetime) -> Callable[[], object]:
    booking = world.salon.book(day_after(start))
    return lambda: world.salon.set_status(booking["id"], "confirmed", startAt=start.isoformat())


def move_to_another_of_the_staff(world: World, start: datetime) -> Callable[[], object]:
    first, second = world.salon.resources
    booking = world.salon.book(day_after(start), resourceId=first)
    place = {"startAt": start.isoformat(), "resourceId": second}
    return lambda: world.salon.set_status(booking["id"], "confirmed", **place)


def move_by_visitor(world: World, start: datetime) -> Callable[[], object]:
    booking = visitor.post(BOOK, world.salon.order(day_after(start), f"Ada {start:%d}"))
    token = booking["manageUrl"].rpartition("/")[2]

    def call() -> None:
        with suppress(AppError):
            call_visitor("move_public_booking", {"token": token, "startAt": start.isoformat()})

    return call


CALLERS: dict[str, Caller] = {
    caller.__name__.replace("_", " "): caller
    for caller in (
        by_key,
        by_key_in_local_time,
        by_key_with_one_of_the_staff,
        by_visitor,
        on_page,
        by_link_of_an_assistant,
        by_link_in_an_email,
        by_proposal_of_a_bot,
        move,
        move_to_another_of_the_staff,
        move_by_visitor,
    )
}


def take_time_off(world: World, day: date, **fields: str) -> None:
    body = {"startAt": day.isoformat(), "endAt": day.isoformat(), **fields}
    world.api.post("/api/resources/create-time-off", body)


def take_time_off_each(world: World, day: date) -> None:
    for staff in world.salon.resources:
        take_time_off(world, day, resourceId=staff)


def set_hours(world: World, rules: Any) -> None:
    for staff in world.salon.resources:
        world.salon.set_hours(world.api, staff, rules)


def set_staff_status(world: World, status: str) -> None:
    for staff in world.salon.resources:
        world.api.post("/api/resources/update", {"id": staff, "status": status})


def delete_staff(world: World) -> None:
    for staff in world.salon.resources:
        world.api.post("/api/resources/delete", {"id": staff, "force": True})


def open_another(world: World) -> None:
    world.salon = open_salon(world.api)


def be_busy_elsewhere(world: World, day: date) -> None:
    """Write a day as a reading of each own calendar does (``schedule.flows.busy_readings``)."""

    def stage(unit: UnitOfWork) -> None:
        for staff in world.salon.resources:
            calendar_days.stage_elsewhere(unit, staff, {day.isoformat(): "0-1440"})

    run_unit(world.owner.workspace.id, None, stage)


Closure = tuple[Callable[[World, date], object], Callable[[World], object]]
"""Closes a day, and opens what else it has closed."""
CLOSURES: dict[str, Closure] = {
    "all are off": (take_time_off, lambda _: None),
    "each is off": (take_time_off_each, lambda _: None),
    "no hours": (lambda world, _: set_hours(world, []), lambda world: set_hours(world, DAILY)),
    "inactive": (
        lambda world, _: set_staff_status(world, "inactive"),
        lambda world: set_staff_status(world, "active"),
    ),
    "busy elsewhere": (be_busy_elsewhere, lambda _: None),
    "deleted": (lambda world, _: delete_staff(world), open_another),
}


def check_each_moment(
    world: World, closure: str, caller: Callable[[datetime], Callable[[], object]], *, late: bool
) -> None:
    """Close a day before each request of a call, until the call has booked before the closure."""
    close, reopen = CLOSURES[closure]
    refused = 0
    for number in count(1):
        start = FIRST_START + 2 * number * timedelta(days=1)
        day, booked_before = start.date(), list[set[str]]()

        def act(day: date = day, booked_before: list[set[str]] = booked_before) -> None:
            booked_before.append(world.booked(day))
            close(world, day)

        call = caller(start)
        with before_request(number, act, since=DECIDING, late=late) as requests:
            call()
        if not booked_before or booked_before[0]:
            break
        assert world.booked(day) == set(), f"closed before request {number} of {requests}"
        reopen(world)
        refused += 1
    assert world.booked(day), "without a closure the call books"
    assert refused >= MOMENTS


@pytest.mark.parametrize("late", slow_but_for([False], [False, True]))
@pytest.mark.parametrize("name", CALLERS)
def test_nobody_books_a_day_of_time_off(name: str, late: bool, world: World) -> None:
    check_each_moment(world, "all are off", partial(CALLERS[name], world), late=late)
    check_calendars(world.owner.workspace.id, world.salon.resources, capacity=2)


@pytest.mark.parametrize(
    "closure", slow_but_for(["no hours", "busy elsewhere"], list(CLOSURES)[1:])
)
@pytest.mark.parametrize("name", ["by visitor", "move"])
def test_nobody_books_what_is_closed_otherwise(name: str, closure: str, world: World) -> None:
    check_each_moment(world, closure, partial(CALLERS[name], world), late=False)


@pytest.mark.parametrize("late", slow_but_for([False], [False, True]))
def test_late_money_confirms_no_booking_on_a_day_of_time_off(
    late: bool,
    checkout: Checkout,  # noqa: F811  the fixture
) -> None:
    world = World(checkout.owner, checkout.salon)

    def pay_late(start: datetime) -> Callable[[], object]:
        checkout.click(checkout.hold(f"{start:%Y-%m-%dT%H:%M}"))
        payment = checkout.shop.last_id
        checkout.run_after(minutes=31)
        checkout.shop.pay(payment)
        return lambda: checkout.hook(payment)

    check_each_moment(world, "all are off", pay_late, late=late)

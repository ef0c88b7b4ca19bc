"""The page of a person's own calendar in the console, and conflicts on the pages of the desk."""

from typing import Any

import pytest

from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Owner, Time
from tests.factories.console import Person, person
from tests.factories.salon import Salon
from tests.transports.console.forms.helpers import error_beside, text

LINK = "https://calendar.google.com/calendar/ical/anna/private-0123456789/basic.ics"
DAY = "2027-01-18"


@pytest.fixture
def boss(owner: Owner, time: Time) -> Person:
    return person(owner)


@pytest.fixture
def salon(owner: Owner, time: Time) -> Salon:
    return Salon.opened(owner.api())


@pytest.fixture
def path(owner: Owner, salon: Salon) -> str:
    return f"/console/w/{owner.workspace.slug}/staff/{salon.resource}/busy-times"


def stage_busy(owner: Owner, salon: Salon, minutes: str) -> None:
    def stage(unit: UnitOfWork) -> None:
        calendar_days.stage_elsewhere(unit, salon.resource, {DAY: minutes})

    run_unit(owner.workspace.id, None, stage)


def test_a_calendar_is_connected_read_and_removed(
    boss: Person, owner: Owner, salon: Salon, path: str, time: Time
) -> None:
    assert "No calendar is connected" in text(boss.get(path))
    added = boss.post(path, {"action": "add", "url": LINK})
    assert (added.status, added.headers["Location"]) == (303, f"{path}?done=busy_calendar_added")
    page = text(boss.get(path))
    assert "calendar.google.com" in page
    assert "private-0123456789" not in page
    time.pass_by(minutes=20)
    asked = boss.post(path, {"action": "read"})
    assert asked.headers["Location"] == f"{path}?done=busy_calendar_asked"
    removed = boss.post(path, {"action": "remove"})
    assert removed.headers["Location"] == f"{path}?done=busy_calendar_removed"
    assert "No calendar is connected" in text(boss.get(path))
    assert boss.post(path, {"action": "remove"}).status == 303  # a second click


@pytest.mark.parametrize("link", ["http://example.com/a.ics", "anna", ""])
def test_a_wrong_link_is_explained_and_not_shown_again(link: str, boss: Person, path: str) -> None:
    refused = boss.post(path, {"action": "add", "url": link})
    assert refused.status == 400
    assert "https://" in error_beside(refused, "url")


@pytest.mark.parametrize(
    "problem",
    [
        *("not_fetched", "not_a_calendar", "too_many_events"),
        *("too_many_instances", "too_complex", "link_lost"),
    ],
)
def test_a_calendar_that_fails_says_why(
    problem: str, boss: Person, owner: Owner, salon: Salon, path: str
) -> None:
    boss.post(path, {"action": "add", "url": LINK})
    row = BusyCalendarRow.of(owner.workspace.id, salon.resource)
    assert row is not None
    row.failures, row.problem, row.skipped = 1, problem, 2
    run_unit(owner.workspace.id, None, lambda unit: unit.save(row))
    page = text(boss.get(path))
    assert "busy_problem" not in page
    assert "The last attempt to read the calendar failed:" in page
    assert "2 events could not be read" in page


def test_a_booking_over_a_busy_time_is_a_conflict(boss: Person, owner: Owner, salon: Salon) -> None:
    home = f"/console/w/{owner.workspace.slug}/bookings"
    booking = salon.book(f"{DAY}T10:00")["id"]
    assert "Conflict" not in text(boss.get(f"{home}?date={DAY}"))
    stage_busy(owner, salon, "450-480 660-720")
    day = text(boss.get(f"{home}?date={DAY}"))
    assert day.count("Conflict") == 1
    assert "Busy in the own calendar" in day
    warning = "The own calendar of this staff member is busy at this time"
    assert warning in text(boss.get(f"{home}/{booking}"))
    salon.set_status(booking, "cancelled")
    assert warning not in text(boss.get(f"{home}/{booking}"))


def test_busy_times_are_read_by_key(owner: Owner, salon: Salon) -> None:
    stage_busy(owner, salon, "450-480")
    period = f"resourceId={salon.resource}&from={DAY}T00:00:00Z&to={DAY}T07:45:00Z"
    read: Any = owner.api().get(f"/api/busy-calendars/times?{period}")
    assert read["busyTimes"] == [
        {"startAt": f"{DAY}T07:30:00.000Z", "endAt": f"{DAY}T08:00:00.000Z"}
    ]
    wrong = f"resourceId={salon.resource}&from={DAY}T00:00:00Z&to=2027-05-01T00:00:00Z"
    assert owner.api().call("GET", f"/api/busy-calendars/times?{wrong}").status == 400

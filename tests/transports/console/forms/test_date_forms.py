"""The page of a service's dates in the console, and dates in the calendar of the staff."""

import pytest

from tests.conftest import Owner, Time
from tests.factories.console import Person, person
from tests.factories.salon import Salon
from tests.transports.console.forms.helpers import text

DAY = "2027-01-18"
FORM = {"date": DAY, "time": "17:00", "weeks": "1"}


@pytest.fixture
def boss(owner: Owner, time: Time) -> Person:
    return person(owner)


@pytest.fixture
def school(owner: Owner, time: Time) -> Salon:
    return Salon.opened(
        owner.api(), [{"name": "Anna", "capacity": 8}], name="Yoga", fixedStarts=True
    )


@pytest.fixture
def path(owner: Owner, school: Salon) -> str:
    return f"/console/w/{owner.workspace.slug}/services/{school.service}/dates"


def removal(school: Salon, **more: str) -> dict[str, str]:
    return {"remove": f"{school.resource} {DAY}T14:00:00.000Z", **more}


def test_a_service_becomes_a_class_and_gets_a_date(boss: Person, owner: Owner, time: Time) -> None:
    salon = Salon.opened(owner.api(), [{"capacity": 8}])
    service = f"/console/w/{owner.workspace.slug}/services/{salon.service}"
    dates = f"{service}/dates"
    assert "offered at any free time" in text(boss.get(dates))
    assert dates not in text(boss.get(service))
    saved = boss.post(
        service,
        {
            "name": "Yoga",
            "durationMin": "1 h",
            "price": "500",
            "resourceIds": salon.resource,
            "active": "yes",
            "fixedStarts": "yes",
        },
    )
    assert saved.status == 303, text(saved)
    assert dates in text(boss.get(service))
    assert "No dates yet" in text(boss.get(dates))
    added = boss.post(dates, FORM)
    assert (added.status, added.headers["Location"]) == (303, f"{dates}?done=dates_added")
    page = text(boss.get(dates))
    assert "Monday" in page
    assert "0 of 8 booked" in page


def test_weekly_dates_are_added_and_the_page_says_what_was_refused(
    boss: Person, school: Salon, path: str
) -> None:
    off = {"startAt": "2027-01-25", "endAt": "2027-01-25"}
    school.api.post("/api/resources/create-time-off", off)
    added = boss.post(path, FORM | {"weeks": "4"})
    assert added.headers["Location"] == f"{path}?done=dates_added&refused=1"
    assert "1 date was not added" in text(boss.get(added.headers["Location"]))
    assert len(school.api.get(f"/api/services/starts?serviceId={school.service}")["starts"]) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"time": "20:00"}, "outside the opening hours"),
        ({"date": "2027-01-14"}, "Choose a date and a time in the future"),
        ({"date": "", "time": ""}, "Choose a date and a time in the future"),
    ],
)
def test_a_date_that_cannot_be_is_explained(
    fields: dict[str, str], message: str, boss: Person, school: Salon, path: str
) -> None:
    answer = boss.post(path, FORM | fields)
    assert answer.status in {400, 409}
    assert message in text(answer)


def test_a_date_is_removed_and_one_with_bookings_after_a_question(
    boss: Person, school: Salon, path: str
) -> None:
    boss.post(path, FORM)
    assert boss.post(path, removal(school)).headers["Location"] == f"{path}?done=date_removed"
    assert boss.post(path, removal(school)).status == 303  # a second click
    boss.post(path, FORM)
    booking = school.book(f"{DAY}T17:00")
    asked = boss.post(path, removal(school))
    assert asked.status == 409
    assert "The date has 1 booking" in text(asked)
    assert school.api.get(f"/api/bookings/{booking['id']}")["booking"]["status"] == "confirmed"
    removed = boss.post(path, removal(school, cancel="yes"))
    assert removed.headers["Location"] == f"{path}?done=date_removed"
    assert school.api.get(f"/api/bookings/{booking['id']}")["booking"]["status"] == "cancelled"
    assert "No dates yet" in text(boss.get(path))


def test_a_date_that_time_off_hides_is_marked(boss: Person, school: Salon, path: str) -> None:
    boss.post(path, FORM)
    school.api.post("/api/resources/create-time-off", {"startAt": DAY, "endAt": DAY})
    assert "Time off" in text(boss.get(path))


def test_the_calendar_of_the_day_shows_a_class_without_bookings(
    boss: Person, owner: Owner, school: Salon, path: str
) -> None:
    boss.post(path, FORM)
    page = text(boss.get(f"/console/w/{owner.workspace.slug}/bookings?date={DAY}"))
    assert "Yoga" in page
    assert "0 of 8 booked" in page
    assert "time=17:00" not in page  # nobody books anything else then
    assert "time=16:00" in page

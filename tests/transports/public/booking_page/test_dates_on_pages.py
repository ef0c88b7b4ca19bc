"""A service on dates, as visitors and their assistants see it: dates, times and places left."""

from urllib.parse import urlencode

import pytest

from tests.conftest import Owner, Time
from tests.domains.notifications.clients import visitor
from tests.factories.salon import Salon
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import (
    FORM,
    GRACE,
    BookingPage,
    links,
    manage_path,
    text,
)

DAY = "2027-03-08"
START = f"{DAY}T17:00"


@pytest.fixture
def school(owner: Owner, time: Time) -> Salon:
    """Yoga on three Mondays at 17:00, with 8 places."""
    school = Salon.opened(
        owner.api(), [{"name": "Anna", "capacity": 8}], name="Yoga", fixedStarts=True
    )
    body = {"serviceId": school.service, "startAt": START, "weeks": 3}
    school.api.post("/api/services/starts", body)
    return school


@pytest.fixture
def page(owner: Owner, school: Salon) -> BookingPage:
    return BookingPage.opened(owner, school)


def test_the_page_lists_dates_with_the_places_that_are_left(
    page: BookingPage, school: Salon
) -> None:
    for number in range(5):
        school.book(START, f"Client {number}")
    shown = page.get()
    assert "3 of 8 left" in text(shown)
    assert text(shown).count("8 of 8 left") == 2
    assert "8 March, 17:00" in text(shown)
    assert len(links(shown, at="")) == 3
    assert "<table" not in text(shown)  # there is no month to search


def test_a_date_that_is_full_is_not_listed(page: BookingPage, school: Salon) -> None:
    for number in range(8):
        school.book(START, f"Client {number}")
    assert "8 March" not in text(page.get())


def test_a_page_without_dates_says_so(page: BookingPage, school: Salon) -> None:
    body = {"serviceId": school.service, "startAt": START, "weeks": 3}
    school.api.post("/api/services/remove-starts", body)
    assert "no dates with free places" in text(page.get())


def test_a_visitor_books_a_date_and_moves_to_another(page: BookingPage, school: Salon) -> None:
    booked = page.send(f"{START}:00+03:00")
    assert booked.status == 200, text(booked)
    path = manage_path(booked)
    shown = visitor.call("GET", path + "?step=move")
    assert text(shown).count("8 of 8 left") == 3  # the own place counts as free
    form = urlencode({"action": "move", "at": "2027-03-15T14:00:00Z", "once": "1"}).encode()
    assert visitor.call("POST", path, form, FORM).status == 200
    (booking,) = page.bookings
    assert booking["startAt"].startswith("2027-03-15T14:00")


def test_no_service_can_be_added_to_a_date(page: BookingPage, owner: Owner, school: Salon) -> None:
    assert "step=add" not in text(page.get())


def test_public_slots_say_how_many_places_are_left(page: BookingPage, school: Salon) -> None:
    school.book(START)
    answer = visitor.get(f"/api/public/services/{school.service}/slots?from={DAY}")
    assert (answer["slots"][0]["free"], answer["slots"][0]["places"]) == (7, 8)
    body = {"serviceId": school.service, "startAt": f"{DAY}T16:00:00+03:00", "client": GRACE}
    refused = visitor.call("POST", "/api/public/bookings", body)
    assert refused.data["reason"] == "no_starts"
    assert refused.data["alternatives"][0]["places"] == 8


def test_an_assistant_is_told_the_places(page: BookingPage, school: Salon) -> None:
    school.book(START)
    assistant = Assistant.admitted(page)
    found = assistant.call("find_free_times", serviceId=school.service, firstDay=DAY)
    (time,) = found["times"]
    assert (time["placesLeft"], time["places"]) == (7, 8)

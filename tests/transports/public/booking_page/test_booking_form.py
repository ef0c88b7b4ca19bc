"""The last step of the booking page, with its errors and the confirmation."""

import re
from typing import Any

import pytest

from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.salon import Salon
from tests.support import calendar_files
from tests.transports.public.booking_page.helpers import (
    FORM,
    NOON,
    RUSSIAN,
    BookingPage,
    error_of,
    manage_path,
    text,
    value_of,
    visitor,
)


def test_a_visitor_without_cookie_or_origin_books_and_sees_the_booking(page: BookingPage) -> None:
    answer = page.send(notes="Decaf")
    page_text = text(answer)
    assert answer.status == 200
    for part in (
        "You are booked",
        "Haircut",
        "Stylist 0",
        'Wednesday, 3 March 2027, <span class="whole">15:00\u201316:00</span>',
        "Europe/Moscow, UTC+3",
        "1,500",
    ):
        assert part in page_text
    (booking,) = page.bookings
    assert (booking["startAt"], booking["status"]) == ("2027-03-03T12:00:00.000Z", "confirmed")
    assert booking["client"]["email"] == "grace@example.com"
    assert booking["notes"] == "Decaf"


def test_the_confirmation_has_a_calendar_file_and_the_link_that_manages_the_booking(
    page: BookingPage,
) -> None:
    answer = page.send()
    file = re.search(r'href="[^"]*(/api/public/bookings/[^"]+\.ics)"', text(answer))
    assert file
    _, event = calendar_files.check(visitor.call("GET", file[1]).body)
    assert event["SUMMARY"] == "Haircut (Stylist 0)"
    assert "URL" not in event
    assert "Your booking is confirmed" in text(visitor.call("GET", manage_path(answer)))
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Robots-Tag"] == "noindex"


def test_a_form_that_is_sent_twice_books_once(page: BookingPage) -> None:
    once = value_of(page.get(at=NOON), "once")
    first, second = page.send(once=once), page.send(once=once)
    assert first.status == second.status == 200
    assert manage_path(first) == manage_path(second)
    assert len(page.bookings) == 1


def test_a_form_sent_twice_at_the_same_moment_books_once(page: BookingPage) -> None:
    answers = run_concurrently(5, lambda _: page.send(once="the-same"))
    assert {answer.status for answer in answers} == {200}
    assert len({manage_path(answer) for answer in answers}) == 1
    assert len(page.bookings) == 1


def test_a_sent_form_with_other_contacts_says_that_it_has_booked_already(
    page: BookingPage,
) -> None:
    page.send(once="the-same")
    second_response = page.send(once="the-same", name="Ada")
    assert second_response.status == 409
    assert "You have already booked a time with this form." in text(second_response)
    assert len(page.bookings) == 1


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"name": "  "}, "name", "Enter a name"),
        ({"name": "A" * 201}, "name", "Enter a name"),
        ({"email": ""}, "phone", "Enter a phone number or an e-mail address."),
        ({"email": "grace@"}, "email", "Enter an e-mail address"),
        ({"email": "", "phone": "12"}, "phone", "Enter a phone number such as"),
        ({"notes": "x" * 2001}, "notes", "Enter at most 2,000"),
    ],
)
def test_an_error_is_beside_its_field_and_all_that_was_typed_stays(
    fields: dict[str, str], field: str, message: str, page: BookingPage
) -> None:
    typed_fields = {"phone": "", "notes": "Decaf, please", "once": "key-1"} | fields
    answer = page.send(**typed_fields)
    assert answer.status == 400
    assert message in error_of(answer, field)
    for name, value in ({"name": "Grace", "email": "grace@example.com"} | typed_fields).items():
        if name == "notes":
            assert f">\n{value}</textarea>" in text(answer)
        else:
            assert value_of(answer, name) == value
    assert value_of(answer, "at") == "2027-03-03T12:00:00+00:00"
    assert page.bookings == []


def test_the_page_of_errors_is_in_the_visitors_language(page: BookingPage) -> None:
    assert "Укажите имя" in error_of(page.send(name="", headers=RUSSIAN), "name")


class TestTakenTimes:
    def test_a_time_that_was_sold_meanwhile_offers_the_nearest_and_keeps_what_was_typed(
        self, page: BookingPage
    ) -> None:
        page.salon.book(NOON)
        answer = page.send(phone="+7 916 123-45-67", notes="Decaf", once="key-1")
        assert answer.status == 409
        page_text = text(answer)
        assert "This time is no longer free." in page_text
        times = re.findall(r'type="radio" name="at" value="([^"]+)"', page_text)
        assert len(times) == 5
        assert "2027-03-03T11:00:00.000Z" in times
        assert value_of(answer, "phone") == "+7 916 123-45-67"
        assert value_of(answer, "once") == "key-1"
        assert page.send(times[0], phone="+7 916 123-45-67", once="key-1").status == 200

    def test_a_time_that_passed_while_the_visitor_typed_offers_later_ones(
        self, page: BookingPage, time: Time
    ) -> None:
        answer = page.send("2027-03-01T05:00:00Z")
        assert answer.status == 409
        times = re.findall(r'type="radio" name="at" value="([^"]+)"', text(answer))
        assert times[0] == "2027-03-01T06:00:00.000Z"

    @pytest.mark.parametrize("start", ["", "x", "2027-03-03", "2027-03-03T12:00:30Z"])
    def test_a_malformed_time_leads_back_to_the_calendar(
        self, start: str, page: BookingPage
    ) -> None:
        answer = page.send(start)
        assert answer.status in {400, 409}
        assert value_of(answer, "name") == "Grace"
        assert page.bookings == []

    def test_the_chosen_member_of_the_staff_takes_the_booking(self, api: Api, owner: Owner) -> None:
        salon = Salon.opened(api, resources=[{"name": "Anna"}, {"name": "Boris"}])
        page = BookingPage.opened(owner, salon)
        assert "Boris" in text(page.send(staff=salon.resources[1]))
        assert "Anna" in text(page.send(staff="any"))
        second_response = page.send(staff="any")
        assert second_response.status == 409


class TestRobots:
    def test_a_form_with_the_honeypot_gets_a_confirmation_and_books_nothing(
        self, page: BookingPage
    ) -> None:
        answer = page.send(_url="https://spam.example")
        assert answer.status == 200
        assert "You are booked" in text(answer)
        assert visitor.call("GET", manage_path(answer)).status == 404
        assert page.bookings == []

    def test_a_form_that_was_filled_in_too_fast_is_shown_again(self, page: BookingPage) -> None:
        answer = page.send(_elapsed="900")
        assert answer.status == 429
        assert "The form was sent too quickly." in text(answer)
        assert "Retry-After" in answer.headers
        assert value_of(answer, "name") == "Grace"
        assert page.bookings == []
        assert page.send(_elapsed="2000").status == 200

    def test_bodies_that_are_no_small_form_are_refused(self, page: BookingPage) -> None:
        large = visitor.call("POST", page.path, b"name=" + b"x" * 40_000, FORM)
        assert large.status == 413
        other = visitor.call("POST", page.path, b"<a/>", {"Content-Type": "application/xml"})
        assert other.status == 415


class TestLimits:
    @pytest.fixture(autouse=True)
    def _set_scale_one(self, monkeypatch: pytest.MonkeyPatch, reload_settings: Any) -> None:
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()

    def test_a_contact_is_booked_three_times_an_hour_and_is_then_asked_to_call(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        salon = Salon.opened(api, resources=[{"capacity": 50}])
        page = BookingPage.opened(owner, salon, phone="+7 495 123-45-67")
        for number in range(3):
            assert page.send(name=f"V {number}", email="last@example.com").status == 200
        refusal = page.send(email="last@example.com")
        assert refusal.status == 429
        assert "with these contact details in the last hour. Please try again" in text(refusal)
        call = 'Or call <a class="phone" href="tel:+7495123-45-67">'
        assert call in text(refusal)
        assert page.send(email="other@example.com").status == 200
        assert value_of(refusal, "email") == "last@example.com"
        assert int(refusal.headers["Retry-After"]) <= 3600
        time.pass_by(hours=1)
        assert page.send(email="last@example.com").status == 200

    def test_a_visitor_opens_at_most_120_steps_a_minute(
        self, page: BookingPage, time: Time
    ) -> None:
        statuses = [page.get(page.home).status for _ in range(121)]
        assert statuses == [200] * 120 + [429]
        time.pass_by(minutes=1)
        assert page.get(page.home).status == 200

    def test_the_limits_of_public_bookings_hold_on_the_page(
        self, page: BookingPage, time: Time
    ) -> None:
        for day in range(2, 7):
            assert page.send(f"2027-03-0{day}T12:00:00Z").status == 200
            time.pass_by(minutes=30)
        assert page.send("2027-03-08T12:00:00Z").status == 429


def test_contacts_are_not_logged(page: BookingPage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    answer = page.send(name="Hopperina", phone="+7 916 123-45-67")
    token = manage_path(answer).removeprefix("/booking/")
    assert caplog.records
    for record in caplog.records:
        for secret in (token, "Hopperina", "grace@example.com"):
            assert secret not in str(vars(record))

"""The page behind the link in e-mails to clients."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from icalendar import Calendar

from chalicelib.domains.bookings.rules import booking_tokens
from tests.conftest import Answer, Api, Owner, Time, call_operator
from tests.domains.notifications.clients import ADA, book, mails_to, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

NOON = "2027-03-03T12:00:00Z"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
RUSSIAN = {"Accept-Language": "ru"}
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(api: Api, inbox: Inbox) -> Salon:
    return Salon.opened(api, resources=[{"name": "Grace", "timezone": "Europe/Berlin"}])


@pytest.fixture
def path(inbox: Inbox, salon: Salon) -> str:
    """The path of the link in the email about a new booking."""
    book(salon, NOON, notes="Decaf, please")
    run_until_idle()
    match = re.search(r"/booking/[\w=-]+", text_of(mails_to(inbox)[0]))
    assert match
    return match[0]


def page(path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    return visitor.call(method, path, b"action=cancel" if method == "POST" else None, headers)


def status_of(owner: Owner) -> Any:
    bookings = owner.api().get("/api/bookings/list")["bookings"]
    return next(booking["status"] for booking in bookings if booking["client"]["email"] == ADA)


def test_page_shows_the_booking_without_contacts(path: str, owner: Owner) -> None:
    answer = page(path)
    text = answer.body.decode()
    assert answer.status == 200
    for expected in (
        "Your booking is confirmed",
        "Haircut",
        "Grace",
        'Wednesday, 3 March 2027, <span class="whole">13:00\u201314:00</span>',
        "Europe/Berlin, UTC+1",
    ):
        assert expected in text
    for hidden in (ADA, "Ada", "Decaf"):
        assert hidden not in text
    assert "<form" not in text
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert status_of(owner) == "confirmed"


def test_the_page_is_in_the_readers_language(path: str) -> None:
    assert "Ваша запись подтверждена" in page(path, headers=RUSSIAN).body.decode()


def test_button_cancels_and_may_be_pressed_again(path: str, owner: Owner) -> None:
    for _ in range(2):
        answer = page(path, "POST", FORM)
        assert answer.status == 200
        assert "Your booking is cancelled" in answer.body.decode()
        assert "<form" not in answer.body.decode()
    assert status_of(owner) == "cancelled"


def test_a_booking_that_has_begun_cannot_be_cancelled(path: str, owner: Owner, time: Time) -> None:
    time.now = datetime(2027, 3, 3, 12, tzinfo=UTC)
    assert "<form" not in page(path).body.decode()
    assert "Your booking is confirmed" in page(path, "POST", FORM).body.decode()
    assert status_of(owner) == "confirmed"


def test_calendar_file_has_the_booking(path: str) -> None:
    match = re.search(r"/api/public/bookings/[\w=-]+\.ics", page(path).body.decode())
    assert match
    (event,) = Calendar.from_ical(visitor.call("GET", match[0]).body).walk("VEVENT")
    assert event["SUMMARY"] == "Haircut (Grace)"


def test_only_get_head_post_and_options_are_accepted(path: str) -> None:
    assert page(path, "HEAD").status == 200
    assert page(path, "OPTIONS").status == 204
    refusal = page(path, "DELETE")
    assert (refusal.status, refusal.headers["Allow"]) == (405, "GET, HEAD, POST")


def test_tokens_for_other_purposes_and_forged_ones_are_not_found(
    path: str, salon: Salon, owner: Owner
) -> None:
    response = book(salon, "2027-03-03T14:00:00Z")
    calendar = re.sub(r".*/|\.ics$", "", response["icsUrl"])
    token = path.removeprefix("/booking/")
    swapped = token[:-3] + ("AA==" if token[-3:-1] != "AA" else "BB==")
    tokens = (response["cancelToken"], calendar, "x" * booking_tokens.LENGTH, swapped[:64], "x")
    for wrong_token in tokens:
        for method in ("GET", "POST"):
            answer = page(f"/booking/{wrong_token}", method, FORM)
            assert answer.status == 404
            assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert {booking["status"] for booking in owner.api().get("/api/bookings/list")["bookings"]} == {
        "confirmed"
    }


def test_the_link_ends_with_the_erasure_of_the_client(path: str, owner: Owner) -> None:
    call_operator("erase_client", workspaceId=owner.workspace.id, email=ADA)
    assert page(path).status == 404


def test_the_token_is_not_logged(path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    page(path)
    page(path, "POST", FORM)
    token = path.removeprefix("/booking/")
    assert caplog.records
    assert all(token not in str(vars(record)) for record in caplog.records)

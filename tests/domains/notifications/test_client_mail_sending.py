"""Emails to clients about their bookings."""

from email.utils import parseaddr
from typing import Any

import pytest

from chalicelib.domains.identity.store import accounts
from chalicelib.engine import jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.notifications.clients import ADA, book, mails_to, subjects_to, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon
from tests.support import calendar_files
from tests.transports.public.booking_page.helpers import GRACE, BookingPage

NOON, THREE = "2027-03-03T12:00:00Z", "2027-03-03T15:00:00Z"
CANCEL = "/api/public/bookings/cancel"
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(api: Api, owner: Owner, inbox: Inbox) -> Salon:
    """A salon of a workspace whose emails are in English."""
    call_operator("set_workspace", workspaceId=owner.workspace.id, country="GB")
    return Salon.opened(api, resources=[{"name": "Grace", "timezone": "Europe/Berlin"}])


def calendar_event(mail: Any) -> Any:
    (attached,) = mail.iter_attachments()
    assert attached.get_content_type() == "text/calendar"
    method, event = calendar_files.check(attached.get_payload(decode=True))
    assert attached.get_param("method") == method
    assert event["ORGANIZER"] == f"mailto:{parseaddr(mail['From'])[1]}"
    return event


def test_a_visitor_gets_a_confirmation_with_a_calendar_file(
    inbox: Inbox, salon: Salon, owner: Owner
) -> None:
    response = book(salon, NOON)
    run_until_idle()
    (message,) = mails_to(inbox)
    assert message["Subject"] == "Booking confirmed: Haircut, 03.03 13:00"
    assert message["From"].startswith(f"{owner.workspace.name} via ")
    assert message["Reply-To"] is None
    text = text_of(message)
    assert "Wednesday, 3 March 2027, 13:00 (Europe/Berlin, UTC+01:00)" in text
    assert "Staff: Grace" in text
    assert "1,500 ₽" in text.replace("\u00a0", " ")
    assert "/booking/" in text
    assert "/booking/" in text_of(message, "html")
    event = calendar_event(message)
    assert event["UID"].startswith(response["booking"]["id"])
    assert (event["STATUS"], event["SEQUENCE"]) == ("CONFIRMED", 0)
    assert event["DTSTART"].dt.isoformat() == "2027-03-03T12:00:00+00:00"


def test_email_has_no_text_of_the_visitor(inbox: Inbox, salon: Salon) -> None:
    who = {"name": "Win a prize at evil.example", "email": ADA, "phone": "+74951234567"}
    book(salon, NOON, client=who, notes="Send money to evil.example")
    run_until_idle()
    (message,) = mails_to(inbox)
    for part in (str(message), text_of(message), text_of(message, "html")):
        assert "evil.example" not in part
        assert "4951234567" not in part


def test_a_service_name_is_one_line_without_markup(inbox: Inbox, salon: Salon, api: Api) -> None:
    api.post("/api/services/update", {"id": salon.service, "name": "<b>Cut</b>"})
    book(salon, NOON)
    run_until_idle()
    (message,) = mails_to(inbox)
    assert "<b>Cut" not in text_of(message, "html")


def test_booking_by_the_owner_is_confirmed(inbox: Inbox, salon: Salon) -> None:
    salon.book(NOON, "Bob")
    run_until_idle()
    (message,) = mails_to(inbox, "bob@example.com")
    assert message["Subject"].startswith("Booking confirmed: ")
    assert "/booking/" in text_of(message)


def test_client_without_an_address_gets_no_email(inbox: Inbox, salon: Salon, owner: Owner) -> None:
    client = {"name": "Bob", "phone": "+74951234567"}
    salon.api.post("/api/bookings/create", salon.order(NOON) | {"client": client})
    run_until_idle()
    owner_email = accounts.get(owner.workspace.owner_id).email
    assert {message["To"] for message in inbox.mails} == {owner_email}


def test_move_and_cancellation_update_the_calendar_event(inbox: Inbox, salon: Salon) -> None:
    booking = book(salon, NOON)["booking"]["id"]
    run_until_idle()
    salon.api.post("/api/bookings/reschedule", {"id": booking, "startAt": THREE})
    run_until_idle()
    salon.set_status(booking, "cancelled")
    run_until_idle()
    assert subjects_to(inbox) == [
        "Booking cancelled: Haircut, 03.03 16:00",
        "Booking changed: Haircut, 03.03 16:00",
        "Booking confirmed: Haircut, 03.03 13:00",
    ]
    events = sorted(map(calendar_event, mails_to(inbox)), key=lambda event: int(event["SEQUENCE"]))
    assert len({event["UID"] for event in events}) == 1
    assert [event["SEQUENCE"] for event in events] == [0, 1, 2]
    assert events[2]["STATUS"] == "CANCELLED"
    assert [event.get("ATTENDEE") for event in events] == [None, None, f"mailto:{ADA}"]


def test_unpaid_hold_is_reported_as_unpaid_then_cancelled(
    inbox: Inbox, salon: Salon, api: Api, owner: Owner, time: Time
) -> None:
    api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
    set_merchant(owner.workspace.id)
    book(salon, NOON)
    run_until_idle()
    assert subjects_to(inbox) == ["Booking awaiting payment: Haircut, 03.03 13:00"]
    time.pass_by(minutes=31)
    run_jobs()
    run_until_idle()
    assert "Booking cancelled: Haircut, 03.03 13:00" in subjects_to(inbox)
    assert len(mails_to(inbox)) == 2


def test_restored_booking_is_confirmed_again(inbox: Inbox, salon: Salon) -> None:
    booking = book(salon, NOON)["booking"]["id"]
    run_until_idle()
    for status in ("cancelled", "confirmed"):
        salon.set_status(booking, status)
        run_until_idle()
    assert [subject.partition(":")[0] for subject in subjects_to(inbox)] == [
        "Booking cancelled",
        "Booking confirmed",
        "Booking confirmed",
    ]


def test_past_and_completed_bookings_cause_no_email(inbox: Inbox, salon: Salon, time: Time) -> None:
    salon.book("2027-01-04T12:00:00Z", "Bob", ignoreSchedule=True)
    booking = book(salon, NOON)["booking"]["id"]
    run_until_idle()
    time.pass_by(days=60)
    for status in ("completed", "no_show", "cancelled"):
        salon.set_status(booking, status)
    run_until_idle()
    assert mails_to(inbox, "bob@example.com") == []
    assert len(mails_to(inbox)) == 1


def test_service_can_turn_emails_off(inbox: Inbox, salon: Salon, api: Api, time: Time) -> None:
    api.post("/api/services/update", {"id": salon.service, "visitorMails": False})
    response = book(salon, NOON)
    run_until_idle()
    visitor.post(CANCEL, {"token": response["cancelToken"]})
    time.pass_by(days=47)
    run_until_idle()
    assert mails_to(inbox) == []


def test_client_erased_before_sending_gets_no_email(
    inbox: Inbox, salon: Salon, api: Api, owner: Owner, time: Time
) -> None:
    booking = book(salon, NOON)["booking"]["id"]
    call_operator("erase_client", workspaceId=owner.workspace.id, email=ADA)
    run_until_idle()
    assert api.get(f"/api/bookings/{booking}")["booking"]["status"] == "cancelled"
    time.pass_by(days=47)
    run_until_idle()
    assert mails_to(inbox) == []


def test_emails_of_a_russian_workspace_are_in_russian(
    inbox: Inbox, salon: Salon, owner: Owner
) -> None:
    call_operator("set_workspace", workspaceId=owner.workspace.id, country="RU")
    book(salon, NOON)
    run_until_idle()
    assert subjects_to(inbox) == ["Запись подтверждена: Haircut, 03.03 13:00"]


def test_no_jobs_are_created_without_a_mail_provider(api: Api, owner: Owner, time: Time) -> None:
    Salon.opened(api).book(NOON)
    assert "visitor-events" not in {
        job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)
    }


@pytest.mark.parametrize(
    ("language", "subject"), [("en", "Booking confirmed"), ("ru", "Запись подтверждена")]
)
def test_a_client_gets_mails_in_the_language_of_the_booking_page(
    language: str, subject: str, owner: Owner, salon: Salon, inbox: Inbox
) -> None:
    booking_page = BookingPage.opened(owner, salon)
    booking_page.send(NOON, headers={"Accept-Language": language})
    run_until_idle()
    (mail,) = mails_to(inbox, GRACE["email"])
    assert str(mail["Subject"]).startswith(subject)

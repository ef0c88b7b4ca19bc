"""Bookings of visitors who have proved no address, and must open a link first."""

import os
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core.clock import iso
from tests.conftest import Owner, Time
from tests.domains.notifications.clients import BOOK, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.booking_links import DAYS, EVE, clients_of, follow, link, request_booking
from tests.factories.chat import ask, new_bot
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon
from tests.transports.public.booking_page.helpers import BookingPage, text

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(salon_without_free_proofs: Salon) -> Salon:
    return salon_without_free_proofs


class TestRequests:
    def test_fourth_booking_is_202_and_needs_the_link(self, salon: Salon, time: Time) -> None:
        answer = request_booking(salon)
        assert answer.status == 202
        ends = iso(time.now + timedelta(minutes=30))
        assert answer.data == {"status": True, "confirmByMail": True, "expiresAt": ends}
        assert EVE not in clients_of(salon)

    def test_a_family_books_four_children(self, salon: Salon, inbox: Inbox) -> None:
        """Three bookings need no proof. The fourth one, for the same time, needs the link."""
        assert request_booking(salon, DAYS[2]).status == 202
        assert follow(link(inbox)).status == 303
        assert clients_of(salon).count(EVE) == 1

    @pytest.mark.parametrize("contact", [{"email": EVE}, {"phone": "+79161234567"}])
    def test_a_proved_address_names_its_client_and_no_other(
        self, contact: dict[str, str], owner: Owner, salon: Salon, inbox: Inbox
    ) -> None:
        ask(new_bot(owner), f"I am at {contact.get('email') or contact['phone']}")
        body = {"name": "Eve Kurz", "email": EVE, "phone": "+79161234567"}
        assert request_booking(salon, client=body).status == 202
        assert follow(link(inbox)).status == 303
        clients = salon.api.get("/api/clients/list?size=100")["clients"]
        (client,) = [client for client in clients if contact.items() <= client.items()]
        assert client["name"] == ("Eve Kurz" if "email" in contact else None)

    def test_exhausted_service_requires_a_proof_of_every_visitor(
        self, salon: Salon, inbox: Inbox, time: Time
    ) -> None:
        salon.api.post("/api/services/update", {"id": salon.service, "unverifiedPerHour": 1})
        time.pass_by(hours=1)
        assert request_booking(salon, email="first@example.com").status == 200
        assert request_booking(salon).status == 202
        assert follow(link(inbox)).status == 303
        assert EVE in clients_of(salon)

    def test_request_without_an_email_is_429(self, salon: Salon) -> None:
        contact = {"name": "Eve", "phone": "+7 916 123-45-67"}
        answer = visitor.call("POST", BOOK, salon.order(DAYS[5]) | {"client": contact})
        assert answer.status == 429
        assert "client.email" in answer.data["message"]
        assert int(answer.headers["Retry-After"]) <= 3600

    def test_request_is_429_without_a_mail_provider(
        self, salon: Salon, reload_settings: Any
    ) -> None:
        os.environ["MAIL"] = "off"
        reload_settings()
        assert request_booking(salon).status == 429

    def test_unavailable_time_is_409(self, salon: Salon) -> None:
        answer = request_booking(salon, "2027-03-02T03:00:00Z")
        assert (answer.status, answer.data["code"]) == (409, "slot_unavailable")

    def test_a_repeated_idempotency_key_repeats_the_202(self, salon: Salon, inbox: Inbox) -> None:
        first, second = (request_booking(salon, idempotencyKey="order-1") for _ in range(2))
        assert (first.status, first.data) == (second.status, second.data)
        assert second.headers["Idempotency-Replayed"] == "true"
        run_until_idle()
        assert len([message for message in inbox.mails if message["To"] == EVE]) == 1

    def test_visitor_causes_at_most_ten_emails_a_day(self, salon: Salon, time: Time) -> None:
        emails = [f"v{number}@example.com" for number in range(11)]
        statuses = [request_booking(salon, email=email).status for email in emails]
        assert statuses == [202] * 10 + [429]

    def test_response_does_not_reveal_the_contacts_bookings(self, salon: Salon) -> None:
        for day in DAYS[6:12]:
            salon.api.post("/api/bookings/create", salon.order(day, "Eve"))
        known, unknown = request_booking(salon), request_booking(salon, email="nobody@example.com")
        assert (known.status, known.data) == (unknown.status, unknown.data)

    def test_confirmation_has_no_text_of_the_visitor(self, salon: Salon, inbox: Inbox) -> None:
        contact = {"name": "Win http evil", "email": EVE}
        visitor.call("POST", BOOK, salon.order(DAYS[5], notes="evil") | {"client": contact})
        run_until_idle()
        (message,) = [mail for mail in inbox.mails if mail["To"] == EVE]
        assert "Haircut" in text_of(message)
        assert "evil" not in str(message)


class TestPage:
    def test_booking_page_asks_to_open_the_email(
        self, salon: Salon, inbox: Inbox, owner: Owner
    ) -> None:
        page = BookingPage.opened(owner, salon)
        answer = page.send(DAYS[5], email=EVE)
        assert answer.status == 202
        assert "Please check your e-mail" in text(answer)
        assert follow(link(inbox)).status == 303
        assert EVE in clients_of(salon)

    def test_the_booking_page_asks_for_an_address(self, salon: Salon, owner: Owner) -> None:
        page = BookingPage.opened(owner, salon)
        answer = page.send(DAYS[5], email="", phone="+7 916 123-45-67")
        assert answer.status == 429
        assert "Enter your e-mail address" in text(answer)

"""Bookings that an emailed link confirms, because their visitor has proved no address."""

import os
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from chalicelib.core.clock import iso
from chalicelib.domains.booking_page.store import requested_bookings
from chalicelib.domains.client_profiles.operations.erasure import ErasureUnfinishedError
from tests.conftest import Answer, Api, Owner, Time, all_rows, call_operator, run_concurrently
from tests.domains.notifications.clients import BOOK, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.chat import Bot, ask, new_bot, propose_booking
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon
from tests.support.restoring import Snapshots
from tests.transports.public.booking_page.helpers import BookingPage, text

pytestmark = pytest.mark.usefixtures("database")
DAYS = [f"2027-03-{day:02}T12:00:00Z" for day in range(2, 20)]
EVE = "eve@example.com"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def salon(
    api: Api,
    inbox: Inbox,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Any,
    snapshots: Snapshots,
) -> Salon:
    """A salon whose visitor has made all bookings of this hour that need no proof."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    time.pass_by(days=1)

    def make() -> Salon:
        opened = Salon.opened(api, [{"capacity": 4}])
        for number in range(3):
            visitor.post(BOOK, opened.order(DAYS[number], f"V {number}"))
        return opened

    salon: Salon = snapshots.once_upon_equal_rows("a salon without free proofs", make)
    return salon


def request_booking(salon: Salon, start: str = DAYS[5], email: str = EVE, **fields: Any) -> Answer:
    """Request a booking, and return the response."""
    contact = {"name": "Eve Kurz", "email": email}
    return visitor.call("POST", BOOK, salon.order(start) | {"client": contact} | fields)


def link(inbox: Inbox, email: str = EVE) -> str:
    """Return the path of the newest confirmation link in the emails to an address."""
    run_until_idle()
    texts = [text_of(message) for message in inbox.mails if message["To"] == email]
    matches = [re.search(r"/booking/confirm/[\w=-]{64}", body) for body in texts]
    (*_, last) = filter(None, matches)
    return last[0]


def follow(path: str) -> Answer:
    """Press the button on the page of a link."""
    return visitor.call("POST", path, b"", FORM)


def clients_of(salon: Salon) -> list[str]:
    """Return the e-mail addresses of all bookings of a salon."""
    bookings = salon.api.get(f"/api/bookings/list?serviceId={salon.service}&size=100")["bookings"]
    return sorted(booking["client"]["email"] or "" for booking in bookings)


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


class TestLink:
    @pytest.fixture
    def path(self, salon: Salon, inbox: Inbox) -> str:
        assert request_booking(salon).status == 202
        return link(inbox)

    def test_opening_the_link_books_nothing(self, salon: Salon, path: str) -> None:
        answer = visitor.call("GET", path)
        assert answer.status == 200
        for expected in ("Haircut", "Confirm the booking", "1,500"):
            assert expected in text(answer)
        for hidden in ("Eve", "eve@"):
            assert hidden not in text(answer)
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        assert EVE not in clients_of(salon)

    def test_button_of_the_link_books_once(self, salon: Salon, path: str) -> None:
        first, second = follow(path), follow(path)
        assert first.status == second.status == 303
        assert first.headers["Location"] == second.headers["Location"]
        assert "Your booking is confirmed" in text(
            visitor.call("GET", re.sub(r"^https?://[^/]*", "", first.headers["Location"]))
        )
        assert visitor.call("GET", path).status == 404
        assert clients_of(salon).count(EVE) == 1

    def test_concurrent_presses_book_once(self, salon: Salon, path: str) -> None:
        answers = run_concurrently(4, lambda _: follow(path))
        assert {response.status for response in answers} == {303}
        assert clients_of(salon).count(EVE) == 1

    def test_link_works_for_half_an_hour(self, salon: Salon, path: str, time: Time) -> None:
        time.pass_by(minutes=30)
        assert visitor.call("GET", path).status == follow(path).status == 404
        assert EVE not in clients_of(salon)

    def test_link_is_not_stored(self, path: str) -> None:
        token = path.rpartition("/")[2]
        assert token not in str(all_rows())

    @pytest.mark.parametrize(
        "change", [{"price": 1}, {"durationMin": 30}, {"requirePayment": True}]
    )
    def test_a_changed_service_is_409(
        self, change: dict[str, Any], salon: Salon, path: str
    ) -> None:
        salon.api.post("/api/services/update", {"id": salon.service, **change})
        answer = follow(path)
        assert answer.status == 409
        assert "has changed since" in text(answer)
        assert EVE not in clients_of(salon)

    def test_taken_time_is_409_with_other_times(self, salon: Salon, path: str) -> None:
        for number in range(4):
            salon.book(DAYS[5], f"B {number}")
        answer = follow(path)
        assert answer.status == 409
        assert "no longer free" in text(answer)
        assert "2027" in text(answer) or "March" in text(answer)

    def test_bookings_by_links_use_no_shared_allowance(
        self, salon: Salon, path: str, time: Time
    ) -> None:
        salon.api.post("/api/services/update", {"id": salon.service, "unverifiedPerHour": 4})
        assert follow(path).status == 303
        time.pass_by(minutes=1)
        salon.api.post("/api/services/update", {"id": salon.service, "unverifiedPerHour": 3})
        assert request_booking(salon, DAYS[6]).status == 202

    def test_an_address_has_five_upcoming_bookings_by_links(
        self, salon: Salon, inbox: Inbox, path: str, time: Time
    ) -> None:
        statuses = [follow(path).status]
        for number, day in enumerate(DAYS[6:11]):
            if number % 2:
                time.pass_by(days=1)  # An address gets three emails a day.
                for other in range(3):
                    visitor.post(BOOK, salon.order(DAYS[12 + other], f"W {number} {other}"))
            assert request_booking(salon, day).status == 202
            statuses.append(follow(link(inbox)).status)
        assert statuses == [303] * 5 + [429]

    def test_a_link_of_another_purpose_does_not_book(self, salon: Salon, path: str) -> None:
        token = path.rpartition("/")[2]
        assert visitor.call("GET", f"/booking/{token}").status == 404
        assert visitor.call("POST", "/api/public/bookings/cancel", {"token": token}).status == 404

    @pytest.mark.parametrize("token", ["", "x" * 64, "A" * 64, "%00", "a" * 5_000])
    def test_other_tokens_are_unknown(self, salon: Salon, token: str) -> None:
        assert visitor.call("GET", f"/booking/confirm/{token}").status == 404

    def test_erasure_ends_the_link(self, salon: Salon, path: str, owner: Owner) -> None:
        call_operator("erase_client", workspaceId=owner.workspace.id, email=EVE)
        assert follow(path).status == 404
        assert requested_bookings.naming_awaited(owner.workspace.id, [EVE]) == []
        assert "Kurz" not in str(all_rows())

    def test_booking_made_during_an_erasure_is_erased(
        self, salon: Salon, path: str, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The visitor opens the link after the records were traced."""
        find = requested_bookings.naming_awaited

        def find_and_follow(*arguments: Any) -> Any:
            stored_hold = find(*arguments)
            assert follow(path).status == 303
            return stored_hold

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(requested_bookings, "naming_awaited", find_and_follow)
            with pytest.raises(ErasureUnfinishedError):
                call_operator("erase_client", workspaceId=owner.workspace.id, email=EVE)
        call_operator("erase_client", workspaceId=owner.workspace.id, email=EVE)
        assert "Kurz" not in str(all_rows())


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


class TestProposals:
    @pytest.fixture
    def bot(self, owner: Owner, salon: Salon) -> Bot:
        return new_bot(owner, capabilities=["catalog", "slots", "booking"])

    @pytest.fixture
    def confirmation(self, bot: Bot, salon: Salon) -> tuple[str, dict[str, Any]]:
        """The path and the body of the request that confirms a proposal."""
        start = datetime.fromisoformat(DAYS[5])
        session, proposal = propose_booking(bot.id, salon.service, salon.resource, start)
        path = f"/api/agents/public/actions/{proposal.id}"
        return path, {"sessionId": session, "decision": "confirm"}

    def state(self, api: Api, bot: Bot) -> Any:
        (dialog, *_) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        return api.get(f"/api/agents/dialog?id={dialog['id']}")["actions"][-1]["state"]

    def test_proposal_is_done_when_the_link_books(
        self,
        bot: Bot,
        api: Api,
        salon: Salon,
        inbox: Inbox,
        confirmation: tuple[str, dict[str, Any]],
    ) -> None:
        answer = visitor.call("POST", *confirmation)
        assert answer.status == 202
        assert (answer.data["state"], answer.data["confirmByMail"]) == ("awaiting_mail", True)
        assert "check your e-mail" in answer.data["message"]
        assert visitor.call("POST", *confirmation).data == answer.data
        assert self.state(api, bot) == "awaiting_mail"
        assert follow(link(inbox, "grace@example.com")).status == 303
        assert self.state(api, bot) == "done"
        response = visitor.call("POST", *confirmation)
        assert response.status == 200
        assert response.data["state"] == "done"
        assert response.data["booking"]["serviceName"] == "Haircut"
        assert clients_of(salon).count("grace@example.com") == 1

    def test_a_proposal_whose_link_ends_is_expired(
        self, bot: Bot, api: Api, time: Time, confirmation: tuple[str, dict[str, Any]]
    ) -> None:
        assert visitor.call("POST", *confirmation).status == 202
        time.pass_by(minutes=30)
        assert self.state(api, bot) == "expired"
        answer = visitor.call("POST", *confirmation)
        assert (answer.status, answer.data["code"]) == (409, "action_ended")

    def test_the_link_of_an_erased_dialog_books_nothing(
        self, owner: Owner, salon: Salon, inbox: Inbox, confirmation: tuple[str, dict[str, Any]]
    ) -> None:
        assert visitor.call("POST", *confirmation).status == 202
        path = link(inbox, "grace@example.com")
        call_operator("erase_client", workspaceId=owner.workspace.id, email="grace@example.com")
        assert follow(path).status == 404
        assert "grace@example.com" not in clients_of(salon)

"""The link in an e-mail that books what a visitor has requested."""

import re
from datetime import datetime
from typing import Any

import pytest

from chalicelib.domains.booking_page.store import requested_bookings
from chalicelib.domains.client_profiles.operations.erasure import ErasureUnfinishedError
from tests.conftest import Api, Owner, Time, all_rows, call_console, call_operator, run_concurrently
from tests.domains.notifications.clients import BOOK, visitor
from tests.domains.notifications.inbox import Inbox
from tests.factories.booking_links import DAYS, EVE, clients_of, follow, link, request_booking
from tests.factories.chat import Bot, new_bot, propose_booking
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon
from tests.transports.public.booking_page.helpers import text

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(salon_without_free_proofs: Salon) -> Salon:
    return salon_without_free_proofs


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
        self, change: dict[str, Any], salon: Salon, path: str, owner: Owner
    ) -> None:
        set_merchant(owner.workspace.id)
        salon.api.post("/api/services/update", {"id": salon.service, **change})
        answer = follow(path)
        assert answer.status == 409
        assert "has changed since" in text(answer)
        assert EVE not in clients_of(salon)

    @pytest.mark.parametrize("change", [{"depositPercent": 50}, {"refundUntilMin": 60}])
    def test_changed_terms_of_payment_are_409(
        self, change: dict[str, Any], salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        set_merchant(owner.workspace.id)
        salon.api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        assert request_booking(salon).status == 202
        page = text(visitor.call("GET", link(inbox)))
        assert "To pay now" in page
        assert "Refunded if cancelled before" in page
        terms = {"id": salon.service, "depositPercent": 100, "refundUntilMin": 1440}
        call_console(owner.workspace.id, "set_payment_terms", **terms | change)
        answer = follow(link(inbox))
        assert answer.status == 409
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

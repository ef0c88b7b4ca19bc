"""E-mails that ask clients who have agreed to advertising to book again (ADR 140)."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.domains.booking_page.rules import advertising_texts
from chalicelib.domains.mails.store import mail_rates
from chalicelib.domains.notifications.rules.job_kinds import BOOK_AGAIN
from chalicelib.engine import jobs
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError
from chalicelib.transports import scheduled_functions
from tests.conftest import (
    Answer,
    Api,
    Owner,
    Time,
    call_console,
    call_operator,
    run_concurrently,
)
from tests.domains.notifications.clients import ADA, BOOK, book, mails_to, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.booking_links import follow, link
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon
from tests.transports.public.booking_page.helpers import BookingPage

pytestmark = pytest.mark.usefixtures("database")
VISIT = "2027-03-03T12:00:00Z"
OVER = datetime(2027, 3, 3, 13, tzinfo=UTC)
ONE_CLICK = {"Content-Type": "application/x-www-form-urlencoded"}
AGAIN = "Time to book again"


def version_of(owner: Owner, language: Any = "en") -> str:
    return advertising_texts.text(language, owner.workspace.name).version


def salon_of(owner: Owner, api: Api) -> Salon:
    call_operator("set_workspace", workspaceId=owner.workspace.id, country="GB")
    salon = Salon.opened(api, bookAgainDays=28, horizonDays=90)
    BookingPage.opened(owner, salon)
    return salon


@pytest.fixture
def salon(
    api: Api,
    owner: Owner,
    inbox: Inbox,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Any,
) -> Salon:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    return salon_of(owner, api)


def agree(salon: Salon, owner: Owner, start: str = VISIT, **fields: Any) -> str:
    """Book with the tick, and return the id of the booking."""
    fields = {"advertisingVersion": version_of(owner)} | fields
    booking_id: str = book(salon, start, **fields)["booking"]["id"]
    return booking_id


def complete(salon: Salon, booking: str, time: Time, at: datetime = OVER) -> None:
    """Let the visit pass, and set it to completed."""
    run_until_idle()
    time.now = at
    assert salon.set_status(booking, "completed").status == 200
    run_until_idle()


def asked(inbox: Inbox, address: str = ADA) -> list[Any]:
    return [each for each in mails_to(inbox, address) if AGAIN in str(each["Subject"])]


def wait(time: Time, **length: float) -> None:
    time.pass_by(**length)
    run_until_idle()


def waiting(owner: Owner) -> list[datetime]:
    rows = jobs.read_workspace_jobs(owner.workspace.id)
    return sorted(job.due_at for job in rows if job.kind == BOOK_AGAIN)


def path_of(inbox: Inbox) -> str:
    match = re.search(r"(/unsubscribe/advertising/[^>]+)>", asked(inbox)[-1]["List-Unsubscribe"])
    assert match
    return match[1]


def client_of(owner: Owner) -> str:
    (client,) = owner.api().get(f"/api/clients/list?search={ADA}")["clients"]
    client_id: str = client["id"]
    return client_id


def consents(owner: Owner, client: str | None = None) -> Any:
    return owner.api().get(f"/api/clients/{client or client_of(owner)}/advertising")


def unsubscribe(path: str) -> Answer:
    return Api(None).call("POST", path, "List-Unsubscribe=One-Click", ONE_CLICK)


class TestWhoIsAsked:
    def test_a_client_who_agreed_is_asked_once_after_the_days_of_the_service(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        wait(time, days=28, minutes=-1)
        assert asked(inbox) == []
        wait(time, minutes=1)
        (message,) = asked(inbox)
        text = text_of(message)
        assert f"/book/{owner.workspace.slug}/{salon.service}?staff={salon.resource}" in text
        assert "advertising" in text
        assert ADA not in text
        assert "Ada" not in text
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        wait(time, days=60)
        assert len(asked(inbox)) == 1
        assert waiting(owner) == []

    def test_the_text_the_time_and_the_place_are_kept_as_evidence(
        self, salon: Salon, owner: Owner, time: Time
    ) -> None:
        booking = agree(salon, owner, advertisingVersion=version_of(owner, "ru"))
        (entry,) = consents(owner)["history"]
        assert entry == {
            "at": "2027-01-15T12:00:00.000Z",
            "state": "granted",
            "source": "public",
            "label": advertising_texts.text("ru", owner.workspace.name).text,
            "version": version_of(owner, "ru"),
            "language": "ru",
            "email": ADA,
            "bookingId": booking,
        }

    @pytest.mark.parametrize("version", [None, "0123456789abcdef"])
    def test_nobody_is_asked_without_a_tick_beside_the_present_text(
        self, version: str | None, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner, advertisingVersion=version), time)
        assert consents(owner) == {"agrees": False, "history": [], "status": True}
        assert waiting(owner) == []
        wait(time, days=28)
        assert asked(inbox) == []

    def test_a_service_that_asks_nobody_stores_no_consent(self, salon: Salon, owner: Owner) -> None:
        salon.api.post("/api/services/update", {"id": salon.service, "bookAgainDays": None})
        agree(salon, owner)
        assert consents(owner)["history"] == []

    def test_an_address_that_nobody_proved_gets_nothing_until_the_visit_is_completed(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        """Somebody may have typed the address of another person, and stayed away."""
        agree(salon, owner)
        run_until_idle()
        time.now = OVER
        wait(time, days=28)
        assert asked(inbox) == []

    @pytest.mark.parametrize("status", ["no_show", "cancelled"])
    def test_a_visit_that_did_not_take_place_is_followed_by_nothing(
        self, status: str, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        booking = agree(salon, owner)
        run_until_idle()
        time.now = OVER
        salon.set_status(booking, status)
        wait(time, days=28)
        assert asked(inbox) == []

    def test_a_stranger_cannot_agree_for_a_client(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        """The client's own visits prove nothing of a tick by somebody who did not come."""
        agree(salon, owner, "2027-03-02T12:00:00Z")
        own = book(salon, VISIT)["booking"]["id"]
        complete(salon, own, time)
        wait(time, days=28)
        assert asked(inbox) == []

    def test_a_proved_address_is_asked_after_a_confirmed_visit(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        salon.api.post("/api/services/update", {"id": salon.service, "unverifiedPerHour": 1})
        time.pass_by(hours=1)
        book(salon, "2027-03-01T12:00:00Z", "other@example.com")
        order = salon.order(VISIT, advertisingVersion=version_of(owner))
        assert visitor.call("POST", BOOK, order).status == 202
        assert follow(link(inbox, ADA)).status == 303
        run_until_idle()
        time.now = OVER
        wait(time, days=28)
        assert len(asked(inbox)) == 1

    @pytest.mark.parametrize("booked_before", [True, False])
    def test_a_client_with_a_later_booking_is_not_asked(
        self, booked_before: bool, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        first, later = agree(salon, owner), "2027-04-05T12:00:00Z"
        if booked_before:
            book(salon, later)
        complete(salon, first, time)
        if not booked_before:
            book(salon, later)
        wait(time, days=28)
        assert asked(inbox) == []

    def test_a_booking_since_that_was_cancelled_counts_as_booked(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        time.pass_by(days=1)
        salon.set_status(book(salon, "2027-04-05T12:00:00Z")["booking"]["id"], "cancelled")
        wait(time, days=27)
        assert asked(inbox) == []

    def test_a_moved_visit_is_followed_from_its_new_end(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        booking = agree(salon, owner)
        run_until_idle()
        body = {"id": booking, "startAt": "2027-03-05T12:00:00Z"}
        salon.api.post("/api/bookings/reschedule", body)
        complete(salon, booking, time, OVER + timedelta(days=2))
        time.now = OVER + timedelta(days=29)
        run_until_idle()
        assert asked(inbox) == []
        wait(time, days=1)
        assert len(asked(inbox)) == 1

    def test_the_last_of_several_visits_is_followed(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        first, second = agree(salon, owner), agree(salon, owner, "2027-03-10T12:00:00Z")
        complete(salon, first, time)
        complete(salon, second, time, OVER + timedelta(days=7))
        assert len(waiting(owner)) == 2
        wait(time, days=21)
        assert asked(inbox) == []
        wait(time, days=7)
        assert len(asked(inbox)) == 1
        assert waiting(owner) == []

    @pytest.mark.parametrize(
        "change",
        [
            ("/api/services/update", {"bookAgainDays": None}),
            ("/api/services/update", {"status": "inactive"}),
            ("/api/booking-page/update", {"isOn": False}),
        ],
    )
    def test_nobody_is_asked_for_what_is_off(
        self,
        change: tuple[str, dict[str, Any]],
        salon: Salon,
        owner: Owner,
        inbox: Inbox,
        time: Time,
    ) -> None:
        complete(salon, agree(salon, owner), time)
        path, fields = change
        about = {"id": salon.service} if "services" in path else {}
        owner.api().post(path, fields | about)
        wait(time, days=28)
        assert asked(inbox) == []
        assert waiting(owner) == []

    def test_nobody_is_asked_for_a_deleted_service(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        owner.api().post("/api/services/delete", {"id": salon.service})
        wait(time, days=28)
        assert asked(inbox) == []

    def test_the_address_is_that_of_the_consent(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        """Nobody has agreed for an address that the business has entered since."""
        complete(salon, agree(salon, owner), time)
        body = {"id": client_of(owner), "email": "new@example.com"}
        owner.api().post("/api/clients/update", body)
        wait(time, days=28)
        assert asked(inbox) == asked(inbox, "new@example.com") == []


class TestWhen:
    def test_an_evening_visit_is_followed_the_next_morning(
        self, api: Api, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        Salon.set_hours(
            api, salon.resource, [{"weekdays": ["wed"], "start": "09:00", "end": "23:00"}]
        )
        booking = agree(salon, owner, "2027-03-03T21:00:00+03:00")
        complete(salon, booking, time, datetime(2027, 3, 3, 19, tzinfo=UTC))
        assert waiting(owner) == [datetime(2027, 4, 1, 7, tzinfo=UTC)]
        wait(time, days=28)
        assert asked(inbox) == []
        time.now = datetime(2027, 4, 1, 7, tzinfo=UTC)
        run_until_idle()
        assert len(asked(inbox)) == 1

    def test_the_time_of_day_stays_when_clocks_change(
        self, api: Api, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        call_operator(
            "set_workspace", workspaceId=owner.workspace.id, timezone="Europe/Berlin", country="DE"
        )
        salon = Salon.opened(api, [{"timezone": "Europe/Berlin"}], bookAgainDays=28)
        BookingPage.opened(owner, salon)
        agree(salon, owner, "2027-03-03T12:00:00+01:00")
        run_until_idle()
        # Clocks go forward on 28 March: 13:00 is 12:00 UTC before, and 11:00 UTC after it.
        assert waiting(owner) == [datetime(2027, 3, 31, 11, tzinfo=UTC)]

    def test_a_longer_time_set_meanwhile_applies(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        owner.api().post("/api/services/update", {"id": salon.service, "bookAgainDays": 35})
        wait(time, days=28)
        assert asked(inbox) == []
        wait(time, days=7)
        assert len(asked(inbox)) == 1

    def test_an_email_that_could_not_be_sent_for_days_is_withheld(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        booking = agree(salon, owner)
        complete(salon, booking, time)
        wait(time, days=31)
        assert asked(inbox) == []
        found = owner.api().get(f"/api/bookings/{booking}")["booking"]
        assert found["mails"][-1]["kind"] == "again"
        assert found["mails"][-1]["reason"] == "too_late"


class TestWithdrawal:
    def test_withdrawn_between_the_job_and_the_email(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        assert len(waiting(owner)) == 1
        body = {"id": client_of(owner)}
        assert owner.api().post("/api/clients/withdraw-advertising", body)["agrees"] is False
        wait(time, days=28)
        assert asked(inbox) == []

    def test_one_click_unsubscribes_and_a_second_one_changes_nothing(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        wait(time, days=28)
        path = path_of(inbox)
        answer = Api(None).call("GET", path)
        assert answer.status == 200
        assert owner.workspace.name in answer.body.decode()
        assert answer.headers["Cache-Control"] == "no-store"
        assert consents(owner)["agrees"] is True
        for _ in range(2):
            assert unsubscribe(path).status == 200
        states = [entry["state"] for entry in consents(owner)["history"]]
        assert states == ["granted", "withdrawn"]
        assert consents(owner)["history"][-1]["source"] == "link"
        wait(time, days=1)
        complete(salon, book(salon, "2027-04-07T12:00:00Z")["booking"]["id"], time, time.now)
        wait(time, days=28 + 7)
        assert len(asked(inbox)) == 1

    def test_a_forged_link_is_404(self, salon: Salon, owner: Owner) -> None:
        agree(salon, owner)
        forged = f"/unsubscribe/advertising/{owner.workspace.id}.{client_of(owner)}.{'A' * 22}"
        for path in (forged, "/unsubscribe/advertising/x", "/unsubscribe/advertising/%D1%8F.a.b"):
            assert unsubscribe(path).status == 404
        assert consents(owner)["agrees"] is True

    def test_the_link_of_a_member_is_no_link_of_a_client(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        wait(time, days=28)
        token = path_of(inbox).rpartition("/")[2]
        assert unsubscribe(f"/unsubscribe/{token}").status == 404

    def test_a_client_who_agrees_again_is_asked_again(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        owner.api().post("/api/clients/withdraw-advertising", {"id": client_of(owner)})
        second = agree(salon, owner, "2027-03-10T12:00:00Z")
        complete(salon, second, time, OVER + timedelta(days=7))
        wait(time, days=28)
        assert len(asked(inbox)) == 1

    def test_the_page_of_a_booking_leads_to_the_withdrawal(
        self, salon: Salon, owner: Owner
    ) -> None:
        made = book(salon, VISIT, advertisingVersion=version_of(owner))
        token = made["manageUrl"].rpartition("/")[2]
        by_token = "/api/public/bookings/by-token"
        url = Api(None).post(by_token, {"token": token})["advertisingUrl"]
        assert unsubscribe("/unsubscribe/" + url.partition("/unsubscribe/")[2]).status == 200
        assert consents(owner)["agrees"] is False
        assert Api(None).post(by_token, {"token": token})["advertisingUrl"] is None

    def test_an_erased_client_gets_nothing_and_leaves_no_address(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        client = client_of(owner)
        owner.api().post("/api/clients/delete", {"id": client})
        (entry,) = consents(owner, client)["history"]
        assert (entry["email"], entry["label"]) == (None, None)
        wait(time, days=28)
        assert asked(inbox) == []

    def test_the_file_of_a_client_has_the_consents(self, salon: Salon, owner: Owner) -> None:
        agree(salon, owner)
        client = client_of(owner)
        known = call_console(owner.workspace.id, "export_client", id=client)
        assert known["advertising"] == consents(owner)["history"]


class TestLimits:
    def test_two_workspaces_ask_by_their_own_consents(
        self,
        salon: Salon,
        owner: Owner,
        new_owner: Callable[..., Owner],
        inbox: Inbox,
        time: Time,
    ) -> None:
        other = new_owner()
        rival = salon_of(other, other.api())
        book(rival, VISIT)
        complete(salon, agree(salon, owner), time)
        wait(time, days=28)
        assert len(asked(inbox)) == 1
        assert consents(other)["history"] == []

    def test_a_workspace_asks_an_address_once_a_week(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        """Two clients may have one mailbox, whose dots some providers ignore."""
        first = agree(salon, owner, email="ada.l@gmail.com")
        second = agree(salon, owner, "2027-03-03T13:00:00Z", email="adal@gmail.com")
        complete(salon, first, time)
        complete(salon, second, time, OVER + timedelta(hours=1))
        wait(time, days=28)
        found = asked(inbox, "ada.l@gmail.com") + asked(inbox, "adal@gmail.com")
        assert len(found) == 1

    def test_complaints_pause_advertising_and_nothing_else(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        complete(salon, agree(salon, owner), time)
        time.pass_by(days=28)
        assert mail_rates.pause(owner.workspace.id, "advertising", "complaints")
        run_until_idle()
        assert asked(inbox) == []
        inbox.clear()
        book(salon, "2027-04-20T12:00:00Z", "bob@example.com")
        run_until_idle()
        assert mails_to(inbox, "bob@example.com")

    def test_a_killed_job_sends_once(
        self,
        salon: Salon,
        owner: Owner,
        inbox: Inbox,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        complete(salon, agree(salon, owner), time)
        (row,) = [
            job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == BOOK_AGAIN
        ]
        time.pass_by(days=28)
        real, calls = mail.send, []

        def busy_once(message: Any) -> None:
            calls.append(message)
            if len(calls) == 1:
                msg = "busy"
                raise MailDelayedError(msg)
            real(message)

        monkeypatch.setattr(mail, "send", busy_once)
        run_until_idle()
        assert asked(inbox) == []
        wait(time, minutes=10)
        assert len(asked(inbox)) == 1
        # The process was killed after the e-mail, before the job was removed.
        jobs.schedule(jobs.row(BOOK_AGAIN, row.workspace_id, row.payload, job_id=row.job_id))
        run_until_idle()
        assert len(asked(inbox)) == 1
        assert waiting(owner) == []

    def test_two_runners_send_one_email(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        """A status that is set twice makes the job twice, at the same time or not."""
        booking = agree(salon, owner)
        complete(salon, booking, time)
        (row,) = [
            job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == BOOK_AGAIN
        ]
        time.pass_by(days=28)
        other = jobs.row(BOOK_AGAIN, row.workspace_id, row.payload, job_id="another")
        jobs.schedule(other)
        run_concurrently(2, lambda _: scheduled_functions.run_event_jobs())
        run_until_idle()
        assert len(asked(inbox)) == 1


class TestVisitsOfSeveralServices:
    @pytest.fixture
    def visit(self, salon: Salon, owner: Owner) -> list[str]:
        body = {"name": "Colour", "durationMin": 30, "price": 100, "resourceIds": salon.resources}
        colour = salon.api.post("/api/services/create", body | {"bookAgainDays": 7})["service"]
        agreed = {"advertisingVersion": version_of(owner), "andThen": [colour["id"]]}
        book(salon, VISIT, **agreed)
        rows = salon.api.get("/api/bookings/list?sort=startAtAsc")["bookings"]
        return [row["id"] for row in rows if "visitId" in row]

    def test_a_client_is_asked_once_after_the_days_of_the_first_service(
        self, salon: Salon, visit: list[str], inbox: Inbox, time: Time
    ) -> None:
        run_until_idle()
        time.now = OVER + timedelta(minutes=30)
        for booking in visit:
            salon.set_status(booking, "completed")
            run_until_idle()
        wait(time, days=28, minutes=-1)
        assert asked(inbox) == []
        wait(time, minutes=1)
        (message,) = asked(inbox)
        assert "Haircut, Colour" in text_of(message)
        # The salon's page offers the haircut alone.
        assert "then=" not in text_of(message)
        wait(time, days=60)
        assert len(asked(inbox)) == 1

    def test_the_link_books_all_services_that_are_offered(
        self, salon: Salon, visit: list[str], owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        colour = salon.api.get("/api/bookings/" + visit[1])["booking"]["serviceId"]
        BookingPage(owner, salon).set(offer=[salon.service, colour])
        run_until_idle()
        time.now = OVER + timedelta(minutes=30)
        for booking in visit:
            salon.set_status(booking, "completed")
        run_until_idle()
        wait(time, days=28)
        (message,) = asked(inbox)
        assert f"/{salon.service}?staff={salon.resource}&then={colour}" in text_of(message)

    def test_what_did_not_take_place_does_not_count(
        self, salon: Salon, visit: list[str], inbox: Inbox, time: Time
    ) -> None:
        run_until_idle()
        time.now = OVER + timedelta(minutes=30)
        salon.set_status(visit[1], "completed")
        salon.set_status(visit[0], "no_show")
        run_until_idle()
        wait(time, days=28)
        (message,) = asked(inbox)
        assert "Haircut" not in text_of(message).partition("Colour")[0]

    def test_a_visit_that_did_not_take_place_asks_nobody(
        self, salon: Salon, visit: list[str], inbox: Inbox, time: Time
    ) -> None:
        salon.set_status(visit[1], "cancelled")
        run_until_idle()
        wait(time, days=90)
        assert asked(inbox) == []

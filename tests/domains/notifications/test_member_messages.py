"""Messages to members about events of their workspace, and waits for busy senders."""

import logging

import pytest

from chalicelib.core.jobs import JOB_HANDLERS, PEOPLE_EVENTS, Queue
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.notifications.rules.job_kinds import NOTIFY_MEMBER
from chalicelib.domains.notifications.store import windows
from chalicelib.domains.webhooks.flows import due_deliveries
from chalicelib.engine import jobs
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail, MailDelayedError, MailRefusedError
from chalicelib.transports import scheduled_functions
from tests.conftest import PASSWORD, Api, Owner, Time, call_console, call_operator
from tests.domains.notifications.helpers import link, new_member
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.factories.console import Person
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.internet import Internet, http_response
from tests.fakes.telegram import FakeTelegram, failure

RECEIVER = "https://receiver.example/events"
pytestmark = pytest.mark.usefixtures("database")


def waiting_kinds(owner: Owner) -> list[str]:
    """Return the kinds of jobs that wait in the workspace."""
    return sorted(job.kind for job in jobs.read_workspace_jobs(owner.workspace.id))


def switched_off_webhook(owner: Owner) -> str:
    """Add a webhook that the service then switches off, and return its id."""
    place = {"workspaceId": owner.workspace.id, "url": RECEIVER, "events": ["client.erased"]}
    webhook: str = call_operator("create_webhook", **place)["webhook"]["id"]
    due_deliveries.switch_off(owner.workspace.id, webhook_id=webhook, reason="gone")
    return webhook


class TestMails:
    def test_owner_gets_lead_emails_by_default(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        submit(things.form, name="Ada", email="ada@example.com", message="Do you bake rye bread?")
        run_until_idle()
        message = inbox.only()
        assert message["To"] == accounts.get(owner.workspace.owner_id).email
        assert message["Subject"] == "Новая заявка: Ada"
        assert "Ada" in text_of(message)
        assert "ada@example.com" in text_of(message)
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"

    def test_a_member_chooses_kinds_and_the_language(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        member = new_member(owner, "bob@example.com")
        choose(owner, member, "member", "en", lead=["mail"])
        choose(owner, owner.workspace.owner_id, "owner", "ru", lead=[], member_added=[])
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        message = inbox.only()
        assert message["To"] == "bob@example.com"
        assert message["Subject"] == "New lead: Ada"

    def test_a_name_cannot_add_headers_or_markup(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        submit(things.form, name="<b>Ada</b>", email="ada@example.com")
        run_until_idle()
        assert "<b>Ada" not in text_of(inbox.only(), "html")

    def test_restored_booking_causes_no_cancellation_message(
        self, inbox: Inbox, owner: Owner, things: Things, api: Api
    ) -> None:
        for status in ("cancelled", "confirmed"):
            api.post("/api/bookings/set-status", {"id": things.booking, "status": status})
        run_until_idle()
        assert inbox.mails == []

    def test_of_a_deleted_webhook_only_the_deletion_is_told(
        self, inbox: Inbox, owner: Owner
    ) -> None:
        webhook = switched_off_webhook(owner)
        call_operator("delete_webhook", id=webhook)
        run_until_idle()
        assert inbox.kinds == ["webhook_deleted"]

    def test_removed_and_disabled_members_get_no_message(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        removed_member = new_member(owner, "rae@example.com")
        disabled = new_member(owner, "dan@example.com")
        kinds = {key: list[str]() for key in ("lead", "member_added", "member_removed")}
        choose(owner, owner.workspace.owner_id, "owner", **kinds)
        for account in (removed_member, disabled):
            choose(owner, account, "member", lead=["mail"])
        submit(things.form, name="Ada", email="ada@example.com")
        run_event_jobs_of("people-events")
        call_operator("remove_member", workspaceId=owner.workspace.id, email="rae@example.com")
        call_operator("disable_account", email="dan@example.com")
        run_until_idle()
        assert inbox.mails == []

    def test_unchosen_kinds_write_no_rows(
        self, inbox: Inbox, owner: Owner, things: Things, time: Time
    ) -> None:
        choose(owner, owner.workspace.owner_id, "owner", lead=[])
        time.pass_by(seconds=11)
        submit(things.form, name="Ada", email="ada@example.com")
        assert "people-events" not in waiting_kinds(owner)

    def test_no_rows_are_written_without_mail_and_choices(
        self, owner: Owner, things: Things
    ) -> None:
        submit(things.form, name="Ada", email="ada@example.com")
        assert "people-events" not in waiting_kinds(owner)

    def test_delayed_email_is_sent_later_with_the_same_id(
        self,
        inbox: Inbox,
        owner: Owner,
        things: Things,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        tried: list[str] = []

        def delay(message: mail.Mail) -> None:
            tried.append(message.id)
            raise MailDelayedError("busy")

        with monkeypatch.context() as patched:
            patched.setattr(mail, "send", delay)
            submit(things.form, name="Ada", email="ada@example.com")
            run_until_idle()
        assert inbox.mails == []
        time.pass_by(minutes=2)
        run_until_idle()
        assert inbox.only()["Message-ID"].startswith(f"<{tried[0]}@")

    def test_refused_email_is_not_repeated(
        self, inbox: Inbox, owner: Owner, things: Things, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(message: mail.Mail) -> None:
            raise MailRefusedError("no such address")

        monkeypatch.setattr(mail, "send", refuse)
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        assert "notify-member" not in waiting_kinds(owner)


def run_event_jobs_of(kind: str) -> None:
    """Run the jobs of one kind that are due."""
    jobs.run({kind: JOB_HANDLERS[kind]}, queue=Queue.EVENTS)


class TestManyMessages:
    def test_more_than_ten_in_ten_minutes_become_one(
        self, inbox: Inbox, owner: Owner, things: Things, time: Time
    ) -> None:
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail"])
        for number in range(13):
            submit(things.form, name=f"Ada {number}", email=f"ada{number}@example.com")
        run_until_idle()
        assert len(inbox.mails) == 10
        time.pass_by(minutes=11)
        run_until_idle()
        assert len(inbox.mails) == 11
        assert "New leads: 3 more" in inbox.subjects
        time.pass_by(minutes=11)
        run_until_idle()
        assert len(inbox.mails) == 11

    def test_after_a_hundred_of_a_day_the_others_of_an_hour_become_one(
        self,
        inbox: Inbox,
        owner: Owner,
        things: Things,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(windows, "MOST_A_DAY", 15)
        # Jobs at the same time may each find the day just below its limit.
        monkeypatch.setattr(scheduled_functions, "EVENT_THREADS", 1)
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail"])
        for number in range(40):
            submit(things.form, name=f"Ada {number}", email=f"ada{number}@example.com")
            if number % 10 == 9:
                run_until_idle()
                time.pass_by(minutes=10)
        time.pass_by(minutes=60)
        run_until_idle()
        assert len(inbox.mails) == 15 + 1
        assert "New leads: 25 more" in inbox.subjects
        time.pass_by(days=1)
        submit(things.form, name="Eve", email="eve@example.com")
        run_until_idle()
        assert len(inbox.mails) == 15 + 2


class TestTelegram:
    def test_chat_gets_no_text_of_a_visitor(
        self, telegram: FakeTelegram, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        link(owner, 7)
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["telegram"])
        name = "Ivan +79161234567 http://evil.example"
        submit(things.form, name=name, email="ada@example.com", message="Call me: +79161234567")
        run_until_idle()
        (text,) = telegram.texts
        *lines, link_line, workspace = text.split("\n")
        assert [*lines, workspace] == ["New lead", "Form: Contact us", owner.workspace.name]
        assert f"/console/w/{owner.workspace.slug}/leads/" in link_line
        assert inbox.mails == []


class TestKinds:
    def test_bookings_and_cancellations_are_reported(
        self, inbox: Inbox, owner: Owner, things: Things, api: Api
    ) -> None:
        choose(owner, owner.workspace.owner_id, "owner", "en", booking=["mail"])
        api.post("/api/bookings/set-status", {"id": things.booking, "status": "cancelled"})
        run_until_idle()
        assert inbox.only()["Subject"].startswith("Booking cancelled: ")

    def test_webhook_switched_off_is_reported(self, inbox: Inbox, owner: Owner) -> None:
        chosen = {"lead": ["mail"], "webhook_changed": list[str]()}
        choose(owner, owner.workspace.owner_id, "owner", "en", **chosen)
        switched_off_webhook(owner)
        run_until_idle()
        message = inbox.only()
        assert message["Subject"] == "A webhook was switched off"
        assert RECEIVER in text_of(message)

    def test_a_calendar_that_fails_for_a_day_is_reported_to_the_owner_and_its_person(
        self, inbox: Inbox, owner: Owner, things: Things, time: Time, net: Internet
    ) -> None:
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail"])
        person, other = (new_member(owner, f"{name}@example.com") for name in ("anna", "bob"))
        spare = owner.api().post("/api/resources/create", {"name": "Bob"})["resource"]["id"]
        for member, resource in ((person, things.resource), (other, spare)):
            arguments = {"accountId": member, "resourceId": resource}
            call_console(owner.workspace.id, "link_member", **arguments)
        url = "https://calendar.example/private-0123.ics"
        net.serve(url, http_response(b"", "410 Gone"))
        body = {"resourceId": things.resource, "url": url}
        owner.api().post("/api/busy-calendars/create", body)
        for _ in range(12):
            time.pass_by(hours=4)
            scheduled_functions.run_jobs()
            run_until_idle()
        told = [mail for mail in inbox.mails if "calendar.example" in text_of(mail)]
        assert {mail["To"] for mail in told} == {
            accounts.get(owner.workspace.owner_id).email,
            "anna@example.com",
        }
        assert len(told) == 2
        assert all("private-0123" not in text_of(mail) for mail in told)

    def test_order_is_reported_once(
        self, inbox: Inbox, owner: Owner, things: Things, api: Api
    ) -> None:
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail"])
        fields = [{"name": "name", "label": "Name", "type": "text"}]
        form = api.post("/api/forms/create", {"title": "Order", "fields": fields})["form"]["id"]
        item = {"productId": things.product, "quantity": 2}
        submit(form, name="Ada", items=[item])
        run_until_idle()
        assert inbox.subjects == ["New order: Ada"]


class TestOwnChanges:
    @pytest.mark.parametrize("in_the_console", [True, False])
    def test_a_member_gets_no_mail_about_their_own_cancellation(
        self, in_the_console: bool, inbox: Inbox, owner: Owner, things: Things, api: Api
    ) -> None:
        member = new_member(owner, "bob@example.com")
        choose(owner, member, "member", "en", booking_cancelled=["mail"])
        run_until_idle()
        inbox.clear()
        change = {"id": things.booking, "status": "cancelled"}
        if in_the_console:
            call_console(owner.workspace.id, "set_booking_status", account_id=member, **change)
        else:
            api.post("/api/bookings/set-status", change)
        run_until_idle()
        owner_email = accounts.get(owner.workspace.owner_id).email
        others = set() if in_the_console else {"bob@example.com"}
        to_members = {str(mail["To"]) for mail in inbox.mails if mail["List-Unsubscribe"]}
        assert to_members == {owner_email, *others}


def test_messages_are_in_the_language_of_the_page_that_the_member_signed_in_on(
    inbox: Inbox, owner: Owner, things: Things
) -> None:
    boss = Person(accounts.get(owner.workspace.owner_id).email)
    page = boss.get("/console/sign-in", accept_language="en")
    assert page.status == 200
    fields = {"email": boss.email, "password": PASSWORD}
    boss.post("/console/sign-in", fields, accept_language="en")
    submit(things.form, name="Ada", email="ada@example.com")
    run_until_idle()
    assert inbox.subjects == ["New lead: Ada"]


def test_client_erased_before_sending_is_in_no_message(
    lead_inbox: Inbox, owner: Owner, things: Things, time: Time
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    jobs.run({PEOPLE_EVENTS: JOB_HANDLERS[PEOPLE_EVENTS]}, queue=Queue.EVENTS)
    assert NOTIFY_MEMBER in waiting_kinds(owner)
    call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
    run_until_idle()
    time.pass_by(days=1)
    run_until_idle()
    assert lead_inbox.mails == []


class TestWaits:
    """A busy sender gets no request before the stated time, and the log has no error."""

    def test_email_is_delayed_as_the_server_requests(
        self,
        lead_inbox: Inbox,
        things: Things,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        attempts: list[Mail] = []

        def delay(message: Mail) -> None:
            attempts.append(message)
            raise MailDelayedError("busy", 900.0)

        caplog.set_level(logging.INFO)
        with monkeypatch.context() as patched:
            patched.setattr(mail, "send", delay)
            submit(things.form, name="Ada", email="ada@example.com")
            run_until_idle()
            time.pass_by(seconds=899)
            run_until_idle()
        assert len(attempts) == 1
        time.pass_by(seconds=1)
        run_until_idle()
        assert lead_inbox.only()["Message-ID"].startswith(f"<{attempts[0].id}@")
        levels = {record.levelno for record in caplog.records if "message" in record.getMessage()}
        assert levels == {logging.INFO}

    def test_chat_message_is_delayed_as_telegram_requests(
        self, telegram: FakeTelegram, inbox: Inbox, owner: Owner, things: Things, time: Time
    ) -> None:
        link(owner, 7)
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["telegram"])
        telegram.failures = [failure(429, "Too Many Requests", retry_after=600)]
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        time.pass_by(seconds=599)
        run_until_idle()
        assert telegram.texts == []
        time.pass_by(seconds=1)
        run_until_idle()
        assert len(telegram.texts) == 1

    def test_message_is_dropped_after_a_day_with_one_warning(
        self,
        lead_inbox: Inbox,
        owner: Owner,
        things: Things,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        attempts: list[Mail] = []

        def delay(message: Mail) -> None:
            attempts.append(message)
            raise MailDelayedError("busy")

        monkeypatch.setattr(mail, "send", delay)
        submit(things.form, name="Ada", email="ada@example.com")
        for _ in range(72):
            run_until_idle()
            time.pass_by(hours=1)
        assert 4 <= len(attempts) <= 12
        assert [
            job for job in jobs.read_workspace_jobs(owner.workspace.id) if "notify" in job.kind
        ] == []
        severe = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [record.getMessage() for record in severe] == ["a message to a member was given up"]

"""Limits of emails to clients, and effects of a repeated job."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.jobs import JOB_HANDLERS, VISITOR_EVENTS, Queue
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.notifications.flows import client_mail_jobs, mail_gate
from chalicelib.domains.notifications.store import mail_log, mail_rates
from chalicelib.engine import jobs
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError, MailRefusedError
from tests.conftest import Api, Owner, Time, all_rows, call_console, call_operator
from tests.domains.notifications.clients import ADA, book, mails_to
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database", "large_share")
HOURS = [f"2027-03-03T{hour:02}:00:00Z" for hour in range(9, 16)]


@pytest.fixture
def salon(api: Api, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, reload_settings: Any) -> Salon:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    return Salon.opened(api)


def withheld_counts(owner: Owner) -> dict[str, int]:
    """Return the number of emails withheld today, by reason."""
    response = call_console(
        owner.workspace.id, "get_notifications", account_id=owner.workspace.owner_id
    )
    return {reason: count for reason, count in response["withheld"].items() if count}


class TestAnAddress:
    def test_address_gets_three_emails_a_day_in_any_spelling(
        self, inbox: Inbox, salon: Salon, owner: Owner, time: Time
    ) -> None:
        for hour, address in zip(
            HOURS, [ADA, "ADA@example.com", "ada+a@example.com", "ada+b@example.com"], strict=False
        ):
            book(salon, hour, address)
        run_until_idle()
        to_ada = [message for message in inbox.mails if "ada" in message["To"].lower()]
        assert len(to_ada) == 3
        assert withheld_counts(owner) == {"byAddress": 1}
        time.pass_by(days=1)
        assert withheld_counts(owner) == {}
        book(salon, HOURS[4], ADA)
        run_until_idle()
        assert len([message for message in inbox.mails if "ada" in message["To"].lower()]) == 4

    def test_address_gets_three_emails_a_day_from_all_workspaces(
        self, inbox: Inbox, salon: Salon, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner()
        theirs = Salon.opened(other.api())
        for hour in HOURS[:2]:
            book(salon, hour)
            book(theirs, hour)
        run_until_idle()
        assert len(mails_to(inbox)) == 3

    def test_suppressed_address_gets_no_email(
        self, inbox: Inbox, salon: Salon, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mail_gate, "is_suppressed", lambda address: address == ADA)
        book(salon, HOURS[0])
        run_until_idle()
        assert mails_to(inbox) == []
        assert withheld_counts(owner) == {"byBounce": 1}

    def test_address_is_not_stored_with_its_emails(self, inbox: Inbox, salon: Salon) -> None:
        keys_before = set(all_rows())
        book(salon, HOURS[0])
        run_until_idle()
        rows = {key: row for key, row in all_rows().items() if key not in keys_before}
        mail_rows = [row for row in rows.values() if "MAIL" in row["pk"]["S"].upper()]
        assert mail_rows
        assert all(ADA not in str(row) for row in mail_rows)


class TestAWorkspace:
    def test_visitors_bookings_use_half_of_the_plans_emails(
        self, inbox: Inbox, salon: Salon, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.CLIENT_MAILS_A_DAY, "business", 4)
        for hour, name in zip(HOURS, "abcd", strict=False):
            book(salon, hour, f"{name}@example.com")
        run_until_idle()
        to_visitors = [
            message for message in inbox.mails if len(message["To"]) == len("a@example.com")
        ]
        assert len(to_visitors) == 2
        assert withheld_counts(owner) == {"byPlan": 2}

    def test_paused_workspace_sends_no_email(
        self, inbox: Inbox, salon: Salon, owner: Owner
    ) -> None:
        assert mail_rates.pause(owner.workspace.id, "complaints")
        book(salon, HOURS[0])
        run_until_idle()
        assert mails_to(inbox) == []
        assert withheld_counts(owner) == {"byPause": 1}
        assert call_operator("resume_mail", workspaceId=owner.workspace.id) == {"wasPaused": True}
        book(salon, HOURS[1])
        run_until_idle()
        assert len(mails_to(inbox)) == 1


class TestARepeatedJob:
    @pytest.fixture
    def job(self, salon: Salon, owner: Owner) -> jobs.JobRow:
        """The due job of the email about a new booking."""
        book(salon, HOURS[0])
        jobs.run({VISITOR_EVENTS: JOB_HANDLERS[VISITOR_EVENTS]}, queue=Queue.EVENTS)
        waiting = jobs.read_workspace_jobs(owner.workspace.id)
        (mail_job,) = [job for job in waiting if job.kind == MAIL_CLIENT]
        return mail_job

    def test_repeated_job_sends_and_counts_no_second_email(
        self, job: jobs.JobRow, inbox: Inbox, salon: Salon
    ) -> None:
        for _ in range(5):
            client_mail_jobs.mail_client(job)
        inbox.clear()
        client_mail_jobs.mail_client(job)
        assert mails_to(inbox) == []
        for hour in HOURS[1:3]:
            book(salon, hour)
        run_until_idle()
        assert len(mails_to(inbox)) == 2

    def test_repeated_job_sends_a_counted_but_unsent_email(
        self, job: jobs.JobRow, inbox: Inbox, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: mail.Mail) -> None:
            raise MailDelayedError("busy")

        with monkeypatch.context() as patched:
            patched.setattr(mail, "send", fail)
            for _ in range(5):
                with pytest.raises(MailDelayedError):
                    client_mail_jobs.mail_client(job)
        client_mail_jobs.mail_client(job)
        assert len(mails_to(inbox)) == 1
        assert withheld_counts(owner) == {}

    def test_kill_after_sending_repeats_the_same_message_id(
        self, job: jobs.JobRow, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(mail_log, "note_sent", _killed)
            with pytest.raises(KeyboardInterrupt):
                client_mail_jobs.mail_client(job)
        (first,) = mails_to(inbox)
        client_mail_jobs.mail_client(job)
        (second,) = mails_to(inbox)
        assert first["Message-ID"] == second["Message-ID"]

    def test_repeated_job_sends_no_refused_email(
        self, job: jobs.JobRow, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_: mail.Mail) -> None:
            raise MailRefusedError("no such address")

        with monkeypatch.context() as patched:
            patched.setattr(mail, "send", refuse)
            client_mail_jobs.mail_client(job)
        client_mail_jobs.mail_client(job)
        assert mails_to(inbox) == []

    def test_repeated_job_counts_a_withheld_email_once(
        self, job: jobs.JobRow, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mail_gate, "is_suppressed", lambda _: True)
        for _ in range(3):
            client_mail_jobs.mail_client(job)
        assert withheld_counts(owner)["byBounce"] == 1


def _killed(*_: object) -> None:
    raise KeyboardInterrupt

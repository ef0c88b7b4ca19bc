"""Reminders of bookings by e-mail, and effects of a repeated job."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS, VISITOR_EVENTS, Queue
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.store import mail_log
from chalicelib.domains.notifications.flows import client_mail_decisions
from chalicelib.domains.notifications.rules.job_kinds import REMIND_CLIENT
from chalicelib.engine import jobs
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError, MailRefusedError
from chalicelib.transports.scheduled_functions import run_event_jobs
from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.notifications.clients import ADA, book, mails_to, withheld_counts
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database")
NOON, TWO = "2027-03-03T12:00:00Z", "2027-03-03T14:00:00Z"
AT = datetime(2027, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def salon(api: Api, owner: Owner, inbox: Inbox) -> Salon:
    call_operator("set_workspace", workspaceId=owner.workspace.id, country="GB")
    return Salon.opened(api)


def reminders(inbox: Inbox) -> list[str]:
    subjects = [str(message["Subject"]) for message in mails_to(inbox)]
    return [subject for subject in subjects if "reminder" in subject]


def due_times(owner: Owner) -> list[datetime]:
    """Return the due times of the waiting reminders."""
    waiting_jobs = jobs.read_workspace_jobs(owner.workspace.id)
    return sorted(job.due_at for job in waiting_jobs if job.kind == REMIND_CLIENT)


def pass_until(time: Time, moment: datetime) -> None:
    time.now = moment
    run_until_idle()


def test_a_client_is_reminded_a_day_and_two_hours_before(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time
) -> None:
    book(salon, NOON)
    run_until_idle()
    assert due_times(owner) == [AT - timedelta(hours=24)]
    pass_until(time, AT - timedelta(hours=24, minutes=1))
    assert reminders(inbox) == []
    pass_until(time, AT - timedelta(hours=24))
    assert len(reminders(inbox)) == 1
    assert due_times(owner) == [AT - timedelta(hours=2)]
    pass_until(time, AT - timedelta(hours=2))
    assert reminders(inbox) == ["Booking reminder: Haircut, 03.03 15:00"] * 2
    assert due_times(owner) == []


def test_reminders_whose_time_has_passed_are_left_out(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time
) -> None:
    time.now = AT - timedelta(hours=5)
    book(salon, NOON)
    run_until_idle()
    assert due_times(owner) == [AT - timedelta(hours=2)]
    time.now = AT - timedelta(minutes=30)
    book(salon, "2027-03-03T13:00:00Z", "bob@example.com")
    run_until_idle()
    assert len(reminders(inbox)) == 1
    assert due_times(owner) == []


def test_hours_before_are_exact_over_a_clock_change(
    inbox: Inbox, salon: Salon, owner: Owner, api: Api, time: Time
) -> None:
    """Clocks in Berlin go forward on 28 March 2027 at 01:00 UTC."""
    api.post("/api/resources/update", {"id": salon.resource, "timezone": "Europe/Berlin"})
    time.now = datetime(2027, 3, 20, 12, tzinfo=UTC)
    start = datetime(2027, 3, 28, 8, tzinfo=UTC)
    book(salon, "2027-03-28T10:00:00+02:00")
    run_until_idle()
    pass_until(time, start - timedelta(hours=24))
    (message,) = [message for message in mails_to(inbox) if "reminder" in message["Subject"]]
    assert "28 March 2027, 10:00 (Europe/Berlin, UTC+02:00)" in text_of(message)
    assert due_times(owner) == [start - timedelta(hours=2)]


def test_a_service_has_its_own_reminders(
    inbox: Inbox, salon: Salon, owner: Owner, api: Api, time: Time
) -> None:
    api.post("/api/services/update", {"id": salon.service, "reminders": [30, 4320]})
    book(salon, NOON)
    run_until_idle()
    assert due_times(owner) == [AT - timedelta(days=3)]
    api.post("/api/services/update", {"id": salon.service, "reminders": [30]})
    pass_until(time, AT - timedelta(days=3))
    assert reminders(inbox) == []
    assert due_times(owner) == [AT - timedelta(minutes=30)]
    api.post("/api/services/update", {"id": salon.service, "reminders": []})
    pass_until(time, AT - timedelta(minutes=30))
    assert reminders(inbox) == []


def test_moved_booking_gets_only_new_reminders(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time
) -> None:
    booking = book(salon, NOON)["booking"]["id"]
    run_until_idle()
    salon.api.post("/api/bookings/reschedule", {"id": booking, "startAt": TWO})
    run_until_idle()
    pass_until(time, AT - timedelta(hours=24))
    assert reminders(inbox) == []
    pass_until(time, AT - timedelta(hours=22))
    assert reminders(inbox) == ["Booking reminder: Haircut, 03.03 17:00"]
    pass_until(time, AT - timedelta(hours=2))
    assert len(reminders(inbox)) == 1
    pass_until(time, AT)
    assert len(reminders(inbox)) == 2


def test_only_live_bookings_have_reminders(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time
) -> None:
    booking = book(salon, NOON)["booking"]["id"]
    run_until_idle()
    salon.set_status(booking, "cancelled")
    pass_until(time, AT - timedelta(hours=24))
    assert reminders(inbox) == []
    assert due_times(owner) == []
    salon.set_status(booking, "confirmed")
    run_until_idle()
    pass_until(time, AT - timedelta(hours=2))
    assert len(reminders(inbox)) == 1


def test_held_booking_gets_reminders_once_paid(
    inbox: Inbox, salon: Salon, owner: Owner, api: Api
) -> None:
    api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
    set_merchant(owner.workspace.id)
    booking = book(salon, NOON)["booking"]["id"]
    run_until_idle()
    assert due_times(owner) == []
    salon.set_status(booking, "confirmed")
    run_until_idle()
    assert due_times(owner) == [AT - timedelta(hours=24)]


def test_an_erased_client_is_not_reminded(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time
) -> None:
    book(salon, NOON)
    run_until_idle()
    call_operator("erase_client", workspaceId=owner.workspace.id, email=ADA)
    pass_until(time, AT - timedelta(hours=24))
    assert reminders(inbox) == []
    assert due_times(owner) == []


def test_late_reminder_is_sent_once_and_never_after_the_start(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time
) -> None:
    book(salon, NOON)
    run_until_idle()
    pass_until(time, AT - timedelta(hours=1))
    assert len(reminders(inbox)) == 1
    assert due_times(owner) == []
    book(salon, "2027-03-09T12:00:00Z")
    run_until_idle()
    pass_until(time, datetime(2027, 3, 9, 12, tzinfo=UTC))
    assert len(reminders(inbox)) == 1


def test_failed_email_does_not_delay_the_next_reminder(
    inbox: Inbox, salon: Salon, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: mail.Mail) -> None:
        raise MailDelayedError("busy")

    book(salon, NOON)
    run_until_idle()
    with monkeypatch.context() as patched:
        patched.setattr(mail, "send", fail)
        pass_until(time, AT - timedelta(hours=24))
        assert due_times(owner) == [AT - timedelta(hours=24), AT - timedelta(hours=2)]
    time.pass_by(minutes=2)
    run_until_idle()
    assert len(reminders(inbox)) == 1
    assert due_times(owner) == [AT - timedelta(hours=2)]


@pytest.mark.parametrize("kill_at", [0, 1, 2, 3])
def test_kill_at_any_call_loses_no_email_or_reminder(
    inbox: Inbox,
    salon: Salon,
    owner: Owner,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
    kill_at: int,
) -> None:
    """The calls are: make the next job, admit the mail, send it, note that it was sent."""
    book(salon, NOON)
    run_until_idle()
    time.now = AT - timedelta(hours=24)
    (job,) = [
        job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == REMIND_CLIENT
    ]
    steps = [
        (jobs, "schedule"),
        (mail_gate, "admit"),
        (mail, "send"),
        (mail_gate.mail_log, "note_sent"),
    ]
    with monkeypatch.context() as patched:
        patched.setattr(*steps[kill_at], _killed)
        with pytest.raises(KeyboardInterrupt):
            client_mail_decisions.remind_client(job)
    time.pass_by(minutes=7)
    run_until_idle()
    assert len(reminders(inbox)) == 1
    assert due_times(owner) == [AT - timedelta(hours=2)]


def test_repeated_event_job_sends_one_email_and_one_reminder(
    inbox: Inbox, salon: Salon, owner: Owner
) -> None:
    book(salon, NOON)
    (job,) = [
        job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == VISITOR_EVENTS
    ]
    client_mail_decisions.make_mails(job)
    run_event_jobs()
    client_mail_decisions.make_mails(job)
    run_event_jobs()
    assert len(mails_to(inbox)) == 1
    assert due_times(owner) == [AT - timedelta(hours=24)]


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("large_share")
class TestARepeatedJob:
    @pytest.fixture
    def salon(
        self, api: Api, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
    ) -> Salon:
        """A salon with the limits of production."""
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        return Salon.opened(api)

    @pytest.fixture
    def job(self, salon: Salon, owner: Owner) -> jobs.JobRow:
        """The due job of the email about a new booking."""
        book(salon, NOON)
        jobs.run({VISITOR_EVENTS: JOB_HANDLERS[VISITOR_EVENTS]}, queue=Queue.EVENTS)
        waiting = jobs.read_workspace_jobs(owner.workspace.id)
        (mail_job,) = [job for job in waiting if job.kind == MAIL_CLIENT]
        return mail_job

    def test_repeated_job_sends_and_counts_no_second_email(
        self, job: jobs.JobRow, inbox: Inbox, salon: Salon
    ) -> None:
        for _ in range(5):
            client_mail_decisions.mail_client(job)
        inbox.clear()
        client_mail_decisions.mail_client(job)
        assert mails_to(inbox) == []
        for start in ("2027-03-03T10:00:00Z", TWO):
            book(salon, start)
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
                    client_mail_decisions.mail_client(job)
        client_mail_decisions.mail_client(job)
        assert len(mails_to(inbox)) == 1
        assert withheld_counts(owner) == {}

    def test_kill_after_sending_repeats_the_same_message_id(
        self, job: jobs.JobRow, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(mail_log, "note_sent", _killed)
            with pytest.raises(KeyboardInterrupt):
                client_mail_decisions.mail_client(job)
        (first,) = mails_to(inbox)
        client_mail_decisions.mail_client(job)
        (second,) = mails_to(inbox)
        assert first["Message-ID"] == second["Message-ID"]

    def test_repeated_job_sends_no_refused_email(
        self, job: jobs.JobRow, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_: mail.Mail) -> None:
            raise MailRefusedError("no such address")

        with monkeypatch.context() as patched:
            patched.setattr(mail, "send", refuse)
            client_mail_decisions.mail_client(job)
        client_mail_decisions.mail_client(job)
        assert mails_to(inbox) == []

    def test_repeated_job_counts_a_withheld_email_once(
        self, job: jobs.JobRow, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mail_gate, "is_suppressed", lambda *_: True)
        for _ in range(3):
            client_mail_decisions.mail_client(job)
        assert withheld_counts(owner)["byBounce"] == 1

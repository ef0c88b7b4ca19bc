"""Mails to clients that follow events of their bookings, and the reminders before the start.

Each mail is a job of its own with ids only. It is made from the live booking, so a client who was
erased meanwhile gets none. A booking has one job of a reminder at a time, which makes the next. Its
id follows from the booking, the start and the minutes before it. So a job that is made twice is
one job, and a job of an earlier start does nothing.
"""

from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.jobs import MAIL_CLIENT, REMIND_CLIENT, VISITOR_EVENTS, Job, job_handler
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.notifications.flows import client_mails
from chalicelib.domains.notifications.flows.client_mails import MailOptions
from chalicelib.domains.notifications.rules import client_mails as texts
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event

LONGEST_DELAY = timedelta(days=1)
"""A mail about a change that could not be sent for this long is given up."""


@job_handler(VISITOR_EVENTS)
def make_mails(job: Job) -> None:
    """Make a job for each booking of the events. If it runs again, it makes the same jobs.

    Raises:
        UnavailableError: the database is unavailable.
    """
    events = [Event(*values) for values in job.payload["events"]]
    at = datetime.fromisoformat(job.payload["at"])
    for booking_id in dict.fromkeys(event.id for event in events):
        own = [event for event in events if event.id == booking_id]
        payload = {
            "bookingId": booking_id,
            "events": [event.type for event in own],
            "previousStatus": next((e.previous_status for e in own if e.previous_status), None),
            "at": job.payload["at"],
        }
        mail_id = f"{job.job_id}-{booking_id}"
        jobs.schedule(jobs.row(MAIL_CLIENT, job.workspace_id, payload, at, job_id=mail_id))
    wake.wake()


@job_handler(MAIL_CLIENT)
def mail_client(job: Job) -> None:
    """Make the job of the booking's next reminder, and send the mail that follows the events.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    booking = BOOKINGS.find(job.workspace_id, job.payload["bookingId"])
    if booking is None or booking.client_email is None or client_mails.is_over(booking):
        return
    options = client_mails.options_of(job.workspace_id, booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    at = datetime.fromisoformat(job.payload["at"])
    kind = texts.kind_of(job.payload["events"], job.payload["previousStatus"], booking.status)
    if kind is not None and clock.now() - at <= LONGEST_DELAY:
        client_mails.send(job.workspace_id, booking, kind, job.job_id)


@job_handler(REMIND_CLIENT)
def remind_client(job: Job) -> None:
    """Make the job of the next reminder, and send this one if the booking still stands.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    booking = BOOKINGS.find(job.workspace_id, job.payload["bookingId"])
    if booking is None or booking.client_email is None or client_mails.is_over(booking):
        return
    if booking.status != "confirmed" or epoch_ms(booking.starts_at) != job.payload["startMs"]:
        return
    options = client_mails.options_of(job.workspace_id, booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    if job.payload["minutes"] in options.reminders:
        client_mails.send(job.workspace_id, booking, "reminder", job.job_id)


def _schedule_next(workspace_id: str, booking: BookingRow, options: MailOptions) -> None:
    """Make the job of the next reminder. Reminders whose time has passed are left out."""
    if booking.status != "confirmed":
        return
    now, start_ms = clock.now(), epoch_ms(booking.starts_at)
    for minutes in options.reminders:
        due_at = booking.starts_at - timedelta(minutes=minutes)
        if due_at > now:
            payload = {"bookingId": booking.id, "startMs": start_ms, "minutes": minutes}
            job_id = f"{booking.id}-{start_ms}-{minutes}"
            jobs.schedule(jobs.row(REMIND_CLIENT, workspace_id, payload, due_at, job_id=job_id))
            return

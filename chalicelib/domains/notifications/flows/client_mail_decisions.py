"""Tell clients about their bookings, and remind them before the start.

Each message is a job of its own that holds ids only. It is written from the current booking, so an
erased client gets none. ``client_cascade`` says by which channel it goes.
"""

from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.events import REFUNDED_EVENT
from chalicelib.core.jobs import VISITOR_EVENTS, Job, job_handler
from chalicelib.domains.booking_page.rules.job_kinds import MAIL_BOOKING_LINK
from chalicelib.domains.booking_page.store import requested_bookings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, VISITOR_SOURCES, BookingRow
from chalicelib.domains.mails.rules.mail_budgets import MailClass
from chalicelib.domains.notifications.flows import book_again, client_cascade, client_message
from chalicelib.domains.notifications.flows.client_mail_sending import (
    MailOptions,
    mail_options,
    send_link,
)
from chalicelib.domains.notifications.rules import client_mail_texts
from chalicelib.domains.notifications.rules.client_channels import order_of
from chalicelib.domains.notifications.rules.client_mail_texts import Kind
from chalicelib.domains.notifications.rules.job_kinds import REMIND_CLIENT
from chalicelib.domains.notifications.rules.who_is_told import client_kind
from chalicelib.domains.payments.store import payments
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event
from chalicelib.gateways import mail


@job_handler(VISITOR_EVENTS)
def make_mails(job: Job) -> None:
    """Make a job for each booking of the events. If it runs again, it makes the same jobs."""
    events = [Event(*values) for values in job.payload["events"]]
    at = datetime.fromisoformat(job.payload["at"])
    # Several events of a booking in one unit give one e-mail, and so do those of a visit.
    for booking_id, *_ in bookings.ids_by_visit(job.workspace_id, (event.id for event in events)):
        booking_events = [event for event in events if event.id == booking_id]
        payload = {
            "bookingId": booking_id,
            "events": [event.type for event in booking_events],
            "previousStatus": next(
                (e.previous_status for e in booking_events if e.previous_status), None
            ),
            "at": job.payload["at"],
            "actor": job.payload["actor"],
        }
        mail_id = f"{job.job_id}-{booking_id}"
        jobs.schedule(jobs.row(MAIL_CLIENT, job.workspace_id, payload, at, job_id=mail_id))
    # The jobs are due now, and the next scheduled run may be a minute away.
    wake.wake()


@job_handler(MAIL_CLIENT)
def mail_client(job: Job) -> None:
    """Make the jobs that follow the booking, and send the message that follows the events.

    The jobs are that of the next reminder, and the one that asks the client to book again.
    """
    booking = BOOKINGS.find(job.workspace_id, record_id=job.payload["bookingId"])
    at = datetime.fromisoformat(job.payload["at"])
    events = job.payload["events"]
    if booking is None or not client_cascade.may_lead_to(booking):
        return
    # The first booking of a visit has its options, its reminders and its money.
    first = bookings.first_of(job.workspace_id, booking)
    options = mail_options(job.workspace_id, service_id=first.service_id)
    if "refund" not in job.payload:
        book_again.schedule(job.workspace_id, first, options.book_again_days)
    # Only money may arrive after the start.
    if booking.starts_at <= at and REFUNDED_EVENT not in events:
        return
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, first, options)  # before: the mail may fail
    if "refund" in job.payload:
        _mail_refund(job, booking, at)
        return
    kind = client_mail_texts.kind_of(
        events, job.payload["previousStatus"], booking.status, was_held=first.due is not None
    )
    if kind is not None:
        _tell(job, booking, kind, _class_of(first, job.payload["actor"]), at)


@job_handler(MAIL_BOOKING_LINK)
def mail_booking_link(job: Job) -> None:
    """Send the link that books what a visitor has requested, unless it was used or has ended."""
    token = booking_links.book_token(job.workspace_id, request_id=job.payload["requestId"])
    requested = requested_bookings.find_awaited(job.workspace_id, token=token)
    if requested is not None and mail.is_on():
        send_link(job, requested, token)


@job_handler(REMIND_CLIENT)
def remind_client(job: Job) -> None:
    """Make the job of the next reminder, and send this one if the booking still stands."""
    booking = BOOKINGS.find(job.workspace_id, record_id=job.payload["bookingId"])
    if booking is None or not client_cascade.may_lead_to(booking):
        return
    # A booking that was moved has the reminder of its new start.
    if booking.status != "confirmed" or epoch_ms(booking.starts_at) != job.payload["startMs"]:
        return
    options = mail_options(job.workspace_id, service_id=booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    if job.payload["minutes"] in options.reminders:
        due_at = booking.starts_at - timedelta(minutes=job.payload["minutes"])
        _tell(job, booking, "reminder", _class_of_reminder(booking), due_at)


def _tell(  # noqa: PLR0913  the parts of a message
    job: Job,
    booking: BookingRow,
    kind: Kind,
    mail_class: MailClass,
    since: datetime,
    *,
    refund: client_mail_texts.Refund | None = None,
) -> None:
    keys = client_cascade.keys(job.workspace_id, booking)
    message = client_message.write(job, booking, kind, mail_class, since, refund=refund, keys=keys)
    client_cascade.deliver(message, order_of(kind, message.workspace.client_channels))


def _mail_refund(job: Job, booking: BookingRow, at: datetime) -> None:
    named = job.payload["refund"]
    if "amount" in named:  # The business has refunded it at the provider.
        shown_refund = client_mail_texts.Refund(named["amount"], "business")
        _tell(job, booking, "refunded", "business", at, refund=shown_refund)
        return
    refund = payments.find_refund(
        job.workspace_id, payment_id=named["paymentId"], refund_id=named["refundId"]
    )
    kind = client_kind(MAIL_CLIENT, status=named["status"])
    # A refund whose state has changed since has its own e-mail.
    if (
        refund is not None
        and kind == client_kind(MAIL_CLIENT, status=refund.status)
        and kind is not None
    ):
        shown_refund = client_mail_texts.Refund(int(refund.amount), refund.reason)
        _tell(job, booking, kind, "business", at, refund=shown_refund)


def _class_of(booking: BookingRow, actor: str) -> MailClass:
    """Return the class of the e-mail about a change. The actor made the change.

    A booking by somebody who has proved nothing is a stranger's, whoever ends it but the business:
    only the stranger has its link, and a job ends its hold.
    """
    if booking.is_unproved and actor in {"visitor", "job"}:
        return "stranger"
    return "client" if actor == "visitor" else "business"


def _class_of_reminder(booking: BookingRow) -> MailClass:
    if booking.is_unproved:
        return "stranger_reminder"
    is_by_client = booking.source in VISITOR_SOURCES and booking.paid_by is None
    return "client_reminder" if is_by_client else "reminder"


def _schedule_next(workspace_id: str, booking: BookingRow, options: MailOptions) -> None:
    # Reminders whose time has passed are left out.
    if booking.status != "confirmed":
        return
    now, start_ms = clock.now(), epoch_ms(booking.starts_at)
    for minutes in options.reminders:
        due_at = booking.starts_at - timedelta(minutes=minutes)
        if due_at > now:
            payload = {"bookingId": booking.id, "startMs": start_ms, "minutes": minutes}
            # A booking has one reminder job at a time, which creates the next one. A job that is
            # created twice is one job, and a job of an earlier start does nothing.
            job_id = f"{booking.id}-{start_ms}-{minutes}"
            jobs.schedule(jobs.row(REMIND_CLIENT, workspace_id, payload, due_at, job_id=job_id))
            return

"""Send e-mails to clients about their bookings, and reminders before the start.

Each e-mail is a job of its own that holds ids only. It is written from the current booking, so an
erased client gets none. A booking has one reminder job at a time, which creates the next one. The
job's id follows from the booking, the start and the lead time in minutes. So a job that is created
twice is one job, and a job of an earlier start does nothing.
"""

from datetime import datetime, timedelta
from typing import NamedTuple, cast
from zoneinfo import ZoneInfo

from chalicelib import SERVICE
from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.events import REFUNDED_EVENT
from chalicelib.core.jobs import (
    MAIL_BOOKING_LINK,
    MAIL_CLIENT,
    REMIND_CLIENT,
    VISITOR_EVENTS,
    Job,
    job_handler,
)
from chalicelib.core.settings import settings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules import calendar_files
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, AwaitedBookingRow, BookingRow
from chalicelib.domains.bookings.store.services import REMINDERS, SERVICES
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.notifications.flows import mail_gate
from chalicelib.domains.notifications.flows.mail_gate import Verdict
from chalicelib.domains.notifications.rules import client_mails as texts
from chalicelib.domains.notifications.rules.client_mails import BookingFacts, Business, Kind
from chalicelib.domains.notifications.rules.mail_budgets import MailClass
from chalicelib.domains.payments.store import merchants
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Attachment, Mail
from chalicelib.lib import emails, localized
from chalicelib.lib.localized import Language


class MailOptions(NamedTuple):
    """Whether clients of a service get e-mails, and when they are reminded.

    ``reminders`` are minutes before the start, the largest first.
    """

    has_mails: bool
    reminders: tuple[int, ...]


def mail_options(workspace_id: str, service_id: str) -> MailOptions:
    """Return the options of a service, or the default options for a deleted service."""
    service = SERVICES.find(workspace_id, service_id)
    if service is None:
        return MailOptions(has_mails=True, reminders=REMINDERS)
    return MailOptions(service.visitor_mails, tuple(map(int, service.reminders)))


def send_to_client(
    job: Job, booking: BookingRow, kind: Kind, mail_class: MailClass, since: datetime
) -> None:
    """Send an e-mail to the client of a booking, once and if the gate admits it.

    ``since`` is when the e-mail was due first. A booking without an address, such as a booking of
    an erased client, gets no e-mail.

    Raises:
        MailDelayedError: the e-mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    address = emails.find_email(booking.client_email or "")
    if address is None or not mail.is_on():
        return

    def note(verdict: Verdict) -> None:
        entry = bookings.mail_entry(
            job.workspace_id,
            booking,
            job.job_id,
            kind=kind,
            state=verdict.state,
            reason=verdict.reason,
        )
        run_unit(job.workspace_id, None, lambda unit: unit.save(entry))

    message = _mail(workspaces.get(job.workspace_id), booking, kind, job.job_id)
    until = since + mail_gate.LONGEST_WAIT
    if kind != "refunded":  # Another e-mail about a booking that has begun is of no use.
        until = min(until, booking.starts_at)
    mail_gate.deliver(message, mail_class, until, note=note)


def send_link(job: Job, requested: AwaitedBookingRow, token: str) -> None:
    """Send the link that books what a visitor has requested, once and if the gate admits it.

    Raises:
        MailDelayedError: the e-mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    workspace, booking = workspaces.get(job.workspace_id), requested.booking
    content = texts.mail(
        _language(workspace, requested.language),
        "link",
        BookingFacts(
            workspace=workspace.name,
            service=booking["serviceName"],
            resource=booking["resourceName"],
            starts_at=datetime.fromisoformat(booking["startLocal"]),
            timezone=booking["timezone"],
            price=booking["price"],
            page_url=settings().public_url + booking_links.BOOK_PAGE.format(token=token),
            business=_business(workspace),
        ),
    )
    message = Mail(
        id=f"booking-link-{requested.request_id}",
        recipient=requested.email,
        content=content,
        sender_name=workspace.name,
        workspace_id=workspace.id,
    )
    mail_gate.deliver(message, "stranger", requested.link_ends_at)


def _mail(workspace: WorkspaceRow, booking: BookingRow, kind: Kind, mail_id: str) -> Mail:
    message = texts.mail(
        _language(workspace, booking.language), kind, booking_facts(workspace, booking)
    )
    # The file has the address of the page on which the client moves or cancels the booking.
    event = booking_links.client_calendar_event(workspace.id, workspace.name, booking)
    return Mail(
        id=mail_id,
        recipient=booking.client_email or "",
        content=message,
        sender_name=workspace.name,
        workspace_id=workspace.id,
        attachments=[
            Attachment(
                "booking.ics",
                f"text/calendar; method={event.method}; charset=utf-8",
                calendar_files.calendar_file(event, producer=SERVICE),
            )
        ],
    )


def _business(workspace: WorkspaceRow) -> Business:
    return Business(workspace.address, workspace.phone, workspace.logo_url, workspace.accent)


def _language(workspace: WorkspaceRow, page_language: str | None) -> Language:
    """Return the language of the client's page, or else of the workspace's country."""
    return cast("Language", page_language or localized.language_of_country(workspace.country))


def booking_facts(workspace: WorkspaceRow, booking: BookingRow) -> BookingFacts:
    """Return what e-mails and the client's page show of a booking."""
    local: datetime = booking.starts_at.astimezone(ZoneInfo(booking.timezone))
    return BookingFacts(
        workspace=workspace.name,
        service=booking.service_name,
        resource=booking.resource_name,
        starts_at=local,
        timezone=booking.timezone,
        price=int(booking.price),
        page_url=booking_links.page_url(workspace.id, booking),
        pay_url=_pay_url(workspace.id, booking),
        business=_business(workspace),
    )


def _pay_url(workspace_id: str, booking: BookingRow) -> str | None:
    """Return the page that pays a booking, if the workspace takes payments."""
    if not booking.is_payable or merchants.find_current(workspace_id) is None:
        return None
    return booking_links.pay_url(workspace_id, booking)


@job_handler(VISITOR_EVENTS)
def make_mails(job: Job) -> None:
    """Make a job for each booking of the events. If it runs again, it makes the same jobs.

    Raises:
        UnavailableError: the database is unavailable.
    """
    events = [Event(*values) for values in job.payload["events"]]
    at = datetime.fromisoformat(job.payload["at"])
    # Several events of a booking in one unit give one e-mail.
    for booking_id in dict.fromkeys(event.id for event in events):
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
    """Make the job of the booking's next reminder, and send the e-mail that follows the events.

    Raises:
        MailDelayedError: the e-mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    booking = BOOKINGS.find(job.workspace_id, job.payload["bookingId"])
    at = datetime.fromisoformat(job.payload["at"])
    events = job.payload["events"]
    if booking is None or booking.client_email is None:
        return
    # Only money may arrive after the start.
    if booking.starts_at <= at and REFUNDED_EVENT not in events:
        return
    options = mail_options(job.workspace_id, booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    kind = texts.kind_of(
        events, job.payload["previousStatus"], booking.status, was_held=booking.due is not None
    )
    if kind is not None:
        send_to_client(job, booking, kind, _class_of(job.payload.get("actor")), at)


@job_handler(MAIL_BOOKING_LINK)
def mail_booking_link(job: Job) -> None:
    """Send the link that books what a visitor has requested, unless it was used or has ended.

    Raises:
        MailDelayedError: the e-mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    token = booking_links.book_token(job.workspace_id, job.payload["requestId"])
    requested = bookings.find_awaited(job.workspace_id, token)
    if requested is not None and mail.is_on():
        send_link(job, requested, token)


@job_handler(REMIND_CLIENT)
def remind_client(job: Job) -> None:
    """Make the job of the next reminder, and send this one if the booking still stands.

    Raises:
        MailDelayedError: the e-mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    booking = BOOKINGS.find(job.workspace_id, job.payload["bookingId"])
    if booking is None or booking.client_email is None:
        return
    # A booking that was moved has the reminder of its new start.
    if booking.status != "confirmed" or epoch_ms(booking.starts_at) != job.payload["startMs"]:
        return
    options = mail_options(job.workspace_id, booking.service_id)
    if not options.has_mails:
        return
    _schedule_next(job.workspace_id, booking, options)  # first: the mail may fail
    if job.payload["minutes"] in options.reminders:
        due_at = booking.starts_at - timedelta(minutes=job.payload["minutes"])
        mail_class: MailClass = "stranger_reminder" if booking.is_unproved else "reminder"
        send_to_client(job, booking, "reminder", mail_class, due_at)


def _class_of(actor: str | None) -> MailClass:
    """Return the class of the e-mail about a change. The actor made the change.

    A visitor has proved nothing. Nor has the visitor whose unpaid hold a job ends. The job of an
    earlier release names no actor.
    """
    return "stranger" if actor in {None, "visitor", "job"} else "business"


def _schedule_next(workspace_id: str, booking: BookingRow, options: MailOptions) -> None:
    """Make the job of the next reminder.

    Reminders whose time has passed are left out.
    """
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

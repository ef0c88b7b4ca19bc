"""Sends mails to clients about their bookings."""

from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chalicelib import SERVICE
from chalicelib.core.jobs import Job
from chalicelib.core.settings import settings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules import calendar_files
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import AwaitedBookingRow, BookingRow
from chalicelib.domains.bookings.store.services import REMINDERS, SERVICES
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.notifications.flows import mail_gate
from chalicelib.domains.notifications.flows.mail_gate import Verdict
from chalicelib.domains.notifications.rules import client_mails as texts
from chalicelib.domains.notifications.rules.client_mails import BookingFacts, Kind
from chalicelib.domains.notifications.rules.mail_budgets import MailClass
from chalicelib.engine.unit import run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Attachment, Mail
from chalicelib.lib import emails, localized


class MailOptions(NamedTuple):
    """Whether clients of a service get mails, and when they are reminded.

    ``reminders`` are minutes before the start, the largest first.
    """

    has_mails: bool
    reminders: tuple[int, ...]


def options_of(workspace_id: str, service_id: str) -> MailOptions:
    """Return the options of a service; for a deleted one, the default."""
    service = SERVICES.find(workspace_id, service_id)
    if service is None:
        return MailOptions(has_mails=True, reminders=REMINDERS)
    return MailOptions(service.visitor_mails, tuple(map(int, service.reminders)))


def send(job: Job, booking: BookingRow, kind: Kind, mail_class: MailClass, since: datetime) -> None:
    """Send a mail to the client of a booking, once and if the gate admits it.

    ``since`` is when the mail was due first. A booking without an address, such as that of an
    erased client, gets none.

    Raises:
        MailDelayedError: the mail may be sent later.
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
    until = min(since + mail_gate.LONGEST_WAIT, booking.starts_at)
    mail_gate.deliver(message, mail_class, until, note=note)


def send_link(job: Job, requested: AwaitedBookingRow, token: str) -> None:
    """Send the link that books what a visitor has requested, once and if the gate admits it.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    workspace, booking = workspaces.get(job.workspace_id), requested.booking
    shown = texts.mail(
        localized.language_of_country(workspace.country),
        "link",
        BookingFacts(
            workspace=workspace.name,
            service=booking["serviceName"],
            resource=booking["resourceName"],
            starts_at=datetime.fromisoformat(booking["startLocal"]),
            timezone=booking["timezone"],
            price=booking["price"],
            page_url=settings().public_url + booking_links.BOOK_PAGE.format(token=token),
        ),
    )
    message = Mail(
        id=f"booking-link-{requested.request_id}",
        recipient=requested.email,
        content=shown,
        sender_name=workspace.name,
        workspace_id=workspace.id,
    )
    mail_gate.deliver(message, "stranger", requested.link_ends_at)


def _mail(workspace: WorkspaceRow, booking: BookingRow, kind: Kind, mail_id: str) -> Mail:
    shown = texts.mail(
        localized.language_of_country(workspace.country), kind, facts(workspace, booking)
    )
    event = booking_links.client_calendar_event(workspace.id, workspace.name, booking)
    return Mail(
        id=mail_id,
        recipient=booking.client_email or "",
        content=shown,
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


def facts(workspace: WorkspaceRow, booking: BookingRow) -> BookingFacts:
    """Return what mails and the client's page show of a booking."""
    local: datetime = booking.starts_at.astimezone(ZoneInfo(booking.timezone))
    return BookingFacts(
        workspace=workspace.name,
        service=booking.service_name,
        resource=booking.resource_name,
        starts_at=local,
        timezone=booking.timezone,
        price=int(booking.price),
        page_url=booking_links.page_url(workspace.id, booking),
    )

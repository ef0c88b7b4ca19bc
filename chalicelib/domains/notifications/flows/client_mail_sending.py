"""Send one e-mail to a client about a booking, written from the current booking."""

from datetime import datetime
from typing import NamedTuple, cast
from zoneinfo import ZoneInfo

from chalicelib import SERVICE
from chalicelib.core.jobs import Job
from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.store.requested_bookings import AwaitedBookingRow
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules import calendar_files
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Verdict
from chalicelib.domains.mails.rules.mail_budgets import MailClass
from chalicelib.domains.notifications.flows import mail_brands
from chalicelib.domains.notifications.rules import client_mail_texts
from chalicelib.domains.notifications.rules.client_mail_texts import (
    BookingFacts,
    Kind,
    Refund,
)
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.store.services import REMINDERS, SERVICES
from chalicelib.engine.unit import run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Attachment, Mail
from chalicelib.lib import emails, localized
from chalicelib.lib.localized import Language
from chalicelib.lib.markup.brands import Brand


class MailOptions(NamedTuple):
    """Whether clients of a service get e-mails, and when they are reminded."""

    has_mails: bool
    reminders: tuple[int, ...]  # minutes before the start, the largest first
    book_again_days: int | None = None  # after a visit; None: clients are not asked


def mail_options(workspace_id: str, *, service_id: str) -> MailOptions:
    """Return the options of a service, or the default options for a deleted service."""
    service = SERVICES.find(workspace_id, record_id=service_id)
    if service is None:
        return MailOptions(has_mails=True, reminders=REMINDERS)
    days = service.book_again_days
    return MailOptions(
        service.visitor_mails,
        tuple(map(int, service.reminders)),
        None if days is None else int(days),
    )


def send_to_client(  # noqa: PLR0913  the parts of an e-mail
    job: Job,
    booking: BookingRow,
    kind: Kind,
    mail_class: MailClass,
    since: datetime,
    *,
    refund: Refund | None = None,
) -> None:
    """Send an e-mail to the client of a booking, once and if the gate admits it.

    ``since`` is when the e-mail was due first. A booking without an address, such as a booking of
    an erased client, gets no e-mail. Raises as ``mail_gate.deliver``.
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

    workspace, brand = mail_brands.read(job.workspace_id)
    facts = booking_facts(workspace, brand, booking)._replace(refund=refund)
    message = _mail(workspace, booking, kind, job.job_id, facts)
    until = since + mail_gate.LONGEST_WAIT
    if refund is None:  # Another e-mail about a booking that has begun is of no use.
        until = min(until, booking.starts_at)
    shares = booking.visitor_shares or ()
    mail_gate.deliver(message, mail_class, until, note=note, shares=shares)


def send_link(job: Job, requested: AwaitedBookingRow, token: str) -> None:
    """Send the link that books what a visitor has requested, once and if the gate admits it."""
    (workspace, brand), booking = mail_brands.read(job.workspace_id), requested.booking
    content = client_mail_texts.mail(
        _language(workspace, requested.language),
        "link",
        BookingFacts(
            brand=brand,
            service=booking["serviceName"],
            resource=booking["resourceName"],
            starts_at=datetime.fromisoformat(booking["startLocal"]),
            timezone=booking["timezone"],
            price=booking["price"],
            page_url=settings().public_url + booking_links.BOOK_PAGE.format(token=token),
            currency=workspace.currency,
        ),
    )
    message = Mail(
        id=booking_links.link_mail_id(requested.request_id),
        recipient=requested.email,
        content=content,
        sender_name=workspace.name,
        origin=workspace.id,
        workspace_id=workspace.id,
    )
    mail_gate.deliver(message, "link", requested.link_ends_at)


def _mail(
    workspace: WorkspaceRow, booking: BookingRow, kind: Kind, mail_id: str, facts: BookingFacts
) -> Mail:
    message = client_mail_texts.mail(_language(workspace, booking.language), kind, facts)
    # The file has the address of the page on which the client moves or cancels the booking.
    event = booking_links.client_calendar_event(
        workspace.id, workspace=workspace.name, booking=booking
    )
    return Mail(
        id=mail_id,
        recipient=booking.client_email or "",
        content=message,
        sender_name=workspace.name,
        origin=workspace.id,
        workspace_id=workspace.id,
        attachments=[
            Attachment(
                "booking.ics",
                f"text/calendar; method={event.method}; charset=utf-8",
                calendar_files.calendar_file(event, producer=SERVICE),
            )
        ],
    )


def _language(workspace: WorkspaceRow, page_language: str | None) -> Language:
    return cast("Language", page_language or localized.language_of_country(workspace.country))


def booking_facts(workspace: WorkspaceRow, brand: Brand, booking: BookingRow) -> BookingFacts:
    """Return what e-mails show of a booking."""
    zone = ZoneInfo(booking.timezone)
    local: datetime = booking.starts_at.astimezone(zone)
    held_until = booking.hold_expires_at
    return BookingFacts(
        brand=brand,
        service=booking.service_name,
        resource=booking.resource_name,
        starts_at=local,
        timezone=booking.timezone,
        price=int(booking.price),
        page_url=booking_links.page_url(workspace.id, booking),
        pay_url=_pay_url(workspace.id, booking),
        due=int(booking.due or 0) if booking.is_payable else 0,
        due_until=held_until and held_until.astimezone(zone),
        paid=int(booking.paid or 0) if booking.paid_by else 0,
        currency=workspace.currency,
    )


def _pay_url(workspace_id: str, booking: BookingRow) -> str | None:
    if not booking.is_payable or merchants.find_current(workspace_id) is None:
        return None
    return booking_links.pay_url(workspace_id, booking)

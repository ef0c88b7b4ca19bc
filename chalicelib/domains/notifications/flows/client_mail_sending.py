"""Send one e-mail to a client about a booking: the channel ``mail``, and the link that books."""

from datetime import datetime
from typing import NamedTuple

from chalicelib import SERVICE
from chalicelib.core.jobs import Job
from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.store.requested_bookings import AwaitedBookingRow
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules import calendar_files
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Verdict
from chalicelib.domains.notifications.flows import client_message, mail_brands
from chalicelib.domains.notifications.flows.client_message import ClientMessage
from chalicelib.domains.notifications.rules import client_mail_texts
from chalicelib.domains.notifications.rules.client_channels import Outcome
from chalicelib.domains.notifications.rules.client_mail_texts import BookingFacts
from chalicelib.domains.services.store.services import REMINDERS, SERVICES
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Attachment, Mail
from chalicelib.lib import emails


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


def leads_to(message: ClientMessage) -> bool:
    """Return whether a client has an address, and this stage sends e-mails."""
    return emails.find_email(message.booking.client_email or "") is not None and mail.is_on()


def deliver(message: ClientMessage) -> Outcome:
    """Send a message as an e-mail, once and if the gate admits it. Raises ``mail_gate.deliver``."""
    verdicts: list[Verdict] = []

    def note(verdict: Verdict) -> None:
        message.note("mail", verdict.state, verdict.reason)
        verdicts.append(verdict)

    shares = message.booking.visitor_shares or ()
    mail_gate.deliver(_mail(message), message.mail_class, message.until, note=note, shares=shares)
    (verdict,) = verdicts
    return Outcome.sent() if verdict.state == "sent" else Outcome.passed(verdict.reason)


def send_link(job: Job, requested: AwaitedBookingRow, token: str) -> None:
    """Send the link that books what a visitor has requested, once and if the gate admits it."""
    (workspace, brand), booking = mail_brands.read(job.workspace_id), requested.booking
    content = client_mail_texts.mail(
        client_message.language_of(workspace, requested.language),
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


def _mail(message: ClientMessage) -> Mail:
    workspace, booking = message.workspace, message.booking
    if message.own is not None:
        return Mail(
            id=message.job_id,
            recipient=booking.client_email or "",
            content=message.own.mail,
            sender_name=workspace.name,
            origin=workspace.id,
            workspace_id=workspace.id,
        )
    # The file has the address of the page on which the client moves or cancels the booking.
    event = booking_links.client_calendar_event(
        workspace.id, workspace=workspace.name, booking=booking
    )
    return Mail(
        id=message.job_id,
        recipient=booking.client_email or "",
        content=client_mail_texts.mail(message.language, message.kind, message.facts),
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

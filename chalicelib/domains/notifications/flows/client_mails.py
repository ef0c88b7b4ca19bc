"""Sends mails to clients about their bookings, and limits them.

An address gets few mails a day from all workspaces together, because anyone can book with the
address of another person. A mail is counted once, in the transaction that admits it, however often
its job runs. A mail that was sent is not sent again, unless the answer of the mail server was lost.
"""

import hashlib
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chalicelib import SERVICE
from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.plans import CLIENT_MAILS_A_DAY
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules import calendar_files
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bookings.store.services import REMINDERS, SERVICES
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.notifications.flows import suppressions
from chalicelib.domains.notifications.rules import client_mails as texts
from chalicelib.domains.notifications.rules.client_mails import BookingFacts, Kind
from chalicelib.domains.notifications.store import client_mails
from chalicelib.domains.notifications.store.client_mails import Reason
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Attachment, Mail, MailRefusedError
from chalicelib.lib import emails, localized

MAILS_TO_ADDRESS = Limit("client-mails", "mails a day to an address", 3, timedelta(days=1))

log = logging.getLogger(__name__)


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


def send(workspace_id: str, booking: BookingRow, kind: Kind, mail_id: str) -> None:
    """Send a mail to the client of a booking, unless it was sent before or is withheld.

    A booking without an address, such as that of an erased client, gets none.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    address = emails.find_email(booking.client_email or "")
    if address is None or not mail.is_on():
        return
    workspace = workspaces.get(workspace_id)
    if not _admit(workspace, address, mail_id):
        return
    try:
        mail.send(_mail(workspace, booking, kind, mail_id))
    except MailRefusedError:
        log.warning("a mail to a client was refused", extra={"bookingId": booking.id})
    client_mails.note_sent(workspace_id, mail_id)


def limit_of(workspace: WorkspaceRow) -> Limit:
    """Return the limit on a workspace's mails to clients."""
    most = CLIENT_MAILS_A_DAY[workspace.plan]
    return Limit("workspace-client-mails", "mails a day to clients", most, timedelta(days=1))


def _admit(workspace: WorkspaceRow, address: str, mail_id: str) -> bool:
    """Count a mail and return whether it may be sent. A repeated call counts nothing."""
    state = client_mails.state(workspace.id, mail_id)
    if state is not None:
        return state == "admitted"
    checks: dict[Reason, Callable[[], bool]] = {
        "unsupported": lambda: not mail.takes(address),
        "by_bounce": lambda: suppressions.is_suppressed(address),
        "by_pause": lambda: suppressions.is_paused(workspace.id),
    }
    if reason := next((reason for reason, applies in checks.items() if applies()), None):
        _withhold(workspace.id, mail_id, reason)
        return False
    subject = address_hash(address)

    def stage(unit: UnitOfWork) -> None:
        client_mails.stage_admission(unit, mail_id)
        limits.stage(unit, MAILS_TO_ADDRESS, subject)
        limits.stage(unit, limit_of(workspace), workspace.id)

    try:
        run_unit(workspace.id, None, stage)
    except RateLimitedError:
        _withhold(workspace.id, mail_id, _reason(subject))
        return False
    return True


def _withhold(workspace_id: str, mail_id: str, reason: Reason) -> None:
    run_unit(workspace_id, None, lambda unit: client_mails.stage_withheld(unit, mail_id, reason))


def _reason(subject: str) -> Reason:
    """Return which limit has refused a mail."""
    try:
        limits.check(MAILS_TO_ADDRESS, subject)
    except RateLimitedError:
        return "by_address"
    return "by_plan"


def address_hash(address: str) -> str:
    """Return the hash under which an address is counted, without the tag after a plus sign.

    All tags of an address lead to one mailbox.
    """
    local, _, domain = emails.key(address).rpartition("@")
    mailbox = f"{local.partition('+')[0]}@{domain}"
    return hashlib.sha256(mailbox.encode()).hexdigest()


def _mail(workspace: WorkspaceRow, booking: BookingRow, kind: Kind, mail_id: str) -> Mail:
    shown = texts.mail(
        localized.language_of_country(workspace.country), kind, facts(workspace, booking)
    )
    event = booking_links.client_calendar_event(workspace.id, workspace.name, booking)
    return Mail(
        id=mail_id,
        recipient=booking.client_email or "",
        subject=shown.subject,
        text=shown.text,
        html=shown.html,
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


def is_over(booking: BookingRow) -> bool:
    """Whether a booking has begun, so that no mail about it is of use."""
    return bool(booking.starts_at <= clock.now())

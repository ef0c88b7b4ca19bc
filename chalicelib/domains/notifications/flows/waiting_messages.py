"""Tell those who wait for a free time that they wait, and when one is offered (ADR 142).

A message is a job that holds ids only. It is written from what is stored when it is sent, so
nobody gets an offer that has ended, and an erased client gets nothing.
"""

from datetime import datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, VISITOR_SOURCES, BookingRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.notifications.flows import client_cascade, client_message, mail_brands
from chalicelib.domains.notifications.flows.client_message import ClientMessage, OwnContent
from chalicelib.domains.notifications.rules import waiting_texts
from chalicelib.domains.notifications.rules.client_channels import order_of
from chalicelib.domains.notifications.rules.client_mail_texts import BookingFacts
from chalicelib.domains.notifications.rules.waiting_texts import WaitingFacts, WaitingKind
from chalicelib.domains.notifications.rules.who_is_told import client_kind
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.waiting.flows import waiting_links
from chalicelib.domains.waiting.flows.day_search import DaySearch
from chalicelib.domains.waiting.flows.lines import OFFERED
from chalicelib.domains.waiting.flows.waiting_links import WaitingLink
from chalicelib.domains.waiting.rules.job_kinds import TELL_WAITING
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.waiting.store.waiting_lines import WaitingLineRow, WaitingRow
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import run_unit


@job_handler(TELL_WAITING)
def tell_waiting(job: Job) -> None:
    """Tell one who waits, unless the waiting or the offer has ended."""
    row = waiting_lines.find(job.workspace_id, job.payload["waitingId"])
    service = SERVICES.find(job.workspace_id, record_id=row.service_id) if row else None
    if row is None or service is None or workspaces.get(job.workspace_id).halt:
        return
    until, offered_until = row.created_at + mail_gate.LONGEST_WAIT, None
    if job.payload["about"] == OFFERED:
        line = WaitingLineRow.of(job.workspace_id, row.place)
        until = offered_until = clock.moment_at(job.payload["until"])
        if line is None or (line.offered_to, line.offered_until) != (row.sk, until):
            return
    if clock.now() >= until:
        return
    kind = cast("WaitingKind", client_kind(TELL_WAITING, status=job.payload["about"]))
    message = _message(job, row, service, kind, until=until, offered_until=offered_until)
    client_cascade.deliver(message, order_of(kind, message.workspace.client_channels))
    # No channel leads to the client, so the business has to tell.
    run_unit(
        job.workspace_id, None, lambda unit: waiting_lines.stage_untold(unit, row.sk, job.job_id)
    )


def _message(  # noqa: PLR0913  what a message consists of
    job: Job,
    row: WaitingRow,
    service: ServiceRow,
    kind: WaitingKind,
    *,
    until: datetime,
    offered_until: datetime | None,
) -> ClientMessage:
    rows, workspace_id = Rows(), job.workspace_id
    booking = _contacts_of(workspace_id, row, service)
    keys = client_cascade.keys(workspace_id, booking)
    rows.read([workspaces.key(workspace_id), page_settings.key(workspace_id), *keys])
    workspace, brand = mail_brands.read(workspace_id, rows)
    zone = DaySearch.create(workspace_id, service, row.place, Rows()).timezone
    resource = row.resource_id and RESOURCES.find(workspace_id, record_id=row.resource_id)
    facts = WaitingFacts(
        brand=brand,
        service=service.name,
        resource=resource.name if resource else "",
        day=row.day,
        offered_until=offered_until and offered_until.astimezone(ZoneInfo(zone)),
        page_url=waiting_links.url(WaitingLink(workspace_id, row.sk)),
    )
    language = client_message.language_of(workspace, row.language)

    def note(channel: str, state: str, reason: str | None) -> None:
        told = {"message": job.job_id, "channel": channel, "state": state, "reason": reason}
        run_unit(workspace_id, None, lambda unit: waiting_lines.stage_told(unit, row.sk, told))

    return ClientMessage(
        job_id=job.job_id,
        workspace=workspace,
        booking=booking,
        kind=kind,
        # The client has asked for it, so it is no advertising.
        mail_class="stranger" if row.source in VISITOR_SOURCES else "business",
        until=until,
        language=language,
        facts=BookingFacts(brand, service.name, "", booking.starts_at, zone, 0, None),
        rows=rows,
        own=OwnContent(
            text=waiting_texts.short_text(language, kind, facts),
            mail=waiting_texts.mail(language, kind, facts),
            note=note,
        ),
    )


def _contacts_of(workspace_id: str, row: WaitingRow, service: ServiceRow) -> BookingRow:
    """Return the contacts of one who waits as the channels take them. The row is never stored."""
    starts_at = clock.moment_of(row.day, "UTC")
    return BOOKINGS.new(
        workspace_id,
        status="pending_payment",  # No booking was accepted, so no SMS is sent.
        service_id=service.id,
        service_name=service.name,
        resource_id=row.resource_id or "",
        resource_name="",
        starts_at=starts_at,
        ends_at=starts_at + timedelta(minutes=int(service.duration_min)),
        duration_min=int(service.duration_min),
        timezone="UTC",
        price=0,
        client_id=row.client_id,
        client_name=row.name,
        client_email=row.email,
        client_phone=row.phone,
        source=row.source,
        visitor_shares=row.visitor_shares,
        language=row.language,
    )

"""Ask clients who have agreed to advertising to book again, some days after a visit (ADR 140).

The job is made with the e-mails about the booking, never in the booking's transaction. It holds ids
only, and everything is decided when it runs: a consent may be withdrawn, a visit moved, a client
erased until then. A client may have a job for each visit; only that of the last visit sends.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.flows.open_page import OpenPage
from chalicelib.domains.booking_page.rules import repeat_links
from chalicelib.domains.booking_page.rules.repeat_links import Part
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.clients.flows import advertising_links
from chalicelib.domains.clients.flows.advertising_links import Recipient
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.clients.store.advertising_consents import AdvertisingConsentRow
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Verdict
from chalicelib.domains.notifications.flows import mail_brands
from chalicelib.domains.notifications.rules import again_decisions, client_mail_texts
from chalicelib.domains.notifications.rules.again_decisions import Consent, Visit
from chalicelib.domains.notifications.rules.client_mail_texts import AgainFacts
from chalicelib.domains.notifications.rules.job_kinds import BOOK_AGAIN
from chalicelib.domains.notifications.rules.who_is_told import client_kind
from chalicelib.engine import jobs
from chalicelib.engine.listing.query import Query
from chalicelib.engine.unit import run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail
from chalicelib.lib import emails
from chalicelib.lib.localized import Language

MOST_READ = 100  # bookings of a client, the newest first
_WAITING = {"pending_payment", "confirmed", "completed"}


def schedule(workspace_id: str, booking: BookingRow, days: int | None) -> None:
    """Make the job that asks the client of a booking to book again, if the client has agreed.

    A job that is made twice is one job, and the job of an earlier time does nothing. Several
    services in one visit are one visit, and ``booking`` is its first.
    """
    if days is None or booking.client_id is None:
        return
    shown = _waiting(workspace_id, booking)
    if not shown:
        return
    ends_at = shown[-1].ends_at
    entries = advertising_consents.read(workspace_id, client_id=booking.client_id)
    if not any(
        advertising_consents.is_for(row, booking.client_email)
        for row in advertising_consents.standing(entries)
    ):
        return
    timezone = workspaces.get(workspace_id).timezone
    due_at = again_decisions.due_at(ends_at, days, timezone)
    if clock.now() >= due_at + again_decisions.LONGEST_WAIT:
        return
    payload = {"bookingId": booking.id, "endMs": epoch_ms(ends_at)}
    job_id = f"{booking.client_id}-{booking.id}"
    jobs.schedule(jobs.row(BOOK_AGAIN, workspace_id, payload, due_at, job_id=job_id))


@job_handler(BOOK_AGAIN)
def ask_to_book_again(job: Job) -> None:
    """Ask a client to book again, if the client still agrees and has not booked since."""
    booking = BOOKINGS.find(job.workspace_id, record_id=job.payload["bookingId"])
    if booking is None or not mail.is_on():
        return
    # A visit that was moved has the job of its new end.
    shown = _waiting(job.workspace_id, booking)
    if not shown or epoch_ms(shown[-1].ends_at) != job.payload["endMs"]:
        return
    visit = [booking, *(each for each in shown if each.id != booking.id)]
    page = _page(job.workspace_id, visit)
    if page is None:
        return  # The link would lead to nothing.
    days = page.require_service(booking.service_id).book_again_days
    if days is None:
        return
    timezone, now = page.workspace.timezone, clock.now()
    due_at = again_decisions.due_at(shown[-1].ends_at, int(days), timezone)
    # The owner may have made the time longer. What waited for a limit waits for the morning, too.
    if (first := again_decisions.in_hours(max(now, due_at), timezone)) > now:
        raise Postponed(first)
    consent = _consent(job.workspace_id, booking, shown)
    kind = client_kind(BOOK_AGAIN, status=shown[0].status)
    if consent is None or kind is None:
        return

    def note(verdict: Verdict) -> None:
        entry = bookings.mail_entry(
            job.workspace_id,
            booking,
            _mail_id(booking),
            kind=kind,
            state=verdict.state,
            reason=verdict.reason,
            channel="mail",
        )
        run_unit(job.workspace_id, None, lambda unit: unit.save(entry))

    message = _mail(page, visit, shown, consent)
    mail_gate.deliver(message, "advertising", due_at + again_decisions.LONGEST_WAIT, note=note)


def _page(workspace_id: str, visit: Sequence[BookingRow]) -> OpenPage | None:
    # With all services of a visit, or else with the first one.
    first, *others = (each.service_id for each in visit)
    for and_then in [others, []] if others else [[]]:
        with suppress(NotFoundError):
            return open_page.open_page(workspace_id, first, and_then=and_then, with_hours=False)
    return None


def _waiting(workspace_id: str, booking: BookingRow) -> list[BookingRow]:
    # The bookings of a visit that took place or are to come, or the only one. Else nothing.
    visit = bookings.visit_of(workspace_id, booking)
    return [each for each in visit if each.status in _WAITING]


def _consent(
    workspace_id: str, booking: BookingRow, shown: Sequence[BookingRow]
) -> AdvertisingConsentRow | None:
    if booking.client_id is None or booking.client_email is None:
        return None
    client = CLIENTS.find(workspace_id, record_id=booking.client_id)
    entries = advertising_consents.read(workspace_id, client_id=booking.client_id)
    standing = {row.sk: row for row in advertising_consents.standing(entries)}
    if client is None or client.is_nobody or not standing:
        return None
    query = Query(
        page=1,
        size=MOST_READ,
        sort="createdAt",
        descending=True,
        filters={"client_id": booking.client_id},
    )
    rows = {row.id: row for row in BOOKINGS.page(workspace_id, query).records}
    missing = {row.booking_id for row in standing.values() if row.booking_id} - rows.keys()
    rows |= {row.id: row for row in BOOKINGS.fetch(workspace_id, sorted(missing))}
    # Its services are no later visits.
    others = [row for row in rows.values() if row.id not in (booking.visit or [booking.id])]
    visit = _visit(booking)._replace(
        status=shown[0].status, starts_at=shown[0].starts_at, ends_at=shown[-1].ends_at
    )
    chosen = again_decisions.consent_to_use(
        visit,
        [visit, *map(_visit, others)],
        [Consent(emails.key(row.email or ""), row.booking_id or "") for row in standing.values()],
        client_address=emails.key(client.email) if client.email else None,
        now=clock.now(),
    )
    return next(
        (
            row
            for row in standing.values()
            if chosen is not None
            and row.booking_id == chosen.booking_id
            and emails.key(row.email or "") == chosen.address
        ),
        None,
    )


def _visit(row: BookingRow) -> Visit:
    return Visit(
        id=row.id,
        status=row.status,
        blocks=row.blocks,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        created_at=row.created_at,
        is_proved=not row.is_unproved,
        address=emails.key(row.client_email) if row.client_email else None,
    )


def _mail_id(booking: BookingRow) -> str:
    # A visit is followed by one such e-mail, whatever jobs there are.
    return f"again-{booking.id}"


def _mail(
    page: OpenPage,
    visit: Sequence[BookingRow],
    shown: Sequence[BookingRow],
    consent: AdvertisingConsentRow,
) -> Mail:
    booking, ids = visit[0], {service.id for service in page.services}
    link = repeat_links.path(
        [Part(each.service_id, each.resource_id) for each in visit if each.service_id in ids]
    )
    facts = bookings.facts_of(shown)
    workspace, brand = mail_brands.read(page.workspace.id)
    unsubscribe_url = advertising_links.link(Recipient(workspace.id, booking.client_id or ""))
    content = client_mail_texts.again_mail(
        cast("Language", consent.language),
        AgainFacts(
            brand=brand,
            service=facts.services,
            resource=facts.resources,
            visited_on=clock.local_day(facts.starts_at, booking.timezone),
            agreed_on=clock.local_day(consent.at, workspace.timezone),
            # The link names what is booked, and nobody.
            page_url=f"{page.url}/{link}",
            unsubscribe_url=unsubscribe_url,
        ),
    )
    return Mail(
        id=_mail_id(booking),
        recipient=booking.client_email or "",
        content=content,
        sender_name=workspace.name,
        origin=workspace.id,
        workspace_id=workspace.id,
        unsubscribe_url=unsubscribe_url,
    )

"""One message to the client of a booking, as each channel may send it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple, cast
from zoneinfo import ZoneInfo

from chalicelib.core.jobs import Job
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.rules.mail_budgets import MailClass
from chalicelib.domains.notifications.flows import mail_brands
from chalicelib.domains.notifications.rules import client_mail_texts
from chalicelib.domains.notifications.rules.client_channels import Channel
from chalicelib.domains.notifications.rules.client_mail_texts import BookingFacts, Kind, Refund
from chalicelib.domains.payments.store import merchants
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.unit import run_unit
from chalicelib.lib import localized
from chalicelib.lib.localized import Language
from chalicelib.lib.markup.brands import Brand
from chalicelib.lib.markup.mails import RenderedMail


class OwnContent(NamedTuple):
    """What a message says that is about no booking, and what notes what became of it."""

    text: str  # without markup
    mail: RenderedMail
    note: Callable[[str, str, str | None], None]  # gets the channel, the state and the reason


class ClientMessage(NamedTuple):
    """A message to the client of a booking.

    Everything is of the booking as it is now. ``rows`` has what was read for the message.
    """

    job_id: str  # the same at each attempt
    workspace: WorkspaceRow
    booking: BookingRow
    kind: Kind
    mail_class: MailClass  # who has caused it, and whether the client has proved anything
    until: datetime  # From then on, the message is of no use.
    language: Language
    facts: BookingFacts
    rows: Rows
    # The booking, which is not stored, has only the contacts then.
    own: OwnContent | None = None

    @property
    def text(self) -> str:
        """The message without markup, with the link to the booking."""
        if self.own is not None:
            return self.own.text
        return client_mail_texts.short_text(self.language, self.kind, self.facts)

    def note(self, channel: Channel, state: str, reason: str | None = None) -> None:
        """Write in the booking's history what became of the message on a channel."""
        if self.own is not None:
            self.own.note(channel, state, reason)
            return
        # The entry of an e-mail has the id that it had before there were other channels.
        entry_id = self.job_id if channel == "mail" else f"{self.job_id}-{channel}"
        entry = bookings.mail_entry(
            self.workspace.id,
            self.booking,
            entry_id,
            kind=self.kind,
            state=state,
            reason=reason,
            channel=channel,
        )
        run_unit(self.workspace.id, None, lambda unit: unit.save(entry))


def write(  # noqa: PLR0913  the parts of a message
    job: Job,
    booking: BookingRow,
    kind: Kind,
    mail_class: MailClass,
    since: datetime,
    *,
    refund: Refund | None = None,
    keys: Iterable[Key] = (),
) -> ClientMessage:
    """Return the message of a job, which was due first at ``since``.

    ``keys`` are of rows that the channels need. They are read in the request that reads the
    workspace.
    """
    rows, workspace_id = Rows(), job.workspace_id
    rows.read([workspaces.key(workspace_id), page_settings.key(workspace_id), *keys])
    workspace, brand = mail_brands.read(workspace_id, rows)
    until = since + mail_gate.LONGEST_WAIT
    if refund is None:  # Another message about a booking that has begun is of no use.
        until = min(until, booking.starts_at)
    return ClientMessage(
        job_id=job.job_id,
        workspace=workspace,
        booking=booking,
        kind=kind,
        mail_class=mail_class,
        until=until,
        language=language_of(workspace, booking.language),
        facts=_facts(workspace, brand, booking)._replace(refund=refund),
        rows=rows,
    )


def language_of(workspace: WorkspaceRow, page_language: str | None) -> Language:
    """Return the language of the page on which a client has booked, or of the country."""
    return cast("Language", page_language or localized.language_of_country(workspace.country))


def _facts(workspace: WorkspaceRow, brand: Brand, booking: BookingRow) -> BookingFacts:
    # Those of the bookings of its visit that have its status.
    visit = bookings.visit_of(workspace.id, booking)
    shown = bookings.facts_of([each for each in visit if each.status == booking.status])
    booking = visit[0]  # has the money
    zone = ZoneInfo(booking.timezone)
    local: datetime = shown.starts_at.astimezone(zone)
    held_until = booking.hold_expires_at
    return BookingFacts(
        brand=brand,
        service=shown.services,
        resource=shown.resources,
        starts_at=local,
        timezone=booking.timezone,
        price=shown.price,
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

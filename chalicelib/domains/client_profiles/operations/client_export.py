"""Return everything that the workspace knows of one client, and the list of all as a table."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, PayloadTooLargeError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, SearchText, Timestamp, Wire, optional
from chalicelib.domains.bookings.flows.booking_out import BookingOut
from chalicelib.domains.bookings.store.bookings import BookingRow, EventRow
from chalicelib.domains.chat.store import messages
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.client_profiles.flows.tracing import Trace
from chalicelib.domains.clients.flows.advertising_models import AdvertisingConsent
from chalicelib.domains.clients.flows.client_models import (
    ClientOut,
    ClientRef,
)
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import PaymentRow, RefundRow
from chalicelib.domains.waiting.flows import waiting_out
from chalicelib.domains.waiting.flows.waiting_out import WaitingEntry
from chalicelib.engine import limits
from chalicelib.engine.listing.query import Query
from chalicelib.lib import phones
from chalicelib.lib.contact_fields import Tag

MAX_RECORDS = 500  # of one client; a Lambda response has at most 6 MB
MAX_MESSAGES = 2_000  # of all the client's dialogs together
MAX_EXPORTED = 5_000  # clients in a table
# Each may read thousands of rows.
FILES_PER_DAY = Limit("client-files", "files of clients per day", 200, timedelta(days=1))
TABLES_PER_DAY = Limit("client-exports", "exports of clients per day", 50, timedelta(days=1))
COLUMNS = (
    *("name", "phone", "email", "birthday", "tags", "notes", "leadsCount", "bookingsCount"),
    *("lastActivityAt", "createdAt", "externalId"),
)


class KnownLead(Wire):
    """A lead of the person."""

    id: Id = Field(description="Lead id.")
    status: str = Field(description="Status.")
    name: str | None = Field(description="Name, or null.")
    email: str | None = Field(description="E-mail address, or null.")
    phone: str | None = Field(description="Phone, or null.")
    data: dict[str, Any] = Field(description="Submitted values by field name.")
    notes: str | None = Field(description="Notes, or null.")
    tags: list[str] = Field(description="Tags.")
    source: dict[str, Any] | None = Field(description="Page and campaign, or null.")
    created_at: Timestamp = Field(description="When it was submitted.")

    @classmethod
    def from_record(cls, lead: LeadRow) -> Self:
        return cls.from_row(
            lead.values, data=lead.whole_data, phone=lead.phone or lead.phone_entered
        )


class KnownChange(Wire):
    """An entry of a booking's history: a change, a noted payment, or an e-mail to the client."""

    at: Timestamp = Field(description="When.")
    status: str = Field(description="Status of the booking then.")
    reason: str | None = Field(description="Reason, or null.")
    mail: dict[str, Any] | None = Field(description="Kind and state of an e-mail, or null.")
    noted: dict[str, Any] | None = Field(description="Payment at the visit, or null.")


class KnownPayment(Wire):
    """A payment for a booking, without what the provider needs to move money."""

    id: Id = Field(description="Payment id.")
    booking_id: Id = Field(description="Booking id.")
    status: str = Field(description="Status.")
    amount: int = Field(description="Amount in minor units of the currency.")
    currency: str = Field(description="Currency.")
    created_at: Timestamp = Field(description="When it was opened.")
    paid_at: Timestamp | None = Field(description="When it was paid, or null.")
    refunds: list["KnownRefund"] = Field(description="Refunds.")

    @classmethod
    def from_record(cls, payment: PaymentRow, refunds: Iterable[RefundRow]) -> Self:
        return cls.from_row(
            payment.attribute_values,
            id=payment.id,
            booking_id=payment.subject_id,
            status=payment.shown_status,
            refunds=[KnownRefund.from_row(refund.attribute_values) for refund in refunds],
        )


class KnownRefund(Wire):
    """A refund of a payment."""

    status: str = Field(description="Status.")
    amount: int = Field(description="Amount.")
    created_at: Timestamp = Field(description="When it was requested.")


class KnownBooking(Wire):
    """A booking of the person, with its history."""

    booking: BookingOut = Field(description="The booking.")
    history: list[KnownChange] = Field(description="Changes, noted payments and e-mails.")


class KnownMessage(Wire):
    """A message of a dialog."""

    role: str = Field(description="user: the person; assistant: the bot.")
    content: str = Field(description="Text.")
    created_at: Timestamp = Field(description="When it was sent.")


class KnownDialog(Wire):
    """A dialog of the person with a bot."""

    id: Id = Field(description="Dialog id.")
    created_at: Timestamp = Field(description="When it began.")
    messages: list[KnownMessage] = Field(description="Messages, oldest first.")


class ClientFile(Wire):
    """What the workspace knows of one client."""

    taken_at: Timestamp = Field(description="When the file was made.")
    clients: list[ClientOut] = Field(description="The client, and others with a contact of it.")
    advertising: list[AdvertisingConsent] = Field(
        description="Agreements of these clients to advertising, and withdrawals."
    )
    leads: list[KnownLead] = Field(description="Leads.")
    bookings: list[KnownBooking] = Field(description="Bookings.")
    payments: list[KnownPayment] = Field(description="Payments of the bookings.")
    waiting: list[WaitingEntry] = Field(description="Places in waiting lists.")
    dialogs: list[KnownDialog] = Field(description="Dialogs with bots.")
    is_cut: bool = Field(description="Whether dialogs have more messages than the file.")


@operation(
    role=Role.MANAGER,
    idempotent=True,
    title="Export all data of a client",
    example={"id": "CLIENT_ID"},
    errors=(PayloadTooLargeError,),
)
def export_client(ctx: Context, args: ClientRef) -> ClientFile:
    """Return all data of one client: contacts, leads, bookings, payments, dialogs and e-mails.

    The records are those that an erasure of the client would find. The audit log records the
    export.

    Raises:
        PayloadTooLargeError: the client has more than 500 records.
        RateLimitedError: the workspace has exported often today.
    """
    limits.stage(ctx.unit, FILES_PER_DAY, ctx.workspace_id)
    trace = Trace.run(ctx.workspace_id, args.id, ())
    if not trace.records:
        raise NotFoundError("The workspace has no client with this id.", key="client")
    if len(trace.records) > MAX_RECORDS:
        msg = f"The client has more than {MAX_RECORDS} records. Export the workspace instead."
        raise PayloadTooLargeError(msg, key="client")
    ctx.unit.mention(f"client:{args.id}")
    booked: list[BookingRow] = trace.rows(BookingRow)
    dialogs, is_cut = _dialogs(ctx.workspace_id, trace.rows(DialogRow))
    ids = [row.id for row in trace.rows(LeadRow)]
    return ClientFile(
        taken_at=clock.now(),
        clients=[ClientOut.from_record(row) for row in trace.rows(ClientRow)],
        advertising=[
            AdvertisingConsent.from_entry(entry)
            for row in trace.rows(ClientRow)
            for entry in advertising_consents.read(ctx.workspace_id, client_id=row.id)
        ],
        leads=[KnownLead.from_record(row) for row in leads.read_whole(ctx.workspace_id, ids)],
        bookings=[_booking(ctx.workspace_id, row) for row in booked],
        payments=_payments(ctx.workspace_id, booked),
        waiting=waiting_out.of_client(
            ctx.workspace_id,
            trace.contacts | trace.spellings,
            [row.id for row in trace.rows(ClientRow)],
        ),
        dialogs=dialogs,
        is_cut=is_cut,
    )


def _booking(workspace_id: str, row: BookingRow) -> KnownBooking:
    events = EventRow.newest(workspace_id, record_id=row.id)
    return KnownBooking(
        booking=BookingOut.from_record(row),
        history=[KnownChange.from_row(event.attribute_values) for event in events][::-1],
    )


def _payments(workspace_id: str, booked: Iterable[BookingRow]) -> list[KnownPayment]:
    ids = [payment_id for row in booked for payment_id in row.payment_ids or ()]
    if not ids:
        return []
    refunds = payments.refunds_of(workspace_id, ids)
    return [
        KnownPayment.from_record(
            payment, [refund for refund in refunds if refund.payment_id == payment.id]
        )
        for payment in payments.fetch(workspace_id, ids)
    ]


def _dialogs(workspace_id: str, rows: Iterable[DialogRow]) -> tuple[list[KnownDialog], bool]:
    left, known, is_cut = MAX_MESSAGES, list[KnownDialog](), False
    for row in rows:
        found = messages.page(workspace_id, dialog_id=row.id, offset=0, limit=left + 1)
        texts = [KnownMessage.from_row(each.attribute_values) for each in islice(found, left + 1)]
        is_cut |= len(texts) > left
        known.append(KnownDialog.from_row(row.values, messages=texts[:left]))
        left -= min(left, len(texts))
    return known, is_cut


class ClientExport(Wire):
    """The clients to export: the filters of the list."""

    search: SearchText | None = optional("In name, e-mail, phone (any spelling).")
    tag: Tag | None = optional("Only clients with this tag.")


class ClientTable(Wire):
    """Clients as a table. Its texts are untrusted."""

    columns: list[str] = Field(description="Names of the columns, in order.")
    rows: list[list[str | int | datetime | None]] = Field(description="One row for each client.")


@operation(
    role=Role.MANAGER,
    idempotent=True,
    title="Export clients as a table",
    example={"tag": "regular"},
    errors=(PayloadTooLargeError,),
)
def export_clients(ctx: Context, args: ClientExport) -> ClientTable:
    """Return the clients of a filter as a table, at most 5,000. The audit log records the export.

    Erased clients are left out.

    Raises:
        PayloadTooLargeError: the filter matches more clients.
        RateLimitedError: the workspace has exported often today.
    """
    limits.stage(ctx.unit, TABLES_PER_DAY, ctx.workspace_id)
    country = workspaces.get(ctx.workspace_id).country
    query = Query(
        page=1,
        size=MAX_EXPORTED,
        sort="name",
        filters={"tags": args.tag or None},
        search=phones.search_term(args.search, lambda: country),
    )
    page = CLIENTS.page(ctx.workspace_id, query)
    if page.total > MAX_EXPORTED:
        msg = f"The filter matches {page.total:,} clients, and an export has {MAX_EXPORTED:,}."
        raise PayloadTooLargeError(msg, key="clients")
    rows = [_cells(row) for row in page.records if not row.is_nobody]
    ctx.unit.mention(f"rows:{len(rows)}")
    return ClientTable(columns=list(COLUMNS), rows=rows)


def _cells(row: ClientRow) -> list[str | int | datetime | None]:
    client = ClientOut.from_record(row).model_dump(by_alias=True, mode="json")
    client |= {"tags": ", ".join(row.tags), "phone": row.phone or row.phone_entered}
    return [client[name] for name in COLUMNS]

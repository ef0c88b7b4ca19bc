"""Erase the personal data of a client. Counts and statistics are kept (ADR 38)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.jobs import ATTEMPTS_END, JOB_HANDLERS, WEBHOOK_REPLIES
from chalicelib.core.operations import KEYS_AND_MANAGED, operation
from chalicelib.core.principals import ApiKeyPrincipal, Principal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.booking_page.store import requested_bookings
from chalicelib.domains.booking_page.store.requested_bookings import AwaitedBookingRow
from chalicelib.domains.bookings.flows import booking_changes
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.chat.flows import dialog_removal
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.client_profiles.flows.tracing import Found, Trace
from chalicelib.domains.clients.store import client_chats, erased_records
from chalicelib.domains.clients.store.advertising_consents import AdvertisingConsentRow
from chalicelib.domains.clients.store.client_chats import ClientChatRow
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.domains.waiting.flows import lines
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.engine import idempotency, jobs
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.transactions import MAX_ITEMS
from chalicelib.engine.unit import UnitOfWork, split_batches
from chalicelib.lib import phones
from chalicelib.lib.contact_fields import Email, PhoneText

# Transaction items for wiping a lead or a booking, without those for its named contacts. A named
# contact has one item, or two if its key has changed.
ITEMS_PER_RECORD = 10
ITEMS_PER_UNIT = MAX_ITEMS - 10
CHANGES_PER_UNIT = 90
CHATS_PER_UNIT = 30  # each with an entry
CANCELLED = "The client was erased."  # in the history of the booking
HISTORIES: dict[type[Any], type[HistoryRow]] = {
    BookingRow: bookings.EventRow,
    ClientRow: AdvertisingConsentRow,
    LeadRow: leads.EventRow,
}
_UNFINISHED = "A part of the data is erased. Repeat the call to erase the rest."
MAX_SHOWN = 1000  # records in a response; its counts include all


class ClientErase(Wire):
    """The person to erase."""

    id: Id | None = optional("Client id.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("Phone number in any spelling.")
    dry_run: bool = Field(default=False, description="Only report what would be removed.")

    @model_validator(mode="after")
    def _require_client_or_contact(self) -> Self:
        if not (self.id or self.email or self.phone):
            message = "send at least one of id, email, phone"
            raise PydanticCustomError("no_contact", message)
        return self


class ErasedRecord(Wire):
    """A found record. Its contacts are shown only in a dry run."""

    kind: str = Field(description="client, lead, booking or dialog.")
    id: Id = Field(description="Id of the record.")
    found_by: str = Field(
        description="id, contact, client, lead, dialog, or nothing else left of a client."
    )
    name: str | None = Field(description="Name, or null.")
    email: str | None = Field(description="E-mail address, or null.")
    phone: str | None = Field(description="Phone number, or null.")
    named_contacts: list[str] = Field(description="Other contacts in its text.")

    @classmethod
    def from_record(cls, record: Found, *, with_contacts: bool) -> Self:
        row = record.row
        name = row.client_name if isinstance(row, BookingRow) else getattr(row, "name", None)
        contacts = record.contacts if with_contacts else {"email": None, "phone": None}
        return cls(
            kind=LISTINGS[type(row)].noun.lower(),
            id=row.id,
            found_by=record.by,
            name=name if with_contacts else None,
            named_contacts=record.other_contacts if with_contacts else [],
            **contacts,
        )


class LinkedClient(Wire):
    """A client that is not erased, although it shares a record or a contact with the person."""

    id: Id = Field(description="Client id.")
    name: str | None = Field(description="Name, or null.")
    email: str | None = Field(description="E-mail address, or null.")
    phone: str | None = Field(description="Phone number, or null.")


class ClientErased(Wire):
    """Records that were erased, or would be erased."""

    erased: bool = Field(description="false after a dry run, which removes nothing.")
    client_id: Id | None = Field(description="First client found, or null. Only its counts remain.")
    client_ids: list[Id] = Field(description="All clients that were found.")
    leads: int = Field(description="Leads without contacts, data, notes and search text now.")
    bookings: int = Field(description="Bookings without contacts, notes and reasons now.")
    cancelled_bookings: list[Id] = Field(description="Upcoming bookings, which are cancelled.")
    dialogs: int = Field(description="Dialogs without messages and search text now.")
    stored_answers: int = Field(description="Removed responses of idempotent calls.")
    found: list[ErasedRecord] = Field(description="These records, at most 1,000.")
    linked_clients: list[LinkedClient] = Field(
        description="Clients that may be the same person. Check them, and erase by client id."
    )


class ErasureUnfinishedError(AppError):
    """A part of a person's data is erased. Repeating the call erases the rest."""

    status = 503
    code = "erasure_unfinished"


@operation(
    rest="POST /api/clients/delete",
    scope=Scope.CRM_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    idempotent=True,
    destructive=True,
    example={"id": "CLIENT_ID"},
    errors=(ErasureUnfinishedError,),
)
def erase_client(ctx: Context, args: ClientErase) -> ClientErased:
    """Remove a person's data permanently. Statistics and counts stay.

    The person's clients are the given client, and all clients that have or had a given contact.
    Their leads and bookings are erased too, as well as other records with one of their contacts,
    and the dialogs of these records. Upcoming bookings are cancelled, and requested ones that wait
    for an e-mail's link are removed, as are places in waiting lists. If there is too much for one
    request, it ends with 503 erasure_unfinished, and the next call continues. A key reads contacts
    only with crm:read.
    """
    shows_contacts = _shows_contacts(ctx.principal)
    trace, linked = ctx.unit.run_side_effect_once("trace", lambda: _trace(ctx, args))
    requested = requested_bookings.naming_awaited(
        ctx.workspace_id, trace.contacts | trace.spellings
    )
    waiting = waiting_lines.naming(
        ctx.workspace_id,
        trace.contacts | trace.spellings,
        {row.id for row in trace.rows(ClientRow)},
    )
    if not trace.records and not requested and not waiting:
        raise NotFoundError("The workspace has no data of this client.", key="client")
    upcoming = [row.id for row in trace.rows(BookingRow) if bookings.is_upcoming(row)]
    if not args.dry_run:
        _forget_replies(ctx, [record.row.id for record in trace.records])
        for wave in reversed(trace.waves):
            _erase(ctx, [record.row for record in wave])
        for row in requested:
            _commit(ctx, [row.sk], partial(_end_link, row=row))
        for entry in waiting:
            _commit(ctx, [entry.sk], partial(_end_waiting, waiting_id=entry.sk))
    client_ids = [row.id for row in trace.rows(ClientRow)]
    return ClientErased(
        erased=not args.dry_run,
        client_id=client_ids[0] if client_ids else None,
        client_ids=client_ids,
        leads=len(trace.rows(LeadRow)),
        bookings=len(trace.rows(BookingRow)),
        cancelled_bookings=upcoming,
        dialogs=len(trace.rows(DialogRow)),
        stored_answers=ctx.unit.run_side_effect_once(
            "answers", lambda: _forget_answers(ctx, args, trace)
        ),
        found=[
            ErasedRecord.from_record(record, with_contacts=args.dry_run and shows_contacts)
            for record in trace.records[:MAX_SHOWN]
        ],
        linked_clients=[
            LinkedClient.from_row(row.values if shows_contacts else {"id": row.id})
            for row in linked
        ],
    )


def _shows_contacts(principal: Principal) -> bool:
    # A right to write does not include one to read.
    return not isinstance(principal, ApiKeyPrincipal) or Scope.CRM_READ in principal.scopes


def _trace(ctx: Context, args: ClientErase) -> tuple[Trace, list[ClientRow]]:
    country = workspaces.get(ctx.workspace_id).country
    number = phones.find_phone(args.phone, country=country) if args.phone else None
    trace = Trace.run(ctx.workspace_id, args.id, filter(None, (args.email, number)))
    return trace, trace.linked()


def _forget_answers(ctx: Context, args: ClientErase, trace: Trace) -> int:
    # A dry run only counts the stored responses.
    ids = [record.row.id for record in trace.records]
    texts = [*ids, *trace.contacts, *trace.spellings]
    answers = idempotency.answers_naming(ctx.workspace_id, texts)
    if not args.dry_run:
        idempotency.forget_answers(answers)
    return len(answers)


def _forget_replies(ctx: Context, record_ids: list[str]) -> None:
    # Replies are removed after the erasure, and again when attempts that are being made have ended.
    due_at = ctx.unit.run_side_effect_once("due", clock.now) + ATTEMPTS_END
    parts = [{"recordIds": part} for part in split_batches(record_ids, MAX_SHOWN)]
    rows = [jobs.row(WEBHOOK_REPLIES, ctx.workspace_id, part, due_at) for part in parts]

    def stage(unit: UnitOfWork) -> None:
        for row in rows:
            unit.create(row)

    _commit(ctx, ["replies", due_at.isoformat()], stage)
    for row in rows:
        ctx.unit.after_commit(partial(JOB_HANDLERS[row.kind], row))


def _erase(ctx: Context, rows: Sequence[Any]) -> None:
    # Clients come first, because a lead of the wave may have led to a client.
    for row in rows:
        if isinstance(row, ClientRow):
            chats = client_chats.of_client(ctx.workspace_id, client_id=row.id)
            for some in split_batches(chats[CHATS_PER_UNIT:], CHATS_PER_UNIT):
                names = [row.id, *(chat.sk for chat in some)]
                _commit(ctx, names, partial(_end_chats, chats=some))
            _commit_records(ctx, [row.id], partial(_wipe_client, client_id=row.id))
    booked = [row for row in rows if isinstance(row, BookingRow)]
    for row in rows:
        if isinstance(row, DialogRow):
            _erase_dialog(ctx, row.id)
    changes = [
        event
        for row in rows
        if type(row) in HISTORIES
        for event in HISTORIES[type(row)].to_erase(ctx.workspace_id, record_id=row.id)
    ]
    for events in split_batches(changes, CHANGES_PER_UNIT):
        names = [event.sk for event in events]
        _commit(ctx, names, partial(_erase_changes, events=events))
    for batch in _batches([row for row in rows if isinstance(row, LeadRow)]):
        _commit_records(ctx, batch, partial(leads.wipe, ids=batch))
    for row in booked:
        _commit_records(ctx, [row.id], partial(_wipe_booking, ctx, booking_id=row.id))


def _batches(rows: Sequence[LeadRow]) -> Iterator[list[str]]:
    batch: list[str] = []
    items = 0
    for row in rows:
        more = ITEMS_PER_RECORD + 2 * len(row.named_contacts or ())
        if batch and items + more > ITEMS_PER_UNIT:
            yield batch
            batch, items = [], 0
        batch.append(row.id)
        items += more
    if batch:
        yield batch


def _commit(ctx: Context, names: list[str], wipe: Callable[[UnitOfWork], None]) -> None:
    if deadline.passed():
        raise ErasureUnfinishedError(_UNFINISHED)

    def stage(unit: UnitOfWork) -> bytes:
        wipe(unit)
        return b""

    ctx.unit.commit_batch(f"{names[0]}-{names[-1]}-{len(names)}", stage)


def _commit_records(ctx: Context, ids: list[str], wipe: Callable[[UnitOfWork], None]) -> None:
    # The records are noted as erased in the same transaction.
    def stage(unit: UnitOfWork) -> None:
        wipe(unit)
        for client_id in ids:
            unit.save(erased_records.erased_row(unit.workspace_id, record_id=client_id))

    _commit(ctx, ids, stage)


def _erase_changes(unit: UnitOfWork, events: Sequence[HistoryRow]) -> None:
    for event in events:
        event.stage_erasure(unit)


def _erase_dialog(ctx: Context, dialog_id: str) -> None:
    # Contacts are removed last, so that an interrupted erasure finds the dialog again.
    _commit(ctx, [f"end-{dialog_id}"], partial(dialog_removal.stage_end, dialog_id=dialog_id))
    for batch in dialog_removal.message_batches(ctx.workspace_id, dialog_id=dialog_id):
        names = [f"{dialog_id}-{row.sk}" for row in batch]
        _commit(ctx, names, partial(dialog_removal.stage_removal, batch=batch))
    _commit_records(ctx, [dialog_id], partial(dialog_removal.stage_erasure, dialog_id=dialog_id))


def _wipe_booking(ctx: Context, unit: UnitOfWork, booking_id: str) -> None:
    # An upcoming booking is cancelled.
    row = BOOKINGS.find(unit.workspace_id, record_id=booking_id)
    if row is None:
        return
    row.erase()
    if row.client_id is not None:
        client_chats.stage_end_of_booking(unit, client_id=row.client_id, booking_id=row.id)
    if bookings.is_upcoming(row):
        booking_changes.change(
            unit,
            row,
            # Every booking of a visit is of this client, and is erased by a unit of its own.
            BookingChange(ctx.principal.audit_actor, "cancelled", reason=CANCELLED, is_alone=True),
        )
    else:
        unit.save(row)


def _end_link(unit: UnitOfWork, row: AwaitedBookingRow) -> None:
    # If the link has booked in the meantime, nothing has traced that booking yet.
    unit.delete(row, if_there=True, on_conflict=ErasureUnfinishedError(_UNFINISHED))


def _end_waiting(unit: UnitOfWork, waiting_id: str) -> None:
    row = waiting_lines.find(unit.workspace_id, waiting_id)
    if row is not None:
        lines.stage_leaving(unit, [row])


def _wipe_client(unit: UnitOfWork, client_id: str) -> None:
    client = CLIENTS.find(unit.workspace_id, record_id=client_id)
    # A chat that is linked at the same moment changes the client, so one of the two runs again.
    for chat in client_chats.of_client(unit.workspace_id, client_id=client_id)[:CHATS_PER_UNIT]:
        client_chats.stage_end(unit, chat)
    if client is not None:
        client.erase()
        unit.save(client)


def _end_chats(unit: UnitOfWork, chats: Sequence[ClientChatRow]) -> None:
    for chat in chats:
        client_chats.stage_end(unit, chat)

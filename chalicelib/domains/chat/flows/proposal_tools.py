"""Tools that store a proposal, which is shown as a card.

Nothing happens until the visitor confirms the card (``domains.chat.operations.actions``). Its names
and contacts are the visitor's own words. What the model passes and the visitor has not written is
left out, and the card asks the visitor.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import Field

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import ConflictError
from chalicelib.core.text import fold
from chalicelib.core.unit import AuditEvent
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.bookings.flows.advance import read_advance
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.rules.slots import Query
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.catalog.store.products import ProductRow
from chalicelib.domains.chat.flows import chat_facts
from chalicelib.domains.chat.flows.named_records import one_named
from chalicelib.domains.chat.flows.tool_calls import Tool, ToolContext, ToolError
from chalicelib.domains.chat.rules import cards
from chalicelib.domains.chat.rules.cards import Line, Person
from chalicelib.domains.chat.store import messages, proposals
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.chat.store.messages import MessageRow
from chalicelib.domains.chat.store.proposals import Kind, ProposalId
from chalicelib.domains.leads.flows import cart as submissions
from chalicelib.domains.leads.rules.form_fields import FieldSpec
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.metrics import Increments
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib import emails, phones
from chalicelib.lib.contact_fields import PersonName, PhoneText

OPEN_FOR = timedelta(minutes=15)  # A visitor can confirm a proposal for this time.
MAX_PROPOSALS = 3  # in one answer
MAX_LINES = 20
HANDOVER_PAUSE = timedelta(days=1)  # until an employee can be requested again in a dialog
SHOWN = (
    "The visitor now sees a card with these details. Nothing is done until the visitor confirms it."
    " Ask the visitor to check the card and to confirm it."
)


class PersonArguments(Wire):
    """The visitor, as far as the visitor has said."""

    name: PersonName | None = optional("Name that the visitor has given.")
    phone: PhoneText | None = optional("Phone that the visitor has given.")
    email: str | None = optional("E-mail address that the visitor has given.")


class BookingProposal(PersonArguments):
    """A booking to propose."""

    slot_id: str = Field(max_length=10, description="slotId of a free time.")


class OrderLine(Wire):
    """A product of an order."""

    product: str = Field(min_length=1, max_length=200, description="Name of the product.")
    quantity: int = Field(default=1, ge=1, le=1_000, description="Number of pieces.")


class OrderProposal(PersonArguments):
    """An order to propose."""

    items: list[OrderLine] = Field(
        min_length=1, max_length=MAX_LINES, description="Products and quantities."
    )


class PersonRequest(Wire):
    """A request for a person."""

    reason: str = Field(min_length=1, max_length=500, description="What the visitor needs.")


def propose_booking(context: ToolContext, args: BookingProposal) -> dict[str, Any]:
    """Show the visitor a card to confirm a booking of a free time. Leave out what is not known."""
    offered_slot = next((slot for slot in context.offered_slots if slot.id == args.slot_id), None)
    if offered_slot is None:
        raise ToolError("There is no such slotId. Call find_free_times, and take one of its ids.")
    workspace_id, now = context.workspace.id, epoch_ms(clock.now())
    service = SERVICES.find(workspace_id, record_id=offered_slot.service_id)
    if service is None or service.status != "active":
        raise ToolError("This service cannot be booked any more.")
    offer = service.offer(offered_slot.resource_id)
    advance = read_advance(workspace_id, service, offer)
    if advance.by_phone:
        raise ToolError("This service has to be paid when it is booked. Chats cannot do that.")
    search = Search.create(workspace_id, service, offered_slot.resource_id)
    free = search.slots(Query(offered_slot.start, offered_slot.start, now)).slots
    if not any(offered_slot.resource_id in slot.seats for slot in free):
        raise ToolError("This time is no longer free. Call find_free_times again.")
    (resource,) = (candidate.resource for candidate in search.candidates.active)
    start = clock.moment_at(offered_slot.start)
    person = _person(context, args)
    card = cards.booking(
        context.language,
        service=service.name,
        local=start.astimezone(ZoneInfo(resource.timezone)),
        zone=resource.timezone,
        staff=resource.name,
        minutes=offer.duration_min,
        price=offer.price,
        currency=context.workspace.currency,
        due=advance.amount_due,
        refund_until_min=advance.refund_until_min,
        hold_minutes=advance.hold_minutes,
        person=person,
        privacy_url=context.agent.privacy_url,
    )
    arguments = {
        "serviceId": service.id,
        "resourceId": resource.id,
        "start": offered_slot.start,
        "price": offer.price,
        "minutes": offer.duration_min,
        "due": advance.amount_due,
        "refundUntilMin": advance.refund_until_min,
        **_known(person),
    }
    last = start - timedelta(minutes=int(service.min_notice_min))
    return _propose(context, "booking", arguments, card=card, last=last)


def propose_order(context: ToolContext, args: OrderProposal) -> dict[str, Any]:
    """Show the visitor a card to confirm an order of products. Leave out what is not known."""
    workspace_id = context.workspace.id
    form = FORMS.find(workspace_id, record_id=context.agent.order_form_id or "")
    if form is None:
        raise ToolError("This business does not take orders in the chat.")
    products = _products(workspace_id, args.items)
    lines = [Line(product.name, quantity, int(product.price)) for product, quantity in products]
    card_form = _Form.from_form(form, _person(context, args))
    card = cards.order(
        context.language,
        lines=lines,
        currency=context.workspace.currency,
        known_fields=card_form.known_values,
        fields=card_form.fields,
        consent=card_form.consent,
        privacy_url=context.agent.privacy_url,
    )
    items = [
        {"productId": product.id, "quantity": line.quantity, "price": line.price}
        for (product, _), line in zip(products, lines, strict=True)
    ]
    arguments = {"formId": form.id, "items": items, "values": card_form.values}
    return _propose(context, "order", arguments, card=card)


def request_person(context: ToolContext, args: PersonRequest) -> dict[str, Any]:
    """Ask the business to contact the visitor, if the visitor wants that."""
    if not context.contacts:
        raise ToolError("Ask the visitor for a phone number or an e-mail address first.")

    def stage(unit: UnitOfWork) -> dict[str, Any]:
        _require_answer(unit, context)
        dialog = DIALOGS.require(unit.tenant, record_id=context.dialog_id)
        now = clock.now()
        if dialog.handover_at is not None and dialog.handover_at + HANDOVER_PAUSE > now:
            return {"result": "A person has been asked already and will contact the visitor."}
        dialog.handover_at, dialog.handover_reason = now, args.reason
        unit.save(dialog)
        counts = Increments(unit.tenant)
        today = clock.local_day(now, context.workspace.timezone)
        measures = {bot_metrics.HANDOVERS: 1}
        bot_metrics.count(
            counts, dialog.agent_id, channel=dialog.channel, day=today, measures=measures
        )
        counts.stage(unit)
        return {"result": "A person has been asked and will contact the visitor."}

    result = run_unit(context.workspace.id, AuditEvent("chat", "bot"), stage)
    context.has_requested_person = True
    return result


def _propose(
    context: ToolContext,
    kind: Kind,
    arguments: dict[str, Any],
    *,
    card: dict[str, Any],
    last: datetime | None = None,
) -> dict[str, Any]:
    if context.attempted >= MAX_PROPOSALS:
        raise ToolError("Propose no more in this answer.")
    context.attempted += 1  # A proposal whose answer was lost may have been stored.
    ends_at = clock.now() + OPEN_FOR
    place = ProposalId(context.agent.id, context.dialog_id, context.number, context.attempted)
    unit = UnitOfWork(context.workspace.id)
    _require_answer(unit, context)
    row = proposals.stage_new(
        unit,
        place,
        kind,
        arguments=arguments,
        card=card,
        ends_at=min(ends_at, last) if last else ends_at,
    )
    unit.commit()
    context.proposed.append(row)
    return {"title": card["title"], "details": card["details"], "result": SHOWN}


def _require_answer(unit: UnitOfWork, context: ToolContext) -> None:
    place = messages.key(context.workspace.id, dialog_id=context.dialog_id, number=context.number)
    # The answer is gone if the dialog has been erased in the meantime.
    erased = ConflictError("This dialog has ended.", key="dialog_ended")
    unit.require(MessageRow(place.pk, place.sk), on_conflict=erased)


def _person(context: ToolContext, args: PersonArguments) -> Person:
    said_words = {word for text in context.visitor_texts for word in _words(text)}
    words = _words(args.name or "")
    # A name of the model's own invention would be booked as the visitor's.
    name = args.name if words and said_words.issuperset(words) else None
    phone = phones.find_phone(args.phone, country=context.workspace.country) if args.phone else None
    email = emails.find_email(args.email) if args.email else None
    contacts_by_key = {emails.key(contact): contact for contact in context.contacts}
    return Person(
        name,
        phone if phone in contacts_by_key else None,
        contacts_by_key.get(emails.key(email)) if email else None,
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", fold(text))


def _known(person: Person) -> dict[str, str]:
    return {name: value for name, value in person._asdict().items() if value is not None}


def _products(workspace_id: str, lines: Sequence[OrderLine]) -> list[tuple[ProductRow, int]]:
    cart: dict[str, tuple[ProductRow, int]] = {}
    for line in lines:
        similar, total = chat_facts.PRODUCT_OFFERS.records(
            workspace_id, question=line.product, everywhere=True
        )
        product: ProductRow = one_named(similar, line.product, what="products", total=total)
        quantity = line.quantity + cart.get(product.id, (product, 0))[1]
        if product.stock is not None and product.stock < quantity:
            # The exact stock is not for visitors, whom a model may tell all that it reads.
            fewer = "None" if product.stock <= 0 else f"Fewer than {quantity}"
            msg = f"{fewer} of {product.name} are in stock."
            raise ToolError(msg)
        if quantity > submissions.MAX_QUANTITY:
            msg = f"An order may have {submissions.MAX_QUANTITY} pieces of a product."
            raise ToolError(msg)
        cart[product.id] = (product, quantity)
    return list(cart.values())


class _Form(NamedTuple):
    values: dict[str, str]  # known, by field
    known_values: list[tuple[str, str]]  # with labels
    fields: list[cards.Field]  # The visitor fills these in.
    consent: str | None  # The visitor gives it by confirming the card.

    @classmethod
    def from_form(cls, form: FormRow, person: Person) -> "_Form":
        values: dict[str, str] = {}
        known_values, fields, consents = [], [], []
        for spec, value in _match_contacts(form.specs, person):
            if value is not None:
                values[spec.name] = value
                known_values.append((spec.label, value))
            elif spec.type == "consent":
                if spec.required:
                    consents.append(spec.label)
                    values[spec.name] = "on"
            elif spec.required and spec.type == "hidden":
                # A visitor cannot fill in a hidden field.
                raise ToolError("The form for orders cannot be filled in in a chat.")
            elif spec.required:
                fields.append(cards.Field(*spec))
        return cls(values, known_values, fields, " ".join(consents) or None)


def _match_contacts(
    specs: Iterable[FieldSpec], person: Person
) -> Iterable[tuple[FieldSpec, str | None]]:
    # A name belongs only into a text field of this name: the visitor cannot correct what is taken
    # over.
    unused_contacts = {"phone": person.phone, "email": person.email}
    for spec in specs:
        if spec.name == cards.NAME and spec.type in {"text", "textarea"}:
            yield spec, person.name
        else:
            yield spec, unused_contacts.pop(spec.type, None)


PROPOSAL_TOOLS = (
    Tool("booking", BookingProposal, propose_booking),
    Tool("order", OrderProposal, propose_order),
    Tool("handover", PersonRequest, request_person),
)

"""Confirm or decline what a bot has proposed.

A confirmed booking is the visitors' own operation, and a confirmed order is a submission of the
bot's form. One transaction carries it out and ends the proposal.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire import parsing
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.booking_page.flows import book_for_visitor
from chalicelib.domains.booking_page.flows.book_for_visitor import (
    ByPhoneOnlyError,
    ChangedError,
    MadeBooking,
)
from chalicelib.domains.booking_page.flows.public_booking import (
    BookingAwaitsMail,
    PublicBookingCreate,
    PublicBookingOut,
)
from chalicelib.domains.booking_page.flows.visitor_shares import BookingLimitError
from chalicelib.domains.booking_page.rules import refusals
from chalicelib.domains.booking_page.rules.refusals import Advice
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.store.bookings import CHAT, BookingRow
from chalicelib.domains.bots.flows import active_bot
from chalicelib.domains.bots.store import bot_keys, bot_metrics
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.chat.rules import cards
from chalicelib.domains.chat.store import chat_sessions, proposals
from chalicelib.domains.chat.store.chat_sessions import SessionRow
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.chat.store.proposals import LatestRow, ProposalId, ProposalRow
from chalicelib.domains.clients.flows import contacts
from chalicelib.domains.clients.store import contact_lookups
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.flows import submissions
from chalicelib.domains.leads.flows.submissions import FormSubmission, Origin
from chalicelib.domains.mails.flows.mail_gate import Forecast
from chalicelib.engine.metrics import Increments
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails, localized, phones, tokens

DECISIONS = Limit("actions", "decisions on proposals a minute", 30, timedelta(minutes=1))
MAX_VALUE = 10_000


class ActionEndedError(ConflictError):
    """The action was cancelled, has expired, was replaced or cannot be done any more. Ask again."""

    code = "action_ended"


class ActionDecision(Wire):
    """A visitor's decision on a proposal."""

    id: Annotated[str, StringConstraints(max_length=100)] = Field(description="Id of the action.")
    session_id: str = Field(description="Session of the dialog.")
    api_key: str | None = optional("Bot key; required by a private bot.")
    decision: Literal["confirm", "cancel"] = Field(description="confirm carries the action out.")
    values: dict[str, Annotated[str, StringConstraints(max_length=MAX_VALUE)]] | None = optional(
        "Values of the card's fields, by name."
    )


class ActionResult(Wire):
    """Outcome of a proposal."""

    state: Literal["done", "cancelled"] = Field(description="State of the action.")
    message: str = Field(description="Sentence to show to the visitor.")
    booking: PublicBookingOut | None = Field(default=None, description="The booking, or null.")
    cancel_token: str | None = Field(
        default=None, description="Token to cancel the booking, or null. Keep it secret."
    )
    ics_url: str | None = Field(default=None, description="URL of its calendar file, or null.")
    manage_url: str | None = Field(
        default=None,
        description="URL of the page that moves, cancels and pays it, or null. Keep it secret.",
    )
    payment_url: str | None = Field(
        default=None, description="URL of the page that pays the booking, or null."
    )
    amount_due: int | None = Field(
        default=None, description="Minor units (kopecks) of the booking to pay in advance, or null."
    )
    hold_expires_at: Timestamp | None = Field(
        default=None, description="When the unpaid booking expires, or null."
    )
    mail: Forecast | None = Field(
        default=None,
        description="What becomes of the e-mail about the booking: sent, waiting, none or null.",
    )
    order_id: Id | None = Field(default=None, description="Id of the order, or null.")
    redirect_url: str | None = Field(
        default=None, description="URL to redirect the browser to after an order, or null."
    )


class ActionAwaitsMail(BookingAwaitsMail):
    """A proposed booking that waits for the visitor to open the link in an e-mail."""

    state: str = Field(description="awaiting_mail; done when the link has booked.")
    message: str = Field(description="Sentence to show to the visitor.")


def _workspace_of(args: ActionDecision) -> str:
    reference = ProposalId.parse(args.id)
    return AGENTS.found_for_visitor(AGENTS.workspace_of(reference.agent_id) if reference else None)


@operation(
    rest="POST /api/agents/public/actions/{id}",
    title="Confirm what a bot proposes",
    audience=PUBLIC,
    resolve=_workspace_of,
    limit=DECISIONS,
    idempotent=True,
    example={"id": "ACTION_ID", "sessionId": "SESSION_ID", "decision": "confirm"},
    errors=(
        ActionEndedError,
        BookingLimitError,
        ByPhoneOnlyError,
        ChangedError,
        SlotUnavailableError,
    ),
)
def decide_on_action(ctx: Context, args: ActionDecision) -> ActionResult | ActionAwaitsMail:
    """Carry out what a bot has proposed, or decline it. A repeated call returns the same result.

    A booking that needs a proof of the visitor's e-mail address is answered with 202 and waits for
    the link in an e-mail.
    """
    proposal = _find(ctx, args)
    row = proposal.row
    language = row.card["language"]
    if proposal.state == proposals.AWAITING:
        return ActionAwaitsMail.model_validate(row.result)
    if row.result is not None and row.state != proposals.AWAITING:
        return ActionResult.model_validate(row.result)
    if proposal.state == "failed":
        raise ActionEndedError(
            "This time is no longer free. Ask the bot for another time.", key="slot_taken"
        )
    if proposal.state != proposals.OPEN:
        msg = f"This action is no longer open: it is {proposal.state}. Ask the bot again."
        raise ActionEndedError(msg, key="not_open")
    if args.decision == "cancel":
        result = ActionResult(state="cancelled", message=cards.text(language, "declined"))
        proposals.stage_decision(ctx.unit, row, "cancelled", result.model_dump(by_alias=True))
        return result
    carry_out: Callable[[Context, _Proposal, dict[str, str]], ActionResult | ActionAwaitsMail]
    carry_out = _book if row.kind == "booking" else _order
    try:
        action_result = carry_out(ctx, proposal, args.values or {})
    except NotFoundError:
        msg = (
            "The service or product that the bot proposed is no longer available. Ask the bot "
            "again."
        )
        raise ActionEndedError(msg, key="not_available") from None
    response = action_result.model_dump(mode="json", by_alias=True)
    if isinstance(action_result, ActionAwaitsMail):
        proposals.stage_decision(ctx.unit, row, proposals.AWAITING, response)
        return action_result
    proposals.stage_decision(ctx.unit, row, "done", response)
    _count(ctx, proposal.dialog, proposal.workspace)
    return action_result


def stage_booked(ctx: Context, proposal_id: str, new_booking: MadeBooking) -> None:
    """Stage the end of a proposal whose booking has waited for an e-mail's link.

    Raises NotFoundError if the dialog is gone, or the proposal no longer waits.
    """
    reference, rows = AGENTS.found_for_visitor(ProposalId.parse(proposal_id)), Rows()
    dialog = DIALOGS.found_for_visitor(
        DIALOGS.find(ctx.workspace_id, record_id=reference.dialog_id)
    )
    row = rows.find(ProposalRow, proposals.key(ctx.workspace_id, reference))
    if row is None or row.state != proposals.AWAITING:
        raise AGENTS.unavailable()
    result = _booked(ctx.workspace_id, row, new_booking)
    response = result.model_dump(mode="json", by_alias=True)
    proposals.stage_decision(ctx.unit, row, "done", response, was=proposals.AWAITING)
    _count(ctx, dialog, workspaces.get(ctx.workspace_id))


class _Proposal(NamedTuple):
    row: ProposalRow
    dialog: DialogRow
    workspace: WorkspaceRow
    state: proposals.State


def _find(ctx: Context, args: ActionDecision) -> _Proposal:
    reference = ProposalId.parse(args.id)
    # The error is the same for a proposal of another session.
    missing = NotFoundError("This session has no action with this id.", key="action")
    if reference is None:
        raise missing
    workspace_id, session_hash = ctx.workspace_id, tokens.digest(args.session_id)
    place = proposals.key(workspace_id, reference)
    latest = proposals.latest_key(workspace_id, dialog_id=reference.dialog_id)
    session_key = chat_sessions.key(workspace_id, token_hash=session_hash)
    dialog_key = DIALOGS.key(workspace_id, record_id=reference.dialog_id)
    rows = Rows()
    rows.read(
        [
            place,
            latest,
            session_key,
            dialog_key,
            *active_bot.keys(workspace_id, agent_id=reference.agent_id),
        ]
    )
    agent, workspace = active_bot.switched_on(workspace_id, agent_id=reference.agent_id, rows=rows)
    active_bot.require_active_owner(workspace)
    if agent.is_private and not (args.api_key and bot_keys.is_key_of(agent.id, token=args.api_key)):
        raise missing
    session = chat_sessions.unexpired(rows.find(SessionRow, session_key))
    row, dialog = rows.find(ProposalRow, place), rows.find(DialogRow, dialog_key)
    if (
        session is None
        or (session.agent_id, session.dialog_id) != (agent.id, reference.dialog_id)
        or row is None
        or dialog is None
    ):
        raise missing
    newest = rows.find(LatestRow, latest)
    state = proposals.state_of(row, newest.proposal if newest else None)
    return _Proposal(row, dialog, workspace, state)


def _book(
    ctx: Context, proposal: _Proposal, values: dict[str, str]
) -> ActionResult | ActionAwaitsMail:
    row, arguments = proposal.row, proposal.row.arguments
    try:
        request = parsing.parse(
            PublicBookingCreate,
            {
                "serviceId": arguments["serviceId"],
                "resourceId": arguments["resourceId"],
                "startAt": clock.iso(clock.moment_at(arguments["start"])),
                "client": _client(arguments, values),
                "price": arguments["price"],
                "durationMin": arguments["minutes"],
                "amountDue": arguments.get("due", 0),
                "refundUntilMin": arguments.get("refundUntilMin"),
            },
        )
        new_booking = book_for_visitor.book(
            ctx,
            request,
            CHAT,
            own_client_id=proposal.dialog.client_id,
            proposal=str(row.id),
        )
    except ValidationError as error:
        raise _rename_fields(error) from None
    except BookingLimitError as error:
        raise _for_visitor(error, row) from None
    except SlotUnavailableError:
        unit = UnitOfWork(ctx.workspace_id)
        proposals.stage_decision(unit, row, "failed")
        unit.commit()
        raise
    booking = new_booking.row
    _note_contacts(ctx, proposal.dialog, [booking.client_phone, booking.client_email])
    if isinstance(new_booking, MadeBooking):
        return _booked(ctx.workspace_id, row, new_booking)
    return ActionAwaitsMail(
        state=proposals.AWAITING,
        message=_sentence(row, "confirm_by_mail", booking),
        expires_at=new_booking.link_ends_at,
    )


def _sentence(row: ProposalRow, key: str, booking: BookingRow) -> str:
    language, zone = row.card["language"], ZoneInfo(booking.timezone)
    when = localized.weekday_and_time(language, booking.starts_at.astimezone(zone))
    held_until = booking.hold_expires_at
    until = f"{held_until.astimezone(zone):%H:%M}" if held_until else ""
    return cards.text(language, key, service=booking.service_name, when=when, until=until)


def _booked(workspace_id: str, row: ProposalRow, new_booking: MadeBooking) -> ActionResult:
    booking_out = new_booking.out(workspace_id)
    key = "held" if booking_out.payment_url else "booked"
    message = _sentence(row, key, new_booking.row)
    if new_booking.row.client_email and booking_out.mail == "none":
        message += " " + cards.text(row.card["language"], "no_mail")
    return ActionResult(state="done", message=message, **dict(booking_out))


def _client(arguments: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    client = {name: arguments[name] for name in cards.Person._fields if name in arguments}
    if cards.NAME not in client and cards.NAME in values:
        client[cards.NAME] = values[cards.NAME]
    if cards.PHONE not in client and cards.EMAIL not in client:
        contact = values.get(cards.CONTACT, "")
        # Next to a phone there may be the name of an account, such as @ada.
        is_email = emails.first_email_in(contact) or not phones.may_contain_phone(contact)
        client[cards.EMAIL if "@" in contact and is_email else cards.PHONE] = contact
    return client


_CARD_FIELDS = {
    "client.name": cards.NAME,
    "client.phone": cards.CONTACT,
    "client.email": cards.CONTACT,
}


def _rename_fields(error: ValidationError) -> ValidationError:
    errors = [
        field_error._replace(field=_CARD_FIELDS.get(field_error.field, field_error.field))
        for field_error in error.errors
    ]
    message = "; ".join(f"{field_error.field}: {field_error.message}" for field_error in errors)
    return ValidationError(message, errors=errors)


def _for_visitor(error: BookingLimitError, row: ProposalRow) -> BookingLimitError:
    details, advice = error.details, list[Advice]()
    has_field = any(field["name"] == cards.CONTACT for field in row.card["fields"])
    if details["byMail"]:
        advice.append("give_email" if has_field else "give_email_in_chat")
    advice.append("leave_contacts")
    if details["phone"]:
        advice.append("call")
    error.message = refusals.text(
        row.card["language"], details["reason"], *advice, phone=details["phone"] or ""
    )
    details["field"] = cards.CONTACT if details["byMail"] and has_field else None
    return error


def _order(ctx: Context, proposal: _Proposal, values: dict[str, str]) -> ActionResult:
    arguments, dialog = proposal.row.arguments, proposal.dialog
    items = arguments["items"]
    products = PRODUCTS.fetch(ctx.workspace_id, [line["productId"] for line in items])
    prices = {product.id: int(product.price) for product in products if product.status == "active"}
    if any(prices.get(line["productId"]) != line["price"] for line in items):
        raise ChangedError(
            "A price has changed, or a product is no longer available. Ask the bot again.",
            key="price_changed",
        )
    field_names = {field["name"] for field in proposal.row.card["fields"]}
    filled = {name: value for name, value in values.items() if name in field_names}
    submission = FormSubmission(
        id=arguments["formId"],
        values={**filled, **arguments["values"], "items": items},
        page=dialog.page_url,
    )
    origin = Origin(dialog.id, dialog.client_id, str(proposal.row.id))
    order = submissions.submit(ctx, submission, origin)
    entered_contacts = contacts.contacts_in(filled.values(), proposal.workspace.country)
    _note_contacts(ctx, dialog, entered_contacts)
    return ActionResult(
        state="done", message=order.message, order_id=order.id, redirect_url=order.redirect_url
    )


def _note_contacts(ctx: Context, dialog: DialogRow, entered_contacts: Iterable[str | None]) -> None:
    # An erasure finds the dialog by these contacts.
    named_contacts = contact_lookups.merge_contacts(dialog.named_contacts, entered_contacts)
    if named_contacts != dialog.named_contacts:
        dialog.named_contacts = named_contacts
        ctx.unit.save(dialog)


def _count(ctx: Context, dialog: DialogRow, workspace: WorkspaceRow) -> None:
    counts = Increments(ctx.workspace_id)
    today = clock.local_day(clock.now(), workspace.timezone)
    measures = {bot_metrics.CONFIRMED: 1}
    bot_metrics.count(counts, dialog.agent_id, channel=dialog.channel, day=today, measures=measures)
    counts.stage(ctx.unit)

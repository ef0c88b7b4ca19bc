"""Show members what of a booking is paid and what is left, and let them note the rest as paid.

Keys and tools cannot reach payments, so these operations have no REST route.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.bookings.flows import booking_links, rest_to_pay
from chalicelib.domains.bookings.flows.booking_payments import NotPayableError
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow, EventRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.mails.flows.mail_gate import Forecast, Outlook
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine import jobs
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork

LINKS = Limit("payment-links", "payment links by e-mail per hour", 20, timedelta(hours=1))
PAID_STATUSES = ("confirmed", "completed")  # A payment at the visit can be noted.


class NothingLeftError(ConflictError):
    """Nothing is left to pay at the visit, or the booking does not take place."""

    code = "nothing_left"


class NoMailError(ConflictError):
    """The client has no address, or gets no e-mail: it bounced, or e-mails are off or paused."""

    code = "no_mail"


class BookingMoneyRef(Wire):
    """A booking."""

    booking_id: Id = Field(description="Booking id.")


class PaymentLinkMailed(BookingMoneyRef):
    """A booking whose payment link is mailed."""

    mail: Forecast = Field(description="sent, or waiting for a limit of e-mails.")


class VisitPayment(Wire):
    """A note that a client has paid at the visit. It is no fiscal receipt."""

    amount: int = Field(
        description="Minor units (kopecks); below 0 if earlier notes were withdrawn."
    )
    method: str = Field(description="cash, terminal or withdrawn.")
    at: Timestamp = Field(description="When it was noted.")
    by: str = Field(description="Account that noted it.")

    @classmethod
    def from_record(cls, event: EventRow) -> Self:
        return cls(**event.noted, at=event.at, by=event.by)


class BookingMoney(Wire):
    """What of a booking is paid, and what is left."""

    due: int = Field(description="Minor units (kopecks) to pay in advance now; 0: nothing.")
    paid: int = Field(description="Minor units (kopecks) paid in advance.")
    left: int = Field(description="Minor units (kopecks) to pay at the visit.")
    refund_until: Timestamp | None = Field(
        description="Until when a cancellation by the client is refunded, or null."
    )
    payment_url: str | None = Field(description="URL for the client to pay, or null.")
    notes: list[VisitPayment] = Field(description="Notes of payments at the visit, oldest first.")
    closed_by: str | None = Field(
        description="Who sends the closing receipt of a deposit: service or register; null: no "
        "receipts."
    )


class VisitPaymentNote(BookingMoneyRef):
    """A payment at the visit to note."""

    method: Literal["cash", "terminal", "withdrawn"] = Field(
        description="How the client paid; withdrawn: not, the earlier notes were wrong."
    )
    amount: Annotated[int, Field(ge=1)] | None = optional(
        "In minor units (kopecks); default: what is left."
    )


@operation(
    title="Get what of a booking is paid", role=Role.MEMBER, example={"bookingId": "BOOKING_ID"}
)
def get_booking_money(ctx: Context, args: BookingMoneyRef) -> BookingMoney:
    """Return what of a booking is paid, what is left to pay, and the link that pays it."""
    booking, others, events = _read(ctx.unit, args.booking_id)
    merchant = merchants.find_current(ctx.workspace_id) if rest_to_pay.is_prepaid(booking) else None
    can_pay = booking.is_payable and merchant is not None
    sends_receipts = merchant is not None and merchant.vat_code is not None
    return BookingMoney(
        due=int(booking.due or 0) if booking.is_payable else 0,
        paid=int(booking.paid or 0),
        left=rest_to_pay.left_to_pay(booking, events, others),
        refund_until=rest_to_pay.refund_ends_at(booking),
        payment_url=booking_links.pay_url(ctx.workspace_id, booking) if can_pay else None,
        notes=[VisitPayment.from_record(event) for event in events if event.noted],
        closed_by=merchant.receipts_closed_by if merchant and sends_receipts else None,
    )


@operation(
    title="Note a payment at the visit",
    role=Role.MEMBER,
    errors=(NothingLeftError,),
    example={"bookingId": "VISITED_BOOKING_ID", "method": "cash"},
)
def note_visit_payment(ctx: Context, args: VisitPaymentNote) -> BookingMoneyRef:
    """Note in the history that the client has paid at the visit. It is no fiscal receipt."""
    booking, others, events = _read(ctx.unit, args.booking_id)
    if args.method == "withdrawn":
        amount = -rest_to_pay.noted_amount(events)
    else:
        left = rest_to_pay.left_to_pay(booking, events, others)
        amount = min(args.amount or left, left)
        if not any(each.status in PAID_STATUSES for each in (booking, *others)):
            amount = 0
    if amount == 0:
        raise NothingLeftError("Nothing is left to pay or to withdraw. Open the booking again.")
    # Two members who note the same payment change the same row, so that one note is left.
    ctx.unit.save(booking)
    noted = {"amount": amount, "method": args.method}
    bookings.new_event(ctx.unit, booking, ctx.principal.audit_actor, noted=noted)
    return BookingMoneyRef(booking_id=args.booking_id)


@operation(
    title="Mail the link that pays a booking",
    role=Role.MEMBER,
    limit=LINKS,
    errors=(NotPayableError, NoMailError),
    example={"bookingId": "HELD_BOOKING_ID"},
)
def send_payment_link(ctx: Context, args: BookingMoneyRef) -> PaymentLinkMailed:
    """Mail the link that pays a booking to its client, once more."""
    booking = BOOKINGS.require(ctx.workspace_id, record_id=args.booking_id)
    booking = bookings.first_of(ctx.workspace_id, booking)
    if not booking.is_payable or merchants.find_current(ctx.workspace_id) is None:
        raise NotPayableError(
            "This booking cannot be paid now. Open its page again.", key="not_payable_now"
        )
    service = SERVICES.find(ctx.workspace_id, record_id=booking.service_id)
    has_mails = service is None or service.visitor_mails
    plan = workspaces.get(ctx.workspace_id).plan
    address = booking.client_email if has_mails else None
    outlook = Outlook(address, ctx.workspace_id, plan, "business").forecast(Rows())
    if outlook == "none":
        msg = "No e-mail can be sent to this client. Copy the link and send it another way."
        raise NoMailError(msg)
    payload = {
        "bookingId": booking.id,
        "events": ["booking.created"],
        "previousStatus": None,
        "at": iso(clock.now()),
        "actor": ctx.principal.audit_actor,
    }
    ctx.unit.create(jobs.row(MAIL_CLIENT, ctx.workspace_id, payload))
    ctx.unit.mention(f"booking:{booking.id}")
    return PaymentLinkMailed(booking_id=booking.id, mail=outlook)


def _read(unit: UnitOfWork, booking_id: str) -> tuple[BookingRow, list[BookingRow], list[EventRow]]:
    """Return a booking and its history. Of a visit, those of its first one, and the other ones."""
    booking, events = bookings.read_with_history(unit, booking_id)
    if booking.visit_id is not None and booking.visit_id != booking.id:
        booking, events = bookings.read_with_history(unit, booking.visit_id)
    visit = bookings.visit_of(unit.workspace_id, booking, unit.rows)
    return booking, [each for each in visit if each is not booking], events

"""Let members of a workspace read, link and refund the payments of bookings.

Keys and tools cannot reach payments, so these operations have no REST route.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Annotated, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.ids import first_id_at
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.bookings.flows import booking_payments
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.flows.refunds import RefundTooLargeError
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.receipt_codes import MIN_AMOUNTS
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import FAILED, PaymentRow, RefundRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.gateways.payments import stripe_units
from chalicelib.lib import currencies

MAX_PAYMENTS = 500  # of a page

Percent = Annotated[int, Field(ge=1, le=100)]
RefundMinutes = Annotated[int, Field(ge=0, le=43_200)]


class RefundOut(Wire):
    """A refund of a payment."""

    id: Id = Field(description="Refund id.")
    status: str = Field(description="requested, sent, done or failed.")
    amount: int = Field(description="Amount in minor units (kopecks).")
    by: str = Field(description="Actor: an account id, a visitor or a job.")
    failure: str | None = Field(description="The provider's reason for a failure, or null.")
    reason: str | None = Field(description="cancelled, late, twice, business or null.")
    created_at: Timestamp = Field(description="When it was requested.")
    ended_at: Timestamp | None = Field(description="When it was done or failed, or null.")

    @classmethod
    def from_record(cls, refund: RefundRow) -> Self:
        return cls.from_row(refund.attribute_values, id=refund.id)


class PaymentOut(Wire):
    """A payment of a booking, with amounts in minor units (kopecks)."""

    id: Id = Field(description="Payment id.")
    booking_id: Id = Field(description="Booking id.")
    service_name: str | None = Field(description="Name of the service, or null.")
    client_name: str | None = Field(description="Name of the client, or null.")
    start_at: Timestamp | None = Field(description="Start of the booking, or null.")
    status: str = Field(description="created, pending, succeeded, expired, failed or refused.")
    amount: int = Field(description="Amount.")
    currency: str = Field(description="Currency, such as RUB.")
    price: int | None = Field(description="Price of the booking, or null.")
    is_deposit: bool = Field(description="Whether it is a part of the price.")
    refunded: int = Field(description="Refunds that were requested and have not failed.")
    refundable: int = Field(description="What can still be refunded.")
    disputed: int = Field(description="What the client's bank has taken back.")
    refund_due: bool = Field(
        description="Whether the booking is cancelled and the payment was not refunded."
    )
    is_imported: bool = Field(
        description="Whether it came from another stage, so that only the provider can refund it."
    )
    reason: str | None = Field(description="The provider's reason for a failure, or null.")
    problem: str | None = Field(description="Why the provider's report was refused, or null.")
    is_test: bool = Field(description="Whether it is a test payment, which moves no money.")
    created_at: Timestamp = Field(description="When it was opened.")
    paid_at: Timestamp | None = Field(description="When it was paid, or null.")
    refunds: list[RefundOut] = Field(description="Refunds, oldest first.")

    @classmethod
    def from_record(
        cls,
        payment: PaymentRow,
        booking: BookingRow | None,
        rows: Sequence[RefundRow],
        price: int | None,
    ) -> Self:
        is_cancelled = booking is not None and booking.status == "cancelled"
        return cls.from_row(
            payment.attribute_values,
            id=payment.id,
            status=payment.shown_status,
            booking_id=payment.subject_id,
            service_name=booking and booking.service_name,
            client_name=booking and booking.client_name,
            start_at=booking and booking.starts_at,
            price=price,
            is_deposit=payment.mode == "prepayment",
            refunded=_refunded(payment, rows),
            refundable=payment.refundable,
            refund_due=is_cancelled and payment.kept > 0,
            is_imported=bool(payment.is_imported),
            is_test=bool(payment.is_test),
            refunds=list(map(RefundOut.from_record, rows)),
        )


class PaymentTotals(Wire):
    """Sums of payments, in minor units (kopecks)."""

    paid: int = Field(description="Payments that succeeded.")
    refunded: int = Field(description="Refunds of these payments.")
    count: int = Field(description="Number of payments that succeeded.")


class PaymentsQuery(Wire):
    """Filters of a list of payments."""

    booking_ids: Annotated[list[Id], Field(max_length=100)] | None = optional(
        "Only payments of these bookings."
    )
    day: Day | None = optional("Only payments opened on this day of the workspace's zone.")
    cursor: Id | None = optional("Value of next on the previous page, for older payments.")
    limit: int = Field(default=50, ge=1, le=MAX_PAYMENTS, description="Payments per page.")


class PaymentList(Wire):
    """Payments of bookings, newest first."""

    payments: list[PaymentOut] = Field(description="The payments, newest first.")
    totals: PaymentTotals = Field(description="Sums of the day, or of the returned payments.")
    next: Id | None = Field(description="Value to send as cursor for older payments, or null.")


class PaymentResult(Wire):
    """One payment."""

    payment: PaymentOut = Field(description="The payment.")


class RefundCreate(Wire):
    """A refund to make."""

    id: Id = Field(description="Payment id.")
    amount: Annotated[int, Field(ge=1)] | None = optional(
        "In minor units (kopecks); default: what is left."
    )


class RefundRef(Wire):
    """A refund to repeat."""

    id: Id = Field(description="Payment id.")
    refund_id: Id = Field(description="Refund id.")


class PaymentTermsRef(Wire):
    """A service."""

    id: Id = Field(description="Service id.")


class PaymentTermsSet(PaymentTermsRef):
    """What a client pays in advance, and until when it is refunded."""

    deposit_percent: Percent = Field(description="Part of the price that is paid in advance.")
    refund_until_min: RefundMinutes = Field(
        description="Minutes before the start until which a client's cancellation is refunded."
    )


class PaymentTermsOut(Wire):
    """What a client pays in advance for a service."""

    service_id: Id = Field(description="Service id.")
    deposit_percent: int = Field(description="Part of the price that is paid in advance.")
    refund_until_min: int = Field(
        description="Minutes before the start until which a client's cancellation is refunded."
    )
    takes_payments: bool = Field(description="Whether the workspace has set up payments.")


class PaymentTermsResult(Wire):
    """What a client pays in advance for a service."""

    payment_terms: PaymentTermsOut = Field(description="The terms.")


@operation(role=Role.MEMBER, example={"day": "2027-01-15"})
def list_payments(ctx: Context, args: PaymentsQuery) -> PaymentList:
    """Return payments of bookings with their refunds, newest first."""
    workspace_id, following = ctx.workspace_id, None
    if args.booking_ids is not None:
        bookings = _first_of_visits(workspace_id, BOOKINGS.fetch(workspace_id, args.booking_ids))
        ids = [payment_id for booking in bookings for payment_id in booking.payment_ids or ()]
        rows = payments.fetch(workspace_id, ids)
    else:
        first_id, last_id = _read_bounds(workspace_id, args.day, args.cursor)
        rows = payments.latest(workspace_id, args.limit, first_id=first_id, last_id=last_id)
        following = rows[-1].id if len(rows) == args.limit else None
        rows = [row for row in rows if row.purpose == booking_payments.BOOKING]
        bookings = BOOKINGS.fetch(workspace_id, dict.fromkeys(row.subject_id for row in rows))
    prices = _prices(workspace_id, bookings)
    by_id, by_payment = {booking.id: booking for booking in bookings}, _refunds(workspace_id, rows)
    records = [
        PaymentOut.from_record(
            row, by_id.get(row.subject_id), by_payment[row.id], prices.get(row.subject_id)
        )
        for row in rows
    ]
    if args.day is not None:  # A day has one sum, whatever the page.
        first_id, last_id = _read_bounds(workspace_id, args.day, None)
        rows = payments.latest(workspace_id, None, first_id=first_id, last_id=last_id)
        rows = [row for row in rows if row.purpose == booking_payments.BOOKING]
        by_payment = _refunds(workspace_id, rows)
    # Payments that were imported may have another currency, in which they have no sum with these.
    currency = currency_of(workspace_id)
    paid = [row for row in rows if row.paid_at is not None and row.currency == currency]
    totals = PaymentTotals(
        paid=sum(int(row.amount) for row in paid),
        refunded=sum(_refunded(row, by_payment[row.id]) for row in paid),
        count=len(paid),
    )
    return PaymentList(payments=records, totals=totals, next=following)


@operation(
    title="Refund a payment",
    role=Role.MANAGER,
    errors=(RefundTooLargeError,),
    confirm=confirmed(is_mailed=False),
    example={"id": "PAYMENT_ID", "amount": 100},
)
def refund_payment(ctx: Context, args: RefundCreate) -> PaymentResult:
    """Refund a payment of a booking by a job, in whole or in part."""
    payment = _require(ctx.workspace_id, payment_id=args.id)
    amount = payment.refundable if args.amount is None else args.amount
    if amount % (step := stripe_units.step(payment.currency)):
        message = f"expected a multiple of {step} {currencies.minor_units(payment.currency)}"
        raise ValidationError.of("amount", message=message)
    booking = BOOKINGS.find(ctx.workspace_id, record_id=payment.subject_id)
    is_cancelled = booking is not None and booking.status == "cancelled"
    new_refund = booking_payments.stage_refund(
        ctx.unit,
        payment,
        amount,
        by=ctx.principal.audit_actor,
        reason="cancelled" if is_cancelled else "business",
    )
    ctx.unit.mention(f"booking:{payment.subject_id}")
    return _to_result(ctx.workspace_id, payment, new_refund)


@operation(
    title="Repeat a failed refund",
    role=Role.MANAGER,
    idempotent=True,
    errors=(ConflictError,),
    confirm=confirmed(is_mailed=False),
    example={"id": "PAYMENT_ID", "refundId": "REFUND_ID"},
)
def retry_refund(ctx: Context, args: RefundRef) -> PaymentResult:
    """Send a refund again that the provider has refused."""
    payment = _require(ctx.workspace_id, payment_id=args.id)
    refund = payments.find_refund(ctx.workspace_id, payment_id=args.id, refund_id=args.refund_id)
    if refund is None:
        raise NotFoundError(
            "The payment has no refund with this id. List the payments.", key="refund"
        )
    booking_payments.stage_retry(ctx.unit, payment, refund)
    ctx.unit.mention(f"booking:{payment.subject_id}")
    return _to_result(ctx.workspace_id, payment)


@operation(
    title="Get what is paid in advance",
    rest="GET /api/services/payment-terms",
    scope=Scope.SETTINGS_READ,
    role=Role.MEMBER,
    example={"id": "SERVICE_ID"},
)
def get_payment_terms(ctx: Context, args: PaymentTermsRef) -> PaymentTermsResult:
    """Return what clients pay in advance for a service, and until when it is refunded."""
    service = SERVICES.require(ctx.workspace_id, record_id=args.id)
    return _terms_of(service, has_merchant=merchants.find_current(ctx.workspace_id) is not None)


@operation(
    title="Set what is paid in advance",
    rest="POST /api/services/payment-terms",
    scope=Scope.SETTINGS_WRITE,
    example={"id": "SERVICE_ID", "depositPercent": 30, "refundUntilMin": 1440},
    role=Role.MANAGER,
    idempotent=True,
    confirm=confirmed(),
)
def set_payment_terms(ctx: Context, args: PaymentTermsSet) -> PaymentTermsResult:
    """Set what clients pay in advance for a service, for bookings from now on."""
    service, merchant = (
        SERVICES.require(ctx.workspace_id, record_id=args.id),
        merchants.find_current(ctx.workspace_id),
    )
    least = MIN_AMOUNTS.get(merchant.provider, 0) if merchant else 0
    step = stripe_units.step(currency_of(ctx.workspace_id))
    parts = [
        payment_states.deposit(offer.price, percent=args.deposit_percent, step=step)
        for offer in service.offers()
    ]
    if any(0 < part < least for part in parts):
        problem = f"expected a part of at least {least} kopecks, received less. Raise the part"
        raise ValidationError.of("depositPercent", message=problem)
    service.deposit_percent, service.refund_until_min = args.deposit_percent, args.refund_until_min
    ctx.unit.save(service)
    return _terms_of(service, has_merchant=merchant is not None)


def _terms_of(service: ServiceRow, *, has_merchant: bool) -> PaymentTermsResult:
    terms = PaymentTermsOut(
        service_id=service.id, takes_payments=has_merchant, **service.terms._asdict()
    )
    return PaymentTermsResult(payment_terms=terms)


def _read_bounds(
    workspace_id: str, day: date | None, cursor: str | None
) -> tuple[str | None, str | None]:
    if day is None:
        return None, cursor
    zone = workspaces.get(workspace_id).timezone
    first, last = clock.moment_of(day, zone), clock.moment_of(day, zone, end=True)
    return first_id_at(first), cursor or f"{first_id_at(last)[:10]}~"


def _require(workspace_id: str, *, payment_id: str) -> PaymentRow:
    payment = payments.require(workspace_id, payment_id=payment_id)
    if payment.purpose != booking_payments.BOOKING:
        raise NotFoundError(
            "No payment of a booking has this id. List the payments.", key="payment"
        )
    return payment


def _to_result(workspace_id: str, payment: PaymentRow, *new_refunds: RefundRow) -> PaymentResult:
    booking = BOOKINGS.find(workspace_id, record_id=payment.subject_id)
    rows = [*payments.refunds_of(workspace_id, [payment.id]), *new_refunds]
    price = None if booking is None else booking_payments.price_of(workspace_id, booking)
    return PaymentResult(payment=PaymentOut.from_record(payment, booking, rows, price))


def _first_of_visits(workspace_id: str, found: Sequence[BookingRow]) -> list[BookingRow]:
    # The payment of a visit is with its first booking.
    ids = [booking.visit_id or booking.id for booking in found]
    by_id = {booking.id: booking for booking in found}
    missing = [booking_id for booking_id in dict.fromkeys(ids) if booking_id not in by_id]
    if missing:
        by_id |= {booking.id: booking for booking in BOOKINGS.fetch(workspace_id, missing)}
    return [by_id[booking_id] for booking_id in dict.fromkeys(ids) if booking_id in by_id]


def _prices(workspace_id: str, firsts: Sequence[BookingRow]) -> dict[str, int]:
    # By the first booking of each visit.
    ids = [booking_id for booking in firsts for booking_id in (booking.visit or ())[1:]]
    others = BOOKINGS.fetch(workspace_id, ids) if ids else []
    prices = {booking.id: int(booking.price) for booking in firsts}
    for other in others:
        prices[other.visit_id or other.id] += int(other.price)
    return prices


def _refunds(workspace_id: str, rows: Sequence[PaymentRow]) -> Mapping[str, list[RefundRow]]:
    refunds_by_payment = defaultdict[str, list[RefundRow]](list)
    for row in payments.refunds_of(workspace_id, [row.id for row in rows]):
        refunds_by_payment[row.payment_id].append(row)
    return refunds_by_payment


def _refunded(payment: PaymentRow, refund_rows: Iterable[RefundRow]) -> int:
    requested = sum(int(row.amount) for row in refund_rows if row.status != FAILED)
    return max(requested, int(payment.refunded_at_provider))

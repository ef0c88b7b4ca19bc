"""Let a client pay a booking by its link."""

from datetime import timedelta
from typing import Literal, Self, cast

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Timestamp, Wire, only_if_set
from chalicelib.domains.booking_page.flows.public_booking import PublicBookingOut, parts_of
from chalicelib.domains.booking_page.operations.cancel_and_move import TokenText
from chalicelib.domains.bookings.flows import booking_links, booking_payments, rest_to_pay
from chalicelib.domains.bookings.flows.booking_payments import NotPayableError
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingRow, EventRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Forecast
from chalicelib.domains.payments.flows import opening
from chalicelib.domains.payments.flows.opening import PaymentEndedError, PaymentRefusedError
from chalicelib.domains.payments.store import payments
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails

PAYMENTS = Limit("booking-payments", "payments and checks per minute", 20, timedelta(minutes=1))

PAYING = (Purpose.PAY, *booking_links.MANAGING)  # may open the payment of a booking

State = Literal[
    "payable", "pending", "declined", "paid", "returning", "returned", "failed", "ended"
]


class PayLinkRef(Wire):
    """The token of a link that pays a booking."""

    token: TokenText = Field(description="The end of manageUrl or paymentUrl.")


class PayLinkVisit(PayLinkRef):
    """A visit to the page that pays a booking."""

    is_back: bool = Field(default=False, description="Whether the client returns from paying.")


class PayableBooking(Wire):
    """A booking and its payment, without contacts."""

    booking: PublicBookingOut = Field(description="The booking.")
    workspace_name: str = Field(description="Name of the workspace.")
    state: State = Field(
        description="payable, pending, declined, paid, returning, returned, failed (a refund) or "
        "ended."
    )
    refund: int | None = Field(description="Minor units (kopecks) that are returned, or null.")
    refund_reason: str | None = Field(description="cancelled, late, twice, business or null.")
    due: int = Field(description="Minor units (kopecks) to pay in advance.")
    left: int = Field(description="Minor units (kopecks) to pay at the visit.")
    refund_until: Timestamp | None = Field(
        description="Until when a cancellation by the client is refunded, or null."
    )
    hold_expires_at: Timestamp | None = Field(description="When the unpaid hold expires, or null.")
    mail: Forecast | None = Field(
        description="Whether the mail that confirms a paid booking was or will be sent, waits, or "
        "is not sent; else null."
    )
    ics_url: str = Field(description="URL of its calendar file, which has no contact details.")
    visit: list[PublicBookingOut] | None = only_if_set(
        "The services of a visit in order; else left out."
    )

    @classmethod
    def from_record(cls, workspace_id: str, row: BookingRow, *, is_back: bool) -> Self:
        state, refund = _state(workspace_id, row, is_back=is_back), None
        if state in booking_payments.REFUND_STATES:
            refund = booking_payments.shown_refund(workspace_id, row)
        history = EventRow.newest(workspace_id, record_id=row.id)
        visit = bookings.visit_of(workspace_id, row)
        return cls(
            booking=PublicBookingOut.from_visit(visit),
            visit=parts_of(visit),
            workspace_name=workspaces.get(workspace_id).name,
            state=state,
            refund=refund and refund.amount,
            refund_reason=refund and refund.reason,
            due=int(row.due or 0),
            left=rest_to_pay.left_to_pay(row, history, visit[1:]),
            refund_until=rest_to_pay.refund_ends_at(row),
            hold_expires_at=row.hold_expires_at,
            mail=_mail_of(workspace_id, row, history) if state == "paid" else None,
            ics_url=booking_links.calendar_url(workspace_id, row),
        )


class PaymentPage(Wire):
    """The page of the payment provider."""

    payment_url: str = Field(description="URL of the provider's page, to which the client goes.")


def _workspace(args: PayLinkRef) -> str:
    return booking_links.parse(args.token).workspace_id


@operation(title="Open a payment link", audience=PUBLIC, resolve=_workspace, limit=PAYMENTS)
def get_payable_booking(ctx: Context, args: PayLinkVisit) -> PayableBooking:
    """Return the booking of a link, and ask the provider first if the client returns."""
    row = booking_links.booking_of(args.token, *PAYING)
    if args.is_back and row.paid_by is None:
        booking_payments.settle_latest(ctx.workspace_id, row)
        row = booking_links.booking_of(args.token, *PAYING)
    return PayableBooking.from_record(ctx.workspace_id, row, is_back=args.is_back)


@operation(
    rest="POST /api/public/bookings/pay",
    title="Pay a booking",
    audience=PUBLIC,
    resolve=_workspace,
    limit=PAYMENTS,
    open_world=True,
    idempotent=True,
    example={"token": "PAY_TOKEN"},
    errors=(NotPayableError, PaymentEndedError, PaymentRefusedError),
)
def pay_booking(ctx: Context, args: PayLinkRef) -> PaymentPage:
    """Open the booking's payment at the provider, or return the open one.

    Lead the client to the page before holdExpiresAt. From there, the client returns to a page of
    this service, and the booking is confirmed.
    """
    row = booking_links.booking_of(args.token, *PAYING)
    # The last payment may have been declined or made, which the service has not heard of yet.
    booking_payments.settle_latest(ctx.workspace_id, row)

    def stage(unit: UnitOfWork) -> bytes:
        booking = booking_links.booking_of(args.token, *PAYING)
        return booking_payments.stage_payment(unit, booking).id.encode()

    payment_id = ctx.unit.commit_batch("payment", stage).decode()
    payment = payments.require(ctx.workspace_id, payment_id=payment_id)
    receipt = booking_payments.receipt_of(
        payment, int(payment.amount), workspace_id=ctx.workspace_id
    )
    return PaymentPage(payment_url=opening.open_at_provider(ctx.workspace_id, payment, receipt))


def _mail_of(workspace_id: str, row: BookingRow, history: list[EventRow]) -> Forecast:
    """Return what became of the e-mail that confirms a booking, or what will become of it."""
    mails = [event.mail for event in sorted(history, key=lambda event: event.at) if event.mail]
    states = [mail["state"] for mail in mails if mail["kind"] == "confirmed"]
    address = emails.find_email(row.client_email or "")
    service = SERVICES.find(workspace_id, record_id=row.service_id)
    if states:
        state = states[-1]
    elif address is None or (service is not None and not service.visitor_mails):
        state = "withheld"
    else:
        plan = workspaces.get(workspace_id).plan
        return mail_gate.Outlook(address, workspace_id, plan, "business").forecast(Rows())
    return cast("Forecast", "none" if state == "withheld" else state)


def _state(workspace_id: str, row: BookingRow, *, is_back: bool) -> State:
    if row.is_payable:
        latest_id = row.latest_payment_id
        latest = payments.find(workspace_id, payment_id=latest_id) if latest_id else None
        if latest is not None and latest.status == payments.FAILED:
            return "declined"
        return "pending" if is_back and latest is not None and latest.is_open else "payable"
    payment = booking_payments.payment_of(workspace_id, row)
    if payment is not None and payment.kept > 0 and row.status != "cancelled":
        return "paid"
    refund = booking_payments.shown_refund(workspace_id, row)
    return refund.state if refund is not None else "ended"

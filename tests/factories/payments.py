"""Accounts at the test merchant, and payments that are stored without a provider."""

import json
from datetime import datetime, timedelta
from typing import NamedTuple

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import PLATFORM, VisitorPrincipal
from chalicelib.domains.bookings.flows import booking_payments
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.domains.payments.store.payments import FAILED, SUCCEEDED, PaymentRow, RefundRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.payments import local_merchant
from tests.conftest import call_console, call_operator

MERCHANT = {"provider": "test", "shopId": "shop", "secret": "test_secret_1234"}
AMOUNT = 150_000


class PaymentIds(NamedTuple):
    """Ids of a payment that succeeded, of its refund that failed, and of an open top-up.

    ``former_merchant`` is an account that another one has replaced.
    """

    payment: str
    refund: str
    top_up: str
    former_merchant: str


def set_merchant(workspace_id: str) -> None:
    """Set up payments as the owner of the workspace."""
    owner_id = workspaces.get(workspace_id).owner_id
    call_console(workspace_id, "set_merchant", account_id=owner_id, **MERCHANT)


def take_payments(workspace_id: str) -> MerchantRow:
    """Set up payments of a workspace and of the platform if necessary.

    Returns the account of the workspace. A workspace that the last release has made has none.
    """
    if merchants.find_current(PLATFORM) is None:
        call_operator("set_platform_merchant", **MERCHANT)
    if merchants.find_current(workspace_id) is None:
        set_merchant(workspace_id)
    merchant = merchants.find_current(workspace_id)
    assert merchant
    return merchant


def record_payments(workspace_id: str, account_id: str, booking_id: str) -> PaymentIds:
    """Set up payments of a workspace and of the platform, and store one payment of each."""
    take_payments(workspace_id)
    former = _replace_merchant(workspace_id, account_id)
    merchant = take_payments(workspace_id)
    top_up = call_console(workspace_id, "start_top_up", account_id=account_id, amount=10_000)

    def stage(unit: UnitOfWork) -> tuple[PaymentRow, RefundRow]:
        payment = payments.new(
            workspace_id,
            "booking",
            "RUB",
            subject_id=booking_id,
            merchant_id=merchant.merchant_id,
            amount=AMOUNT,
            description="Haircut",
            mode="full_prepayment",
            return_url="https://example.com/",
            expires_at=clock.now(),
            has_receipt=False,
        )
        payment.status, payment.paid_at, payment.refund_total = SUCCEEDED, clock.now(), 50_000
        payments.stage_new(unit, payment)
        return payment, payments.stage_refund(unit, payment, 50_000, by="job", reason="late")

    payment, refund = run_unit(workspace_id, None, stage)
    run_unit(
        workspace_id, None, lambda unit: payments.stage_refund_change(unit, refund, status=FAILED)
    )
    return PaymentIds(payment.id, refund.id, top_up["id"], former.merchant_id)


def _replace_merchant(workspace_id: str, account_id: str) -> MerchantRow:
    """Let the account of a workspace take the place of another one, and return the other."""
    other = None
    for shop in ("another", MERCHANT["shopId"]):
        body = MERCHANT | {"shopId": shop}
        call_console(workspace_id, "set_merchant", account_id=account_id, **body)
        other = other or merchants.find_current(workspace_id)
    assert other
    return other


def copy_booking(workspace_id: str, booking_id: str, **changes: str | int | datetime) -> str:
    """Store a copy of a booking with other values, and return its id."""
    booking = BOOKINGS.require(workspace_id, record_id=booking_id)
    own = {"pk", "sk", "version", "created_at", "updated_at"}
    values = {name: value for name, value in booking.attribute_values.items() if name not in own}
    copy = BOOKINGS.new(workspace_id, **values | changes)
    run_unit(workspace_id, None, lambda unit: unit.create(copy))
    return str(copy.id)


def payable_token(workspace_id: str, booking_id: str) -> str:
    """Copy a booking as one that has to be paid, and return the token of the link that pays it."""
    take_payments(workspace_id)
    start = clock.now() + timedelta(days=1)
    values = {"status": "pending_payment", "due": 100, "starts_at": start}
    copy_id = copy_booking(workspace_id, booking_id, **values)
    link = call_console(workspace_id, "get_booking_money", bookingId=copy_id)["paymentUrl"]
    return str(link.rpartition("/")[2])


def pay_booking(workspace_id: str, booking_id: str) -> None:
    """Pay a held booking at the test merchant by its link, and settle the payment."""
    set_merchant(workspace_id)
    local_merchant.settle_payment(open_payment(workspace_id, booking_id), "succeeded")
    booking = BOOKINGS.require(workspace_id, record_id=booking_id)
    booking_payments.settle(workspace_id, booking.latest_payment_id or "")


def open_payment(workspace_id: str, booking_id: str) -> str:
    """Open the payment of a held booking by its link, and return its id at the test merchant."""
    link = call_console(workspace_id, "get_booking_money", bookingId=booking_id)["paymentUrl"]
    arguments = {"token": link.rpartition("/")[2]}
    visitor = VisitorPrincipal(visitor="v")
    reply = invoke(REGISTRY["pay_booking"], visitor, lambda: arguments, request_id="r")
    return str(json.loads(reply.body)["data"]["paymentUrl"].rpartition("/")[2])

"""The page of the test merchant, on which a tester chooses what becomes of a payment."""

from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.payments.flows import merchant_pages, notices
from chalicelib.domains.payments.flows.merchant_pages import Rows
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.gateways.payments.local_merchant import settle_payment
from chalicelib.lib.currencies import RUB

PAGE_VIEWS = Limit("test-payments", "calls of test payments per minute", 60, timedelta(minutes=1))


class MerchantPaymentRef(Wire):
    """Reference to a payment at the test merchant."""

    id: Annotated[str, StringConstraints(max_length=100)] = Field(
        description="Last part of the URL of its page."
    )


class MerchantPayment(Wire):
    """A payment at the test merchant."""

    amount: int = Field(description="Amount in minor units.")
    currency: str = Field(description="Currency (ISO 4217).")
    purpose: str = Field(description="What is paid.")
    status: str = Field(description="pending, succeeded or failed.")
    refunded: int = Field(description="Amount that was refunded.")
    refunds_fail: bool = Field(description="Whether further refunds fail.")
    return_url: str = Field(description="Where the client continues.")

    @classmethod
    def from_details(cls, details: dict[str, Any]) -> Self:
        return cls.from_row(
            {"currency": RUB, **details},
            refunded=sum(details["refunds"].values()),
            refunds_fail=details.get("refunds_fail", False),
        )


class MerchantPaymentSettling(MerchantPaymentRef):
    """What becomes of a payment at the test merchant."""

    outcome: Literal["paid", "declined", "unchanged"] = Field(
        description="paid, declined, or unchanged."
    )
    refunds_fail: bool = Field(description="Whether refunds of the payment fail from now on.")


def _workspace(args: MerchantPaymentRef) -> str:
    return merchant_pages.place_of(args.id).workspace_id


@operation(audience=PUBLIC, reads=True, resolve=_workspace, limit=PAGE_VIEWS, while_halted=True)
def get_merchant_payment(ctx: Context, args: MerchantPaymentRef) -> MerchantPayment:
    """Return a payment at the test merchant of a test workspace."""
    return MerchantPayment.from_details(_details(ctx.workspace_id, args))


@operation(
    audience=PUBLIC,
    resolve=_workspace,
    limit=PAGE_VIEWS,
    idempotent=True,
    audit=False,
    while_halted=True,
)
def settle_merchant_payment(ctx: Context, args: MerchantPaymentSettling) -> MerchantPayment:
    """Pay or decline a payment at the test merchant, which tells the service of it."""
    rows, payment_id = Rows(ctx.workspace_id), merchant_pages.place_of(args.id).payment_id
    _details(ctx.workspace_id, args)
    if args.outcome != "unchanged":
        status = "succeeded" if args.outcome == "paid" else "failed"
        settle_payment(payment_id, status, store=rows)  # type: ignore[arg-type]  # one of both
    with rows.change(payment_id) as changed:
        changed["refunds_fail"] = args.refunds_fail
    for merchant in merchants.read_all(ctx.workspace_id):
        place = payments.find_by_provider_id(merchant.merchant_id, provider_id=payment_id)
        if place is not None:
            payment = payments.require(ctx.workspace_id, payment_id=place.payment_id)
            notices.ask_soon(ctx.workspace_id, payment)
    return MerchantPayment.from_details(_details(ctx.workspace_id, args))


def _details(workspace_id: str, args: MerchantPaymentRef) -> dict[str, Any]:
    details = Rows(workspace_id).read(merchant_pages.place_of(args.id).payment_id)
    if details is None:
        raise merchant_pages.not_found()
    return details

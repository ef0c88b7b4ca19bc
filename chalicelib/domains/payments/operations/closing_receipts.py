"""Choose who sends the closing receipt of what clients have paid in advance."""

from typing import Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.payments.store import merchants


class ClosingReceipts(Wire):
    """Who sends the closing receipt of a payment in advance when the booking has taken place."""

    closed_by: Literal["service", "register"] = Field(
        description="service: this service, by the provider; register: the business's own register."
    )


@operation(
    title="Choose who closes receipts",
    role=Role.OWNER,
    idempotent=True,
    example={"closedBy": "register"},
)
def set_closing_receipts(ctx: Context, args: ClosingReceipts) -> ClosingReceipts:
    """Choose who sends the closing receipts of payments in advance, from now on."""
    merchant = merchants.find_current(ctx.workspace_id)
    if merchant is None:
        raise NotFoundError(
            "Payments are not set up. Enter the account in the payment settings.",
            key="payment_account",
        )
    merchant.receipts_closed_by = args.closed_by
    ctx.unit.save(merchant)
    ctx.unit.mention(f"workspace:{ctx.workspace_id}")
    return args

"""Receive the notifications of payment providers, which are a hint to ask, and never a proof."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.payments.flows import accounts, notices
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.gateways.payments import ProviderError

HOOKS = Limit(
    "payment-hooks", "payment notifications per minute", 600, timedelta(minutes=1), fails_open=True
)
MAX_BODY = 65_536  # characters of a notification; real ones have about 2,000


class PaymentHook(Wire):
    """A notification of a payment provider."""

    merchant_id: Annotated[str, StringConstraints(max_length=64)] = Field(
        description="Last part of the notification's address."
    )
    body: Annotated[str, StringConstraints(max_length=MAX_BODY)] = Field(
        description="Body of the notification."
    )


class HookReceived(Wire):
    """Whether a notification is about a known payment or refund."""

    is_known: bool = Field(description="Whether the provider will be asked.")


def _workspace(args: PaymentHook) -> str:
    workspace_id = merchants.workspace_of_hook(args.merchant_id)
    if workspace_id is None:
        raise NotFoundError(
            "This address takes no notifications. Copy it from the settings.", key="address"
        )
    return workspace_id


@operation(
    title="Receive a payment notification",
    audience=PUBLIC,
    resolve=_workspace,
    limit=HOOKS,
    idempotent=True,
    audit=False,
    while_halted=True,
)
def receive_payment_hook(ctx: Context, args: PaymentHook) -> HookReceived:
    """Make the jobs due that ask the provider for what a notification names.

    The provider waits for the response, so it is not asked here.
    """
    merchant = merchants.find(ctx.workspace_id, merchant_id=args.merchant_id)
    if merchant is None:
        return HookReceived(is_known=False)
    try:
        provider = accounts.provider_of(ctx.workspace_id, merchant)
    except ProviderError:
        return HookReceived(is_known=False)  # The cause is logged, and the payment's job follows.
    # Anyone can send a notification.
    named = provider.read_hook(args.body.encode())
    known_id = named and payments.find_by_provider_id(
        args.merchant_id, provider_id=named.payment_id
    )
    if named is None or known_id is None:
        return HookReceived(is_known=False)
    workspace_id = known_id.workspace_id
    payment = payments.require(workspace_id, payment_id=known_id.payment_id)
    notices.ask_soon(workspace_id, payment, refund_id=named.refund_id)
    return HookReceived(is_known=True)

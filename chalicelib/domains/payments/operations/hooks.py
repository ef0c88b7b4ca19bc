"""Receive the notifications of payment providers.

Anyone can send a notification, so it is a hint to ask the provider, and never a proof.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import JOB_HANDLERS, Postponed
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import DONE, SENT
from chalicelib.engine import jobs
from chalicelib.gateways.payments import ProviderError

HOOKS = Limit(
    "payment-hooks", "payment notifications per minute", 600, timedelta(minutes=1), fails_open=True
)
MAX_BODY = 65_536
"""Maximum characters of a notification. Real ones have about 2,000."""


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

    is_known: bool = Field(description="Whether the provider was asked.")


def _workspace(args: PaymentHook) -> str:
    workspace_id = merchants.workspace_of_hook(args.merchant_id)
    if workspace_id is None:
        raise NotFoundError("This address takes no notifications. Copy it from the settings.")
    return workspace_id


@operation(
    title="Receive a payment notification",
    audience=PUBLIC,
    resolve=_workspace,
    limit=HOOKS,
    idempotent=True,
    audit=False,
)
def receive_payment_hook(ctx: Context, args: PaymentHook) -> HookReceived:
    """Ask the provider for the state of the payment or the refund that a notification names."""
    merchant = merchants.find(ctx.workspace_id, args.merchant_id)
    if merchant is None:
        return HookReceived(is_known=False)
    try:
        provider = accounts.provider_of(ctx.workspace_id, merchant)
    except ProviderError:
        return HookReceived(is_known=False)  # The cause is logged, and the payment's job follows.
    provider_id = provider.object_id_of_hook(args.body.encode())
    known_id = provider_id and payments.find_by_provider_id(args.merchant_id, provider_id)
    if not known_id:
        return HookReceived(is_known=False)
    payment = payments.require(known_id.workspace_id, known_id.payment_id)
    job = payments.payment_job(known_id.workspace_id, payment)
    try:
        JOB_HANDLERS[job.kind](job)
    except Postponed as later:
        # An expired payment has no job any more. An open one has a job with the same key.
        jobs.schedule(payments.payment_job(known_id.workspace_id, payment, later.due_at))
    # A notification about a refund names the payment.
    for refund in payments.refunds_of(known_id.workspace_id, [payment.id]):
        if refund.status in {SENT, DONE}:
            job = payments.refund_job(known_id.workspace_id, payment, refund)
            with suppress(Postponed):  # The same job is waiting already.
                JOB_HANDLERS[job.kind](job)
    return HookReceived(is_known=True)

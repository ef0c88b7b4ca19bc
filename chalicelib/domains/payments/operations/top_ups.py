"""Top up the balance of the session's account."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import InTestWorkspaceError, NotFoundError, UpstreamFailedError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.flows import crediting, opening
from chalicelib.domains.payments.flows.opening import PaymentEndedError, PaymentRefusedError
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.gateways.payments import ProviderError, UnknownOutcomeError

MIN_TOP_UP, MAX_TOP_UP = 10_000, 10_000_000  # kopecks
# Payments that an account may open at the provider, paid or not.
TOP_UPS = Limit("top-ups", "top-ups opened a day", 20, timedelta(days=1))
BALANCE_PATH = "/console/w/{workspace}/balance"  # This page waits for the payment.

Amount = Annotated[int, Field(ge=MIN_TOP_UP, le=MAX_TOP_UP)]


class TopUp(Wire):
    """An amount to add to the balance."""

    amount: Amount = Field(description="Amount in kopecks.")


class TopUpOpened(Wire):
    """A payment that the provider waits for."""

    id: Id = Field(description="Payment id.")
    url: str = Field(description="URL of the provider's page.")


class TopUpRef(Wire):
    """Id of a top-up."""

    id: Id = Field(description="Payment id.")


class TopUpOut(TopUpRef):
    """A payment that tops up a balance."""

    status: str = Field(description="created, pending, succeeded, expired, failed or refused.")
    amount: int = Field(description="Amount in kopecks.")
    created_at: Timestamp = Field(description="When it was opened.")
    paid_at: Timestamp | None = Field(description="When the money was credited, or null.")

    @classmethod
    def from_record(cls, payment: PaymentRow) -> Self:
        return cls.from_row(payment.attribute_values, id=payment.id, status=payment.shown_status)


class TopUpResult(Wire):
    """One top-up."""

    top_up: TopUpOut = Field(description="The top-up.")


@operation(
    title="Top up the balance",
    role=Role.OWNER,
    limit=TOP_UPS,
    open_world=True,
    errors=(PaymentEndedError, PaymentRefusedError),
    example={"amount": 10000},
)
def start_top_up(ctx: Context, args: TopUp) -> TopUpOpened:
    """Open a payment to the platform that is credited to the session's account."""
    if is_test(ctx.workspace_id):
        msg = "A test workspace costs nothing. Top up the balance in another workspace."
        raise InTestWorkspaceError(msg, key="top_up")
    slug = workspaces.get(ctx.workspace_id).slug
    page_url = settings().public_url + BALANCE_PATH.format(workspace=slug)
    batch = ctx.unit.commit_batch(
        "payment",
        lambda unit: crediting.stage(
            unit, ctx.principal.account_id, args.amount, page_url
        ).id.encode(),
    )
    payment = payments.require(ctx.workspace_id, payment_id=batch.decode())
    receipt = crediting.receipt(ctx.workspace_id, payment)
    url = opening.open_at_provider(ctx.workspace_id, payment, receipt)
    return TopUpOpened(id=payment.id, url=url)


@operation(title="Read a top-up", role=Role.OWNER, reads=True, example={"id": "TOP_UP_ID"})
def get_top_up(ctx: Context, args: TopUpRef) -> TopUpResult:
    """Return a top-up of the session's account, after a question to the provider if it is open."""
    payment = payments.require(ctx.workspace_id, payment_id=args.id)
    if (payment.purpose, payment.subject_id) != (crediting.TOP_UP, ctx.principal.account_id):
        raise NotFoundError("Your account has no top-up with this id.", key="top_up")
    if payment.is_open:
        try:
            payment = crediting.settle(ctx.workspace_id, payment.id)
        except (ProviderError, UnknownOutcomeError) as error:
            msg = "The payment provider did not respond. Try again in a minute."
            raise UpstreamFailedError(msg, key="payment_provider") from error
    return TopUpResult(top_up=TopUpOut.from_record(payment))

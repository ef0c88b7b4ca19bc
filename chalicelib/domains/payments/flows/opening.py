"""Open a payment at the provider, once."""

import logging

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, UpstreamFailedError
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import (
    CREATED,
    FAILED,
    PaymentRow,
    ProviderIdTakenError,
)
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.payments import (
    IDEMPOTENCY_HOURS,
    Created,
    PaymentProvider,
    PaymentRequest,
    ProviderError,
    Receipt,
    UnknownOutcomeError,
)

log = logging.getLogger(__name__)


class PaymentRefusedError(ConflictError):
    """The payment provider does not accept the payment, so contact the business."""

    code = "payment_refused"


class PaymentEndedError(ConflictError):
    """The payment ended before the provider had created it, so open the page again."""

    code = "payment_ended"


def open_at_provider(workspace_id: str, payment: PaymentRow, receipt: Receipt | None) -> str:
    """Return the URL of the provider's page for a payment, which is created if necessary.

    After UpstreamFailedError and UnavailableError, the call can be repeated. Raises
    PaymentRefusedError, or PaymentEndedError if the payment ended before the provider had it.
    """
    if payment.url is not None:
        return payment.url
    try:
        provider = accounts.provider_of_payment(workspace_id, payment)
        new_page = _create(provider, payment, receipt)
    except ProviderError as error:
        _fail(workspace_id, payment, error.reason)
        msg = "The payment provider did not accept the payment. Contact the business."
        raise PaymentRefusedError(msg) from error
    except UnknownOutcomeError as error:
        msg = "The payment provider did not respond. Try again in a minute."
        raise UpstreamFailedError(msg, key="payment_provider") from error

    def stage(unit: UnitOfWork) -> PaymentRow:
        row = payments.require(workspace_id, payment_id=payment.id)
        if row.status == CREATED:
            payments.stage_created(unit, row, new_page.provider_id, url=new_page.url)
            _stage_merchant(unit, row)
        return row

    # The row is as it was read, so a status other than ``created`` is final or another request's.
    try:
        row = run_unit(workspace_id, _event(payment), stage)
    except ProviderIdTakenError as error:
        _fail(workspace_id, payment, "The provider named another payment.")
        msg = "The payment provider did not accept the payment. Contact the business."
        raise PaymentRefusedError(msg) from error
    if row.status != CREATED and row.url is None:
        raise PaymentEndedError("This payment has ended. Open the page again.")
    return row.url or new_page.url


def _stage_merchant(unit: UnitOfWork, payment: PaymentRow) -> None:
    owner = accounts.merchant_owner(unit.workspace_id, purpose=payment.purpose)
    merchant = accounts.merchant_of(unit.workspace_id, payment)
    if merchant.refused_at is not None:
        merchants.stage_refusal(unit, merchant, None)
    elif merchant.returns_read_at is None:
        # An account that was set up before returned payments were listed gets its first list.
        unit.save(merchants.returns_job(owner, merchant_id=merchant.merchant_id))
        merchants.stage_returns_read(unit, merchant, clock.now())


def _create(provider: PaymentProvider, payment: PaymentRow, receipt: Receipt | None) -> Created:
    if not payments.is_repeatable(payment.created_at, IDEMPOTENCY_HOURS):
        # The provider has forgotten the key, and would create a second payment.
        msg = "The payment was not opened in time."
        raise ProviderError(msg)
    return provider.create(
        PaymentRequest(
            amount=int(payment.amount),
            currency=payment.currency,
            purpose=payment.description,
            return_url=payment.return_url,
            # The payment is stored first, and its id is the key. So a request whose result is
            # unknown is repeated, and returns the same page of the provider.
            idempotency_key=payment.id,
            receipt=receipt,
            expires_at=payment.expires_at if payment.expires_at > clock.now() else None,
            reference=payment.reference,
        )
    )


def _event(payment: PaymentRow) -> AuditEvent:
    return AuditEvent.by_job(PAYMENT_JOBS[payment.purpose])


def _fail(workspace_id: str, payment: PaymentRow, reason: str) -> None:
    def stage(unit: UnitOfWork) -> None:
        row = payments.require(workspace_id, payment_id=payment.id)
        if row.status == CREATED:
            payments.stage_change(unit, row, status=FAILED, reason=reason)
            _stage_message(unit, row)

    run_unit(workspace_id, _event(payment), stage)


def _stage_message(unit: UnitOfWork, payment: PaymentRow) -> None:
    """Stage the message about the first refusal of an account, until it takes a payment again."""
    owner = accounts.merchant_owner(unit.workspace_id, purpose=payment.purpose)
    merchant = merchants.find(owner, merchant_id=payment.merchant_id)
    if merchant is None or merchant.refused_at is not None:
        return
    merchants.stage_refusal(unit, merchant, clock.now())
    if owner == unit.workspace_id:
        unit.outbox.emit(Event("payment.refused", payment.id))
    else:  # The operator set up the account.
        log.error("a payment provider refuses top-ups", extra={"payment": payment.id})

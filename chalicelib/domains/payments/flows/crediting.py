"""Credit the balance of an account with a payment to the platform."""

import logging
from typing import Final, cast

from chalicelib.core import clock
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.identity.store import accounts as identity_accounts
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.flows import accounts, settling
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways.payments import PaymentMode, PaymentState, Receipt
from chalicelib.lib import localized
from chalicelib.lib.currencies import RUB
from chalicelib.lib.localized import Language

TOP_UP: Final = "top_up"
# Name of the payment on the provider's page and on the receipt.
DESCRIPTIONS: dict[Language, str] = {
    "en": "Balance top-up",
    "ru": "Пополнение баланса",
}

log = logging.getLogger(__name__)


def stage(unit: UnitOfWork, account_id: str, amount: int, page_url: str) -> PaymentRow:
    """Stage a payment that tops up an account's balance, or raise NotConfiguredError.

    The provider leads back to ``page_url``, with the id of the payment.
    """
    merchant = merchants.find_current(PLATFORM)
    if merchant is None:
        msg = "Online payment is not set up. Contact the operator of the service."
        raise NotConfiguredError(msg, key="payments")
    country = workspaces.get(unit.workspace_id).country
    payment = payments.new(
        unit.workspace_id,
        TOP_UP,
        RUB,
        subject_id=account_id,
        merchant_id=merchant.merchant_id,
        amount=amount,
        description=DESCRIPTIONS[localized.language_of_country(country)],
        mode="advance",
        expires_at=clock.now() + payment_states.TOP_UP_OPEN_FOR,
        has_receipt=merchant.vat_code is not None,
    )
    payment.return_url = f"{page_url}?payment={payment.id}"
    payments.stage_new(unit, payment)
    return payment


def receipt(workspace_id: str, payment: PaymentRow) -> Receipt | None:
    """Return the receipt of a top-up, which names the address of the account, or None."""
    if not payment.has_receipt:
        return None
    merchant = accounts.merchant_of(workspace_id, payment)
    email = identity_accounts.get(payment.subject_id).email
    amount = int(payment.amount)
    mode = cast("PaymentMode", payment.mode)
    return accounts.receipt_of(
        merchant, email, phone=None, description=payment.description, amount=amount, mode=mode
    )


def settle(workspace_id: str, payment_id: str) -> PaymentRow:
    """Ask for the state of a top-up, and credit the balance. Raises as ``settling.settle``."""
    return settling.settle(
        workspace_id, payment_id=payment_id, stage_success=_stage_credit, stage_return=_stage_return
    )


@job_handler(PAYMENT_JOBS[TOP_UP])
def follow_top_up(job: Job) -> None:
    """Ask for the state of a top-up until it is final."""
    settling.follow(job, settle)


def _stage_credit(unit: UnitOfWork, payment: PaymentRow) -> int:
    wallet, amount = ledger.wallet(payment.subject_id), int(payment.amount)
    ledger.post(unit, wallet, ledger.TOPUP, amount=amount, request_id=payment.id)
    unit.mention(f"account:{payment.subject_id}")
    return 0


def _stage_return(unit: UnitOfWork, payment: PaymentRow, state: PaymentState) -> int:
    """Take from the balance what was refunded or disputed at the provider, and return the sum.

    If less was than before, it comes back to the balance: a dispute was won or a refund failed.
    """
    total = min(int(payment.amount), state.refunded + state.disputed)
    amount = total - int(payment.returned)
    if amount == 0:  # A dispute became a refund.
        return total
    wallet = ledger.wallet(payment.subject_id)
    ledger.post(unit, wallet, ledger.TOPUP_RETURNED, amount=-amount, request_id=payment.id)
    unit.mention(f"account:{payment.subject_id}")
    unit.outbox.emit(Event("balance.returned", payment.subject_id))
    log.error(  # The operator decides what to do about a dispute.
        "a top-up was returned at the provider",
        extra={"payment": payment.id, "account": payment.subject_id, "kopecks": amount},
    )
    return total

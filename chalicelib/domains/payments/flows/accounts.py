"""Reach a workspace's account at its payment provider."""

import logging

from chalicelib.core.principals import PLATFORM
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.gateways import payments, sealing
from chalicelib.gateways.payments import (
    Merchant,
    PaymentMode,
    PaymentProvider,
    ProviderError,
    Receipt,
)
from chalicelib.gateways.sealing import UnsealError

log = logging.getLogger(__name__)


def seal_secret(workspace_id: str, merchant_id: str, secret: str) -> str:
    """Return the encrypted secret of an account.

    Raises the errors of ``sealing.seal``.
    """
    return sealing.seal(secret, _purpose(workspace_id, merchant_id))


def provider_of(workspace_id: str, merchant: MerchantRow) -> PaymentProvider:
    """Return the provider of an account.

    Raises:
        ProviderError: the secret cannot be read, or this stage does not have the provider.
        NotConfiguredError: the master key is missing.
        UnavailableError: the master key cannot be read.
    """
    if merchant.is_imported:
        raise ProviderError("This payment was made before the workspace was moved to this stage.")
    purpose = _purpose(workspace_id, merchant.merchant_id)
    try:
        secret = sealing.unseal(merchant.sealed_secret, purpose)
    except UnsealError:
        # Another master key is a fault of the stage, which an operator must see.
        log.exception("the secret of a merchant cannot be read", extra={"workspace": workspace_id})
        msg = "The secret cannot be read. Enter it again in the payment settings."
        raise ProviderError(msg) from None
    return payments.provider_for(Merchant(merchant.provider, merchant.shop_id, secret))  # type: ignore[arg-type]  # a stored name


def merchant_of(workspace_id: str, payment: PaymentRow) -> MerchantRow:
    """Return the account of a payment. A payment to the platform has an account of the platform.

    Raises:
        ProviderError: the account does not exist any more.
    """
    merchant = merchants.find(merchant_owner(workspace_id, payment.purpose), payment.merchant_id)
    if merchant is None:
        msg = "The account of this payment was deleted."
        raise ProviderError(msg)
    return merchant


def provider_of_payment(workspace_id: str, payment: PaymentRow) -> PaymentProvider:
    """Return the provider of a payment.

    Raises the errors of ``provider_of``.
    """
    merchant = merchant_of(workspace_id, payment)
    return provider_of(merchant_owner(workspace_id, payment.purpose), merchant)


def merchant_owner(workspace_id: str, purpose: str) -> str:
    """Return the tenant whose account takes a payment."""
    return PLATFORM if purpose == "top_up" else workspace_id


def receipt_of(  # noqa: PLR0913, PLR0917  the parts of a receipt
    merchant: MerchantRow,
    email: str | None,
    phone: str | None,
    description: str,
    amount: int,
    mode: PaymentMode,
) -> Receipt | None:
    """Return a receipt, or None if the account sends no receipts or the client has no contact."""
    if merchant.vat_code is None or not (email or phone):
        return None
    codes = (merchant.vat_code, merchant.tax_system_code)
    return Receipt(email, phone, description, amount, *codes, mode)


def _purpose(workspace_id: str, merchant_id: str) -> str:
    return f"merchant\0{workspace_id}\0{merchant_id}"

"""Reach a workspace's account at its payment provider."""

import logging
from contextlib import suppress

from chalicelib.core.principals import PLATFORM
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.payments.flows import merchant_pages
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.gateways import payments as gateway
from chalicelib.gateways import sealing
from chalicelib.gateways.payments import (
    Account,
    Merchant,
    PaymentMode,
    PaymentProvider,
    PaymentUnknownError,
    ProviderError,
    Receipt,
)
from chalicelib.gateways.payments.local_merchant import LocalMerchant
from chalicelib.gateways.sealing import UnsealError

log = logging.getLogger(__name__)


def seal_secret(workspace_id: str, *, merchant_id: str, secret: str) -> str:
    """Return the encrypted secret of an account. Raises the errors of ``sealing.seal``."""
    return sealing.seal(secret, purpose=_purpose(workspace_id, merchant_id=merchant_id))


def provider_of(workspace_id: str, merchant: MerchantRow) -> PaymentProvider:
    """Return the provider of an account.

    Raises:
        ProviderError: the secret cannot be read, or this stage does not have the provider.
        NotConfiguredError: the master key is missing.
        UnavailableError: the master key cannot be read.
    """
    if merchant.is_imported:
        raise ProviderError("This payment was made before the workspace was moved to this stage.")
    if merchant.secret_removed_at is not None:
        msg = "The secret of this former account was removed. Do this at the provider."
        raise ProviderError(msg)
    purpose = _purpose(workspace_id, merchant_id=merchant.merchant_id)
    try:
        secret = sealing.unseal(merchant.sealed_secret, purpose=purpose)
    except UnsealError:
        # Another master key is a fault of the stage, which an operator must see.
        log.exception("the secret of a merchant cannot be read", extra={"workspace": workspace_id})
        msg = "The secret cannot be read. Enter it again in the payment settings."
        raise ProviderError(msg) from None
    return provider_at(
        workspace_id, provider=merchant.provider, shop_id=merchant.shop_id, secret=secret
    )


def provider_at(workspace_id: str, *, provider: str, shop_id: str, secret: str) -> PaymentProvider:
    """Return the provider of an account, stored or not, or raise ProviderError if there is none.

    A test workspace has the test merchant only, and its payments are rows.
    """
    if is_test(workspace_id):
        if provider != "test":
            raise ProviderError("A test workspace takes payments at the provider test only.")
        merchant = Merchant("test", shop_id, secret)
        return LocalMerchant(merchant, merchant_pages.Rows(workspace_id))
    return gateway.provider_for(Merchant(provider, shop_id, secret))  # type: ignore[arg-type]  # a stored name


def find_same(
    workspace_id: str, client: PaymentProvider, account: Account, *, provider: str, shop_id: str
) -> MerchantRow | None:
    """Return the stored account, current or former, that a new key belongs to, or None.

    Raises ProviderError if the key may not read payments, or UnknownOutcomeError.
    """
    # Stripe's restricted keys cannot read the id of their account. Then a payment of a stored
    # account is read with the new key: an account has its own payments only, of one mode. Without a
    # payment, the account counts as a new one.
    for row in merchants.read_all(workspace_id):
        if row.is_imported or (row.provider, row.shop_id) != (provider, shop_id):
            continue
        if row.is_test is not None and row.is_test != account.is_test:
            continue
        if shop_id or (row.account_id and row.account_id == account.account_id):
            return row
        if row.account_id and account.account_id:
            continue
        payment = payments.known_payment(row.merchant_id)
        if payment is not None and payment.provider_id is not None:
            with suppress(PaymentUnknownError):
                client.state(payment.provider_id)
                return row
    return None


def merchant_of(workspace_id: str, payment: PaymentRow) -> MerchantRow:
    """Return the account of a payment, or raise ProviderError if it does not exist any more."""
    merchant = merchants.find(
        merchant_owner(workspace_id, purpose=payment.purpose), merchant_id=payment.merchant_id
    )
    if merchant is None:
        msg = "The account of this payment was deleted."
        raise ProviderError(msg)
    return merchant


def provider_of_payment(workspace_id: str, payment: PaymentRow) -> PaymentProvider:
    """Return the provider of a payment. Raises the errors of ``provider_of``."""
    merchant = merchant_of(workspace_id, payment)
    return provider_of(merchant_owner(workspace_id, purpose=payment.purpose), merchant)


def merchant_owner(workspace_id: str, *, purpose: str) -> str:
    """Return the tenant whose account takes a payment."""
    return PLATFORM if purpose == "top_up" else workspace_id


def receipt_of(  # noqa: PLR0913  the parts of a receipt
    merchant: MerchantRow,
    email: str | None,
    *,
    phone: str | None,
    description: str,
    amount: int,
    mode: PaymentMode,
) -> Receipt | None:
    """Return a receipt, or None if the account sends no receipts or the client has no contact."""
    if merchant.vat_code is None or not (email or phone):
        return None
    codes = (merchant.vat_code, merchant.tax_system_code)
    closing_code = merchant.closing_vat_code
    return Receipt(email, phone, description, amount, *codes, mode, closing_code)


def needs_email(workspace_id: str) -> bool:
    """Whether a payment to a workspace needs the client's e-mail address."""
    merchant = merchants.find_current(workspace_id)
    # YooKassa sends receipts by e-mail only.
    return merchant is not None and merchant.provider == "yookassa" and bool(merchant.vat_code)


def _purpose(workspace_id: str, *, merchant_id: str) -> str:
    return f"merchant\0{workspace_id}\0{merchant_id}"

"""Payment providers with hosted pages, behind one protocol. Amounts are in minor units (kopecks).

Each adapter converts them to the units of its provider.

A card number never reaches the service. The client pays on a page of the provider, and the service
asks the provider for the state.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

# A request is repeated with its key in this time. Both providers keep a key for 24 hours.
IDEMPOTENCY_HOURS = 23

# Providers that take rubles only.
TAKES_RUBLES_ONLY = frozenset({"yookassa"})
# The test merchant exists in a local stack only.
ProviderName = Literal["yookassa", "stripe", "test"]
# Kind of settlement on a receipt: whole price, deposit, top-up of a balance, closing receipt.
PaymentMode = Literal["full_prepayment", "prepayment", "advance", "full_payment"]
# A payment that expired or failed may succeed later.
PaymentStatus = Literal["pending", "succeeded", "expired", "failed"]
RefundStatus = Literal["pending", "done", "failed"]


class Merchant(NamedTuple):
    """Credentials of an account at a provider."""

    provider: ProviderName
    shop_id: str  # of YooKassa; Stripe has none, because its key names the account
    secret: str


class Account(NamedTuple):
    """What a provider says of the account that a key belongs to."""

    account_id: str | None  # None if the key may not read it, as a restricted key of Stripe
    is_test: bool  # Payments move no money.
    has_receipts: bool = False  # Each payment needs a receipt.


class Receipt(NamedTuple):
    """A receipt of one service under the Russian law 54-FZ, for an ``email`` or a ``phone``.

    ``vat_code``, ``closing_vat_code`` of the closing receipt and ``tax_system_code`` are the
    provider's codes, which the owner chooses.
    """

    email: str | None
    phone: str | None
    description: str
    amount: int
    vat_code: str
    tax_system_code: str | None
    payment_mode: PaymentMode
    closing_vat_code: str | None = None

    @property
    def rate_code(self) -> str:
        """Code of the VAT rate, which a closing receipt may have of its own."""
        is_closing = self.payment_mode == "full_payment"
        return (self.closing_vat_code if is_closing else None) or self.vat_code


class PaymentRequest(NamedTuple):
    """A payment to create."""

    amount: int
    currency: str
    purpose: str  # The client sees it on the provider's page.
    return_url: str
    idempotency_key: str
    receipt: Receipt | None
    expires_at: datetime | None  # if the provider can end a payment at a time of our choice
    # The id of our payment, which the provider repeats in each response about it.
    reference: str | None = None


class Created(NamedTuple):
    """A new payment with the URL of the page where the client pays."""

    provider_id: str
    url: str


class PaymentState(NamedTuple):
    """The provider's state of a payment.

    Compare ``amount``, ``currency``, ``account`` and ``reference`` with the stored payment.
    """

    status: PaymentStatus
    amount: int
    currency: str
    account: str | None  # Only some providers name it.
    refunded: int  # sum of the refunds that the provider carried out
    payment_ref: str | None  # Stripe's payment intent, to which refunds refer
    paid_at: datetime | None = None  # by the provider's clock
    reference: str | None = None
    is_test: bool | None = None  # No money moves.
    disputed: int = 0  # what the client's bank has taken back


class RefundRequest(NamedTuple):
    """A refund of a part of a payment, named as in ``Created`` and ``PaymentState``."""

    provider_id: str
    payment_ref: str | None
    amount: int
    currency: str
    idempotency_key: str
    receipt: Receipt | None


class RefundState(NamedTuple):
    """The provider's state of a refund."""

    provider_id: str
    status: RefundStatus
    amount: int
    created_at: datetime | None = None  # by the provider's clock, if known


class HookObject(NamedTuple):
    """What a notification is about."""

    # A ``provider_id``, or a ``payment_ref`` if Stripe notifies about a charge or a refund.
    payment_id: str
    refund_id: str | None = None  # if it is about a refund


class ProviderError(Exception):
    """The provider refused a request, and would refuse a repetition as well.

    ``reason`` is a sentence for the owner, and contains neither the secret nor data of the client.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PaymentUnknownError(ProviderError):
    """The account does not have the payment or the refund."""


class UnknownOutcomeError(Exception):
    """The provider failed or did not respond. The request may have been carried out.

    Repeat it with the same idempotency key within ``IDEMPOTENCY_HOURS``. Later, look for its result
    in the provider's list first.
    """


class PaymentProvider(Protocol):
    """An account at a provider. All methods raise ``ProviderError`` and ``UnknownOutcomeError``."""

    def create(self, request: PaymentRequest) -> Created:
        """Create a payment, or return the payment that the key has created in the last 24 hours."""

    def state(self, provider_id: str) -> PaymentState:
        """Return the state of a payment."""

    def expire(self, provider_id: str) -> PaymentState:
        """End a pending payment if the provider can, and return its state.

        YooKassa cannot cancel a pending payment, so there the payment may still be pending.
        """

    def refund(self, request: RefundRequest) -> RefundState:
        """Refund a part of a payment. The same key returns the same refund for 24 hours."""

    def refund_state(self, refund_id: str) -> RefundState:
        """Return the state of a refund."""

    def list_refunds(self, provider_id: str, payment_ref: str | None) -> Sequence[RefundState]:
        """Return all refunds of a payment, also refunds that the owner made at the provider."""

    def list_returned(self, since: datetime) -> Collection[str]:
        """Return the ids of payments, as in ``HookObject``, refunded or disputed since a time."""

    def closing_receipt(self, provider_id: str, receipt: Receipt, idempotency_key: str) -> None:
        """Send the receipt of a service provided after its prepayment, if there are receipts."""

    def inspect(self) -> Account:
        """Return the account that the credentials belong to, if they work. Nothing is changed."""

    @staticmethod
    def read_hook(body: bytes) -> HookObject | None:
        """Return what a notification is about, or None if it names no payment.

        Anyone can send a notification, so its ids are only a hint to ask for the state.
        """


def provider_for(merchant: Merchant) -> PaymentProvider:
    """Return the account of a merchant, or raise ProviderError if this stage lacks the provider."""
    # Most processes never talk to a provider, so its module is imported on use.
    match merchant.provider:
        case "yookassa":
            from chalicelib.gateways.payments.yookassa import YooKassa

            return YooKassa(merchant)
        case "stripe":
            from chalicelib.gateways.payments.stripe import Stripe

            return Stripe(merchant)
        case "test":
            from chalicelib.gateways.payments.local_merchant import LocalMerchant

            return LocalMerchant(merchant)

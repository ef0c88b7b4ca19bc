"""Payment providers with hosted pages, behind one protocol.

A card number never reaches the service. The client pays on a page of the provider, and the service
asks the provider for the state. Amounts are integers in the currency's minor unit, such as kopecks.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

IDEMPOTENCY_HOURS = 23
"""Hours in which a request is repeated with its key. Both providers keep a key for 24 hours."""

ProviderName = Literal["yookassa", "stripe", "test"]
"""The test merchant exists in a local stack only."""
PaymentMode = Literal["full_prepayment", "prepayment", "advance", "full_payment"]
"""Kind of settlement on a receipt: whole price, deposit, top-up of a balance, closing receipt."""
PaymentStatus = Literal["pending", "succeeded", "expired", "failed"]
"""Status of a payment. A payment that expired or failed may succeed later."""
RefundStatus = Literal["pending", "done", "failed"]


class Merchant(NamedTuple):
    """Credentials of an account at a provider.

    ``shop_id`` is YooKassa's shop id. Stripe has none, because its key names the account.
    """

    provider: ProviderName
    shop_id: str
    secret: str


class Account(NamedTuple):
    """What a provider says of the account that a key belongs to.

    ``account_id`` is None if the key may not read it, as a restricted key of Stripe. ``is_test``
    says that payments move no money. ``has_receipts`` says that each payment needs a receipt.
    """

    account_id: str | None
    is_test: bool
    has_receipts: bool = False


class Receipt(NamedTuple):
    """A receipt of one service under the Russian law 54-FZ.

    The client's ``email`` or ``phone`` is required. ``vat_code``, ``closing_vat_code`` of the
    closing receipt and ``tax_system_code`` are the provider's codes, which the owner chooses.
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
    """A payment to create.

    The client sees ``purpose`` on the provider's page. ``expires_at`` is used if the provider can
    end a payment at a time of our choice. ``reference`` is the id of our payment, which the
    provider repeats in each response about it.
    """

    amount: int
    currency: str
    purpose: str
    return_url: str
    idempotency_key: str
    receipt: Receipt | None
    expires_at: datetime | None
    reference: str | None = None


class Created(NamedTuple):
    """A new payment with the URL of the page where the client pays."""

    provider_id: str
    url: str


class PaymentState(NamedTuple):
    """The provider's state of a payment.

    Compare ``amount``, ``currency``, ``account`` and ``reference`` with the stored payment. Only
    some providers name the account. ``refunded`` is the sum of the refunds that the provider
    carried out. ``payment_ref`` is Stripe's payment intent, to which refunds refer. ``paid_at`` is
    when the client has paid, by the provider's clock. ``is_test`` says that no money moves.
    ``disputed`` is what the client's bank has taken back.
    """

    status: PaymentStatus
    amount: int
    currency: str
    account: str | None
    refunded: int
    payment_ref: str | None
    paid_at: datetime | None = None
    reference: str | None = None
    is_test: bool | None = None
    disputed: int = 0


class RefundRequest(NamedTuple):
    """A refund of a part of a payment.

    ``provider_id`` and ``payment_ref`` name the payment, as in ``Created`` and ``PaymentState``.
    """

    provider_id: str
    payment_ref: str | None
    amount: int
    currency: str
    idempotency_key: str
    receipt: Receipt | None


class RefundState(NamedTuple):
    """The provider's state of a refund. ``created_at`` is by the provider's clock, if known."""

    provider_id: str
    status: RefundStatus
    amount: int
    created_at: datetime | None = None


class HookObject(NamedTuple):
    """What a notification is about.

    ``payment_id`` is a ``provider_id``, or a ``payment_ref`` if Stripe notifies about a charge or a
    refund. ``refund_id`` is set if it is about a refund.
    """

    payment_id: str
    refund_id: str | None = None


class ProviderError(Exception):
    """The provider refused a request.

    A repetition would be refused as well. ``reason`` is a sentence for the owner, and contains
    neither the secret nor data of the client.
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
    """An account at a payment provider.

    All methods raise ``ProviderError`` and ``UnknownOutcomeError``.
    """

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
        """Return the ids of payments that were refunded or disputed since a time.

        They are the ids of a ``HookObject``.
        """

    def closing_receipt(self, provider_id: str, receipt: Receipt, idempotency_key: str) -> None:
        """Send the receipt of a service that was provided after its prepayment.

        A provider without receipts does nothing.
        """

    def inspect(self) -> Account:
        """Return the account that the credentials belong to, if they work. Nothing is changed."""

    @staticmethod
    def read_hook(body: bytes) -> HookObject | None:
        """Return what a notification is about, or None if it names no payment.

        Anyone can send a notification, so its ids are only a hint to ask for the state.
        """


def provider_for(merchant: Merchant) -> PaymentProvider:
    """Return the account of a merchant at its provider.

    Raises:
        ProviderError: this stage does not have the provider.
    """
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

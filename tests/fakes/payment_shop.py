"""A payment provider in memory, with the faults that a provider may have."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.gateways import payments as gateway
from chalicelib.gateways.payments import (
    Account,
    Created,
    HookObject,
    Merchant,
    PaymentRequest,
    PaymentState,
    PaymentStatus,
    PaymentUnknownError,
    ProviderError,
    Receipt,
    RefundRequest,
    RefundState,
    RefundStatus,
    UnknownOutcomeError,
)

SECRET = "secret-of-the-shop-1234"


@dataclass
class FakePayment:
    """A payment as the provider has it."""

    request: PaymentRequest
    status: PaymentStatus = "pending"
    amount: int = 0
    account: str | None = None
    elsewhere: int = 0
    paid_at: datetime | None = None
    intent: str | None = None
    reference: str | None = None
    is_test: bool = False
    disputed: int = 0


@dataclass
class FakeShop:
    """An account at a provider.

    ``faults`` are the next failures, by method: ``before`` or ``after`` the request was carried
    out, or the reason of a refusal.
    """

    payments: dict[str, FakePayment] = field(default_factory=dict)
    refunds: dict[str, tuple[str, RefundState]] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    can_expire: bool = False
    refund_status: RefundStatus = "done"
    secret: str = SECRET
    series: str = "pay"
    """The beginning of the ids of payments."""
    listed_since: list[datetime] = field(default_factory=list)
    mistaken_id: str | None = None
    """The id in each response to a new payment, instead of its own."""

    @property
    def last_id(self) -> str:
        """Id of the latest payment."""
        return list(self.payments)[-1]

    def pay(self, provider_id: str | None = None, status: PaymentStatus = "succeeded") -> None:
        """Set the status of a payment, of the latest one by default."""
        payment = self.payments[provider_id or self.last_id]
        payment.status = status
        payment.paid_at = clock.now() if status == "succeeded" else None

    def refunded(self, provider_id: str) -> int:
        """Return the kopecks of a payment that were refunded."""
        ours = sum(
            state.amount
            for payment, state in self.refunds.values()
            if payment == provider_id and state.status == "done"
        )
        return ours + self.payments[provider_id].elsewhere


class FakeProvider:
    """The account of a merchant at the fake provider."""

    def __init__(self, shop: FakeShop, merchant: Merchant) -> None:
        self.shop, self.merchant = shop, merchant

    def _call(self, name: str, effect: Any) -> Any:
        self.shop.calls.append(name)
        fault = next(iter(self.shop.faults.get(name, ())), None)
        if fault is not None:
            self.shop.faults[name].pop(0)
        if fault == "before":
            raise UnknownOutcomeError
        if fault not in {None, "after"}:
            raise ProviderError(fault or "")
        result = effect()
        if fault == "after":
            raise UnknownOutcomeError
        return result

    def create(self, request: PaymentRequest) -> Created:
        def effect() -> Created:
            new_key = f"{self.shop.series}-{len(self.shop.payments) + 1}"
            provider_id = self.shop.keys.setdefault(request.idempotency_key, new_key)
            if provider_id not in self.shop.payments:
                self.shop.payments[provider_id] = FakePayment(request, amount=request.amount)
            assert self.shop.payments[provider_id].request == request
            provider_id = self.shop.mistaken_id or provider_id
            return Created(provider_id, f"https://pay.example/{provider_id}")

        return self._call("create", effect)  # type: ignore[no-any-return]

    def state(self, provider_id: str) -> PaymentState:
        return self._call("state", lambda: self._state(provider_id))  # type: ignore[no-any-return]

    def _state(self, provider_id: str) -> PaymentState:
        payment = self._payment(provider_id)
        account = payment.account or self.merchant.shop_id or None
        return PaymentState(
            payment.status,
            payment.amount,
            payment.request.currency,
            account,
            self.shop.refunded(provider_id),
            f"intent-{payment.intent or provider_id}",
            payment.paid_at,
            payment.reference or payment.request.reference,
            is_test=payment.is_test,
            disputed=payment.disputed,
        )

    def _payment(self, provider_id: str) -> FakePayment:
        if provider_id not in self.shop.payments:
            raise PaymentUnknownError("The shop does not have this payment.")
        return self.shop.payments[provider_id]

    def expire(self, provider_id: str) -> PaymentState:
        def effect() -> PaymentState:
            payment = self._payment(provider_id)
            if self.shop.can_expire and payment.status == "pending":
                payment.status = "expired"
            return self._state(provider_id)

        return self._call("expire", effect)  # type: ignore[no-any-return]

    def refund(self, request: RefundRequest) -> RefundState:
        def effect() -> RefundState:
            refund_id = self.shop.keys.setdefault(
                request.idempotency_key, f"refund-{len(self.shop.refunds) + 1}"
            )
            if refund_id not in self.shop.refunds:
                paid = self._payment(request.provider_id).amount
                if self.shop.refunded(request.provider_id) + request.amount > paid:
                    raise ProviderError("More than what was paid cannot be refunded.")
                state = RefundState(refund_id, self.shop.refund_status, request.amount)
                self.shop.refunds[refund_id] = (request.provider_id, state)
                if request.receipt is not None:
                    self.shop.receipts[request.idempotency_key] = request.receipt
            return self.shop.refunds[refund_id][1]

        return self._call("refund", effect)  # type: ignore[no-any-return]

    def refund_state(self, refund_id: str) -> RefundState:
        return self._call("refund_state", lambda: self.shop.refunds[refund_id][1])  # type: ignore[no-any-return]

    def list_refunds(self, provider_id: str, payment_ref: str | None) -> Sequence[RefundState]:
        def effect() -> list[RefundState]:
            return [s for payment, s in self.shop.refunds.values() if payment == provider_id]

        return self._call("list_refunds", effect)  # type: ignore[no-any-return]

    def list_returned(self, since: datetime) -> Collection[str]:
        def effect() -> set[str]:
            self.shop.listed_since.append(since)
            refunded = {payment for payment, _ in self.shop.refunds.values()}
            payments = self.shop.payments.items()
            return refunded | {name for name, it in payments if it.elsewhere or it.disputed}

        return self._call("list_returned", effect)  # type: ignore[no-any-return]

    def closing_receipt(self, provider_id: str, receipt: Receipt, idempotency_key: str) -> None:
        def effect() -> None:
            self.shop.receipts.setdefault(idempotency_key, receipt)

        self._call("closing_receipt", effect)

    def inspect(self) -> Account:
        def effect() -> Account:
            if self.merchant.secret != self.shop.secret:
                raise ProviderError("The secret is wrong.")
            return Account(self.merchant.shop_id or None, is_test=False)

        return self._call("inspect", effect)  # type: ignore[no-any-return]

    @staticmethod
    def read_hook(body: bytes) -> HookObject | None:
        """Return what the ids of a payment, and perhaps of its refund, stand for."""
        payment_id, _, refund_id = body.decode().partition(" ")
        return HookObject(payment_id, refund_id or None) if payment_id else None


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeShop]:
    """The account at the provider of all merchants of a test."""
    fake = FakeShop()
    monkeypatch.setattr(gateway, "provider_for", lambda merchant: FakeProvider(fake, merchant))
    return fake

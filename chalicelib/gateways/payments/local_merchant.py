"""The test merchant, which moves no money.

In a local stack its payments are files next to the local objects, and a developer settles one on
the page ``/dev/pay/{id}``. In a test workspace they are rows. As at YooKassa, a pending payment
does not end by request, and the page can be opened and paid later.
"""

import fcntl
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from chalicelib.core import clock
from chalicelib.core.settings import settings
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
)

SECRET_PREFIX = "test_"  # noqa: S105  the beginning of every secret that it accepts
PATH = "/dev/pay"
_ID = re.compile(r"[0-9a-f]{32}")


class PaymentStore(Protocol):
    """Where the test merchant keeps its payments, by id."""

    def read(self, payment_id: str) -> dict[str, Any] | None:
        """Return a payment, or None."""

    def read_all(self) -> Mapping[str, dict[str, Any]]:
        """Return all payments."""

    def change(self, payment_id: str) -> AbstractContextManager[dict[str, Any]]:
        """Store what the block does to a payment, or to an empty one. No other change is lost."""

    def url(self, payment_id: str) -> str:
        """Return the URL of the page of a payment."""


class _Files:
    def read(self, payment_id: str) -> dict[str, Any] | None:
        return read_payment(payment_id)

    def read_all(self) -> Mapping[str, dict[str, Any]]:
        return {path.stem: json.loads(path.read_bytes()) for path in _folder().glob("*.json")}

    def change(self, payment_id: str) -> AbstractContextManager[dict[str, Any]]:
        return _change_payment(payment_id)

    def url(self, payment_id: str) -> str:
        _folder()
        return f"{settings().public_url}{PATH}/{payment_id}"


FILES: PaymentStore = _Files()


class LocalMerchant:
    def __init__(self, merchant: Merchant, store: PaymentStore = FILES) -> None:
        self._merchant, self._store = merchant, store

    def create(self, request: PaymentRequest) -> Created:
        self._require_access()
        payment_id = self._id(request.idempotency_key)
        with self._store.change(payment_id) as payment:
            if not payment:
                payment |= {
                    "shop_id": self._merchant.shop_id,
                    "amount": request.amount,
                    "currency": request.currency,
                    "purpose": request.purpose,
                    "return_url": request.return_url,
                    "reference": request.reference,
                    "status": "pending",
                    "refunds": {},
                    "receipts": [request.receipt and request.receipt.payment_mode],
                }
        return Created(payment_id, self._store.url(payment_id))

    def state(self, provider_id: str) -> PaymentState:
        payment = self._payment(provider_id)
        return PaymentState(
            payment["status"],
            payment["amount"],
            payment["currency"],
            payment["shop_id"],
            sum(payment["refunds"].values()) + payment.get("returned", 0),
            None,
            datetime.fromisoformat(payment["paid_at"]) if "paid_at" in payment else None,
            payment.get("reference"),
            is_test=True,
            disputed=payment.get("disputed", 0),
        )

    def expire(self, provider_id: str) -> PaymentState:
        return self.state(provider_id)

    def refund(self, request: RefundRequest) -> RefundState:
        self._payment(request.provider_id)
        refund_id = f"{request.provider_id}-{self._id(request.idempotency_key)}"
        with self._store.change(request.provider_id) as payment:
            refunds = payment["refunds"]
            if refund_id not in refunds:
                if payment.get("refunds_fail"):
                    raise ProviderError("The test merchant refuses this, as its page says.")
                if payment["status"] != "succeeded":
                    raise ProviderError("The test merchant refunds only what is paid.")
                if sum(refunds.values()) + request.amount > payment["amount"]:
                    raise ProviderError("The test merchant does not refund more than is paid.")
                refunds[refund_id] = request.amount
        return RefundState(refund_id, "done", refunds[refund_id])

    def refund_state(self, refund_id: str) -> RefundState:
        refunds = self._payment(refund_id.partition("-")[0])["refunds"]
        if refund_id not in refunds:
            raise PaymentUnknownError("The test merchant does not have this refund.")
        return RefundState(refund_id, "done", refunds[refund_id])

    def list_refunds(
        self,
        provider_id: str,
        payment_ref: str | None,
    ) -> Sequence[RefundState]:
        refunds = self._payment(provider_id)["refunds"]
        return [RefundState(refund_id, "done", amount) for refund_id, amount in refunds.items()]

    def list_returned(self, since: datetime) -> Collection[str]:
        self._require_access()
        return {
            payment_id
            for payment_id, payment in self._store.read_all().items()
            if payment["shop_id"] == self._merchant.shop_id
            and payment.get("returned_at", "") >= since.isoformat()
        }

    def closing_receipt(
        self,
        provider_id: str,
        receipt: Receipt,
        idempotency_key: str,
    ) -> None:
        self._payment(provider_id)
        with self._store.change(provider_id) as payment:
            payment["receipts"].append(receipt.payment_mode)

    def inspect(self) -> Account:
        self._require_access()
        return Account(self._merchant.shop_id or "-", is_test=True)

    @staticmethod
    def read_hook(body: bytes) -> HookObject | None:
        try:
            notification = json.loads(body)
        except (ValueError, RecursionError):
            return None
        match notification:
            case {"payment": str(payment_id)}:
                return HookObject(payment_id)
        return None

    def _payment(self, provider_id: str) -> dict[str, Any]:
        self._require_access()
        payment = self._store.read(provider_id)
        if payment is None or payment["shop_id"] != self._merchant.shop_id:
            raise PaymentUnknownError("The test merchant does not have this payment.")
        return payment

    def _require_access(self) -> None:
        if self._store is FILES:
            _folder()
        if not self._merchant.secret.startswith(SECRET_PREFIX):
            msg = f"The test merchant accepts secret keys that begin with {SECRET_PREFIX}"
            raise ProviderError(msg)

    def _id(self, key: str) -> str:
        return hashlib.sha256(f"{self._merchant.shop_id} {key}".encode()).hexdigest()[:32]


def read_payment(payment_id: str) -> dict[str, Any] | None:
    """Return the file of a payment, or None; raise ProviderError if objects are in S3."""
    path = _folder() / f"{payment_id}.json"
    if not _ID.fullmatch(payment_id) or not path.exists():
        return None
    payment: dict[str, Any] = json.loads(path.read_bytes())
    return payment


def settle_payment(payment_id: str, status: PaymentStatus, *, store: PaymentStore = FILES) -> None:
    """Set the status of a payment, unless it is paid."""
    with store.change(payment_id) as payment:
        if payment["status"] != "succeeded":
            payment["status"] = status
            if status == "succeeded":
                payment["paid_at"] = clock.iso(clock.now())


def return_payment(payment_id: str, how: Literal["returned", "disputed"], amount: int) -> None:
    """Let the owner refund a payment at the provider, or a bank dispute it: ``amount`` in all."""
    with _change_payment(payment_id) as payment:
        payment[how], payment["returned_at"] = amount, clock.now().isoformat()


@contextmanager
def _change_payment(payment_id: str) -> Iterator[dict[str, Any]]:
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        payment = read_payment(payment_id) or {}
        yield payment
        draft = folder / f"{payment_id}.draft"
        draft.write_text(json.dumps(payment))
        draft.replace(folder / f"{payment_id}.json")


def _folder() -> Path:
    kind, _, folder = settings().object_store.partition("://")
    if kind != "file":
        raise ProviderError("The test merchant exists in a local stack only.")
    return Path(folder) / ".payments"

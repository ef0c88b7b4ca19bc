"""YooKassa's API v3 (https://yookassa.ru/developers/api).

Facts that this module depends on, from YooKassa's OpenAPI document and the pages that it links to:

- A request authenticates by HTTP Basic with the shop id and the secret key.
- Each POST has an ``Idempotence-Key`` of at most 64 characters, which is kept for 24 hours.
- A status of 4xx is a refusal. After 500 the outcome is unknown, so the request is repeated with
  its key (https://yookassa.ru/developers/using-api/response-handling/recommendations).
- Amounts are strings with two decimals, in rubles only.
- Only a payment that waits for its capture can be cancelled. A pending one ends by itself.
- Notifications are not signed, and have the object
  (https://yookassa.ru/developers/using-api/webhooks).
"""

import json
import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from chalicelib.core.settings import settings
from chalicelib.gateways.payments import (
    Account,
    Created,
    HookObject,
    Merchant,
    PaymentRequest,
    PaymentState,
    PaymentStatus,
    ProviderError,
    Receipt,
    RefundRequest,
    RefundState,
    RefundStatus,
)
from chalicelib.gateways.payments.client import Client
from chalicelib.lib.currencies import RUB

# Characters of a payment's description, and of an item of a receipt (tag 1030).
MAX_DESCRIPTION = 128
_AMOUNT = re.compile(r"([0-9]{1,12})\.([0-9]{2})")
# YooKassa's names of kinds of settlement, where they differ.
_MODES = {"prepayment": "partial_prepayment"}
_REFUND_STATUS: dict[str, RefundStatus] = {
    "pending": "pending",
    "succeeded": "done",
    "canceled": "failed",
}


class YooKassa:
    def __init__(self, merchant: Merchant) -> None:
        self._shop_id = merchant.shop_id
        self._client = Client(
            "YooKassa", settings().yookassa_url, merchant.shop_id, merchant.secret
        )

    def create(self, request: PaymentRequest) -> Created:
        body: dict[str, Any] = {
            "amount": _money(request.amount, request.currency),
            "capture": True,
            "confirmation": {"type": "redirect", "return_url": request.return_url},
            "description": request.purpose[:MAX_DESCRIPTION],
        }
        if request.reference:
            body["metadata"] = {"payment": request.reference}
        if request.receipt:
            body["receipt"] = _receipt(request.receipt, request.currency)
        payment = self._post("payments", key=request.idempotency_key, body=body)
        match payment:
            case {"id": str(payment_id), "confirmation": {"confirmation_url": str(url)}}:
                return Created(payment_id, url)
            case {"id": str(payment_id)}:
                # The key belongs to a payment that has ended, which has no page any more.
                return Created(payment_id, request.return_url)
        raise self._client.unusable()

    def state(self, provider_id: str) -> PaymentState:
        payment = self._client.call("GET", "payments", provider_id)
        match payment:
            case {
                "id": str(payment_id),
                "status": str(status),
                "amount": {"value": str(value), "currency": str(currency)},
                "recipient": {"account_id": account},
            } if payment_id == provider_id:
                return PaymentState(
                    status=_status(status, payment.get("cancellation_details")),
                    amount=self._minor_units(value),
                    currency=currency,
                    account=str(account),
                    refunded=self._refunded(payment),
                    payment_ref=None,
                    paid_at=_moment(payment.get("captured_at")),
                    reference=_reference(payment),
                    is_test=payment.get("test"),
                )
        raise self._client.unusable()

    def expire(self, provider_id: str) -> PaymentState:
        return self.state(provider_id)

    def refund(self, request: RefundRequest) -> RefundState:
        amount = _money(request.amount, request.currency)
        body: dict[str, Any] = {"payment_id": request.provider_id, "amount": amount}
        if request.receipt:
            body["receipt"] = _receipt(request.receipt, request.currency)
        return self._refund_state(self._post("refunds", key=request.idempotency_key, body=body))

    def refund_state(self, refund_id: str) -> RefundState:
        return self._refund_state(self._client.call("GET", "refunds", refund_id))

    def list_refunds(
        self,
        provider_id: str,
        payment_ref: str | None,
    ) -> Sequence[RefundState]:
        return [self._refund_state(refund) for refund in self._list_refunds(payment_id=provider_id)]

    def list_returned(self, since: datetime) -> Collection[str]:
        # YooKassa reports disputes by letter.
        refunds = self._list_refunds(**{"created_at.gte": since.astimezone(UTC).isoformat()})
        return {str(refund.get("payment_id")) for refund in refunds}

    def closing_receipt(self, provider_id: str, receipt: Receipt, idempotency_key: str) -> None:
        body = {
            "type": "payment",
            "payment_id": provider_id,
            "send": True,
            "settlements": [{"type": "prepayment", "amount": _money(receipt.amount, RUB)}],
            **_receipt(receipt, RUB),
        }
        self._post("receipts", key=idempotency_key, body=body)

    def inspect(self) -> Account:
        """Return the account, if the shop can take payments."""
        shop = self._client.call("GET", "me")  # changes nothing
        if str(shop.get("account_id")) != self._shop_id:
            raise ProviderError("The secret key belongs to another shop.")
        if shop.get("status") != "enabled":
            raise ProviderError("YooKassa has not enabled this shop yet.")
        match shop:
            case {"fiscalization": {"enabled": bool(has_receipts)}}:
                pass
            case _:
                has_receipts = bool(shop.get("fiscalization_enabled"))
        return Account(self._shop_id, bool(shop.get("test")), has_receipts)

    @staticmethod
    def read_hook(body: bytes) -> HookObject | None:
        match _json(body):
            case {"object": {"payment_id": str(payment_id), "id": str(refund_id)}}:
                return HookObject(payment_id, refund_id)
            case {"object": {"id": str(payment_id)}}:
                return HookObject(payment_id)
        return None

    def _post(self, path: str, *, key: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._client.call("POST", path, json=body, headers={"Idempotence-Key": key})

    def _list_refunds(self, **query: str) -> list[dict[str, Any]]:
        refunds: list[dict[str, Any]] = []
        parameters = {**query, "limit": "100"}
        while True:
            page = self._client.call("GET", "refunds", params=parameters)
            refunds += page.get("items") or ()
            if not page.get("next_cursor"):
                return refunds
            parameters["cursor"] = page["next_cursor"]

    def _refund_state(self, refund: object) -> RefundState:
        match refund:
            case {
                "id": str(refund_id),
                "status": str(status),
                "amount": {"value": str(value)},
                "created_at": str(at),
            }:
                return RefundState(
                    refund_id,
                    _REFUND_STATUS.get(status, "pending"),
                    self._minor_units(value),
                    datetime.fromisoformat(at),
                )
        raise self._client.unusable()

    def _refunded(self, payment: dict[str, Any]) -> int:
        match payment.get("refunded_amount"):
            case {"value": str(value)}:
                return self._minor_units(value)
        return 0

    def _minor_units(self, value: str) -> int:
        if parts := _AMOUNT.fullmatch(value):
            return int(parts[1]) * 100 + int(parts[2])
        raise self._client.unusable()


def _status(status: str, details: object) -> PaymentStatus:
    match status:
        case "succeeded":
            return "succeeded"
        case "canceled":
            reason = details.get("reason") if isinstance(details, dict) else None
            return "expired" if reason == "expired_on_confirmation" else "failed"
    return "pending"


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _reference(payment: dict[str, Any]) -> str | None:
    match payment.get("metadata"):
        case {"payment": str(reference)}:
            return reference
    return None


def _money(amount: int, currency: str) -> dict[str, str]:
    if currency != RUB:
        msg = f"YooKassa takes rubles only, not {currency}."
        raise ProviderError(msg)
    return {"value": f"{amount // 100}.{amount % 100:02}", "currency": currency}


def _receipt(receipt: Receipt, currency: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "customer": _customer(receipt),
        "items": [
            {
                "description": receipt.description[:MAX_DESCRIPTION],
                "quantity": 1,
                "amount": _money(receipt.amount, currency),
                "vat_code": int(receipt.rate_code),
                "payment_mode": _MODES.get(receipt.payment_mode, receipt.payment_mode),
                "payment_subject": "service",
            }
        ],
    }
    if receipt.tax_system_code:
        body["tax_system_code"] = int(receipt.tax_system_code)
    return body


def _customer(receipt: Receipt) -> dict[str, str]:
    if receipt.email:
        return {"email": receipt.email}
    return {"phone": (receipt.phone or "").removeprefix("+")}


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

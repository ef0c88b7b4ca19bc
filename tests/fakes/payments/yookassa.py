"""YooKassa's API v3, as far as the service uses it.

The schemas are the ones of YooKassa's OpenAPI document
(https://yookassa.ru/developers/api/yookassa-openapi-specification.yaml, MIT), without prose and
without the properties that the service does not send: what is not listed is refused.
"""

import base64
import json
import uuid
from datetime import datetime
from typing import Any

import jsonschema

from tests.fakes import JsonServer, ReceivedRequest

SHOP_ID = "506751"
SECRET = "test_y7RSw-S3cret"


def closed(required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object without other properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


AMOUNT = closed(
    "value currency",
    value={"type": "string", "pattern": r"^[0-9]+\.[0-9]{2}$"},
    currency={"enum": ["RUB", "EUR", "USD", "KZT", "BYN", "UAH", "UZS", "TRY", "INR"]},
)
PAYMENT_ID = {"type": "string", "minLength": 36, "maxLength": 36}
RECEIPT_PARTS = {
    "customer": {
        **closed(
            "",
            email={"type": "string", "format": "email", "maxLength": 254},
            phone={"type": "string", "pattern": "^[0-9]{4,15}$"},
        ),
        "minProperties": 1,
    },
    "items": {
        "type": "array",
        "items": closed(
            "description quantity amount vat_code",
            description={"type": "string", "maxLength": 128},
            quantity={"type": "number"},
            amount=AMOUNT,
            vat_code={"type": "integer", "minimum": 1, "maximum": 12},
            payment_mode={
                "enum": [
                    "full_prepayment",
                    "partial_prepayment",
                    "advance",
                    "full_payment",
                    "partial_payment",
                    "credit",
                    "credit_payment",
                ]
            },
            payment_subject={"enum": ["commodity", "job", "service", "payment", "another"]},
        ),
    },
    "tax_system_code": {"type": "integer", "minimum": 1, "maximum": 6},
}
RECEIPT = closed("items", **RECEIPT_PARTS)
SCHEMAS = {
    "payments": closed(
        "amount",
        amount=AMOUNT,
        description={"type": "string", "maxLength": 128},
        receipt=RECEIPT,
        capture={"type": "boolean"},
        metadata={
            "type": "object",
            "maxProperties": 16,
            "additionalProperties": {"type": "string", "maxLength": 512},
        },
        confirmation=closed(
            "type return_url",
            type={"const": "redirect"},
            return_url={"type": "string", "maxLength": 2048},
        ),
    ),
    "refunds": closed("payment_id amount", payment_id=PAYMENT_ID, amount=AMOUNT, receipt=RECEIPT),
    "receipts": closed(
        "customer type send settlements items",
        type={"enum": ["payment", "refund"]},
        payment_id=PAYMENT_ID,
        send={"type": "boolean"},
        settlements={
            "type": "array",
            "items": closed(
                "type amount",
                type={"enum": ["cashless", "prepayment", "postpayment", "consideration"]},
                amount=AMOUNT,
            ),
        },
        **RECEIPT_PARTS,
    ),
}


class FakeYooKassa(JsonServer):
    """A shop. ``payments`` and ``refunds`` are its objects by id, in YooKassa's format."""

    def __init__(self) -> None:
        super().__init__()
        self.payments: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.receipts: list[dict[str, Any]] = []
        self.shop_status = "enabled"
        self.has_receipts = False
        self.refund_status = "succeeded"
        self._by_key: dict[str, dict[str, Any]] = {}

    def settle(self, payment_id: str, status: str, reason: str | None = None) -> None:
        """Let the client pay, or the payment end for a reason."""
        payment = self.payments[payment_id]
        payment |= {"status": status, "paid": status == "succeeded"}
        if status == "succeeded":
            payment["captured_at"] = "2026-11-27T09:40:00.000Z"
        payment.pop("confirmation", None)
        if reason:
            payment["cancellation_details"] = {"party": "yoo_money", "reason": reason}

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:  # noqa: PLR0911  one a route
        credentials = base64.b64encode(f"{SHOP_ID}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {credentials}":
            return error(401, "invalid_credentials")
        match request.method, request.path.strip("/").split("/"):
            case "GET", ["me"]:
                status = self.shop_status
                fiscalization = {"enabled": self.has_receipts, "provider": "atol"}
                shop = {"account_id": SHOP_ID, "status": status, "test": True}
                return 200, {**shop, "fiscalization": fiscalization}
            case "GET", ["payments", payment_id] if payment_id in self.payments:
                return 200, self.payments[payment_id]
            case "GET", ["refunds", refund_id] if refund_id in self.refunds:
                return 200, self.refunds[refund_id]
            case "GET", ["refunds"]:
                return 200, self._refunds_page(request)
            case "POST", [("payments" | "refunds" | "receipts") as kind]:
                return self._create(kind, request)
        return error(404, "not_found")

    def _create(self, kind: str, request: ReceivedRequest) -> tuple[int, Any]:
        key = request.headers.get("idempotence-key", "")
        if not 1 <= len(key) <= 64:
            return error(400, "invalid_request", "Idempotence-Key")
        if key in self._by_key:
            return 200, self._by_key[key]
        body = json.loads(request.body)
        try:
            jsonschema.validate(body, SCHEMAS[kind])
        except jsonschema.ValidationError as problem:
            return error(400, "invalid_request", ".".join(map(str, problem.absolute_path)))
        created = getattr(self, f"_create_{kind}")(body)
        if isinstance(created, tuple):
            return created
        self._by_key[key] = created
        return 200, created

    def _create_payments(self, body: dict[str, Any]) -> dict[str, Any]:
        payment_id = str(uuid.UUID(int=len(self.payments) + 1))
        self.payments[payment_id] = {
            "id": payment_id,
            "status": "pending",
            "amount": body["amount"],
            "description": body.get("description"),
            "recipient": {"account_id": SHOP_ID, "gateway_id": "100700"},
            "created_at": "2026-11-27T09:00:00.000Z",
            "confirmation": {
                "type": "redirect",
                "return_url": body["confirmation"]["return_url"],
                "confirmation_url": f"https://yoomoney.ru/checkout?orderId={payment_id}",
            },
            "test": True,
            "paid": False,
            "refundable": False,
            "metadata": body.get("metadata", {}),
        }
        return self.payments[payment_id]

    def _create_refunds(self, body: dict[str, Any]) -> Any:
        payment = self.payments.get(body["payment_id"])
        if payment is None or payment["status"] != "succeeded":
            return error(400, "invalid_request", "payment_id")
        refunded = float(payment.get("refunded_amount", {"value": "0"})["value"])
        total = refunded + float(body["amount"]["value"])
        if total > float(payment["amount"]["value"]):
            return error(400, "invalid_request", "amount.value")
        payment["refunded_amount"] = {"value": f"{total:.2f}", "currency": "RUB"}
        refund_id = str(uuid.UUID(int=len(self.refunds) + 1))
        self.refunds[refund_id] = {
            "id": refund_id,
            "payment_id": body["payment_id"],
            "status": self.refund_status,
            "created_at": "2026-11-27T09:10:00.000Z",
            "amount": body["amount"],
        }
        return self.refunds[refund_id]

    def _create_receipts(self, body: dict[str, Any]) -> dict[str, Any]:
        self.receipts.append(body)
        return {"id": f"rt-{len(self.receipts)}", "type": body["type"], "status": "pending"}

    def _refunds_page(self, request: ReceivedRequest) -> dict[str, Any]:
        payment_id, limit = request.query.get("payment_id"), 2
        since = datetime.fromisoformat(request.query.get("created_at.gte", "2000-01-01T00:00Z"))
        refunds = [
            it
            for it in self.refunds.values()
            if payment_id in {None, it["payment_id"]}
            and datetime.fromisoformat(it["created_at"]) >= since
        ]
        start = int(request.query.get("cursor", "0"))
        page: dict[str, Any] = {"type": "list", "items": refunds[start : start + limit]}
        if start + limit < len(refunds):
            page["next_cursor"] = str(start + limit)
        return page


def error(status: int, code: str, parameter: str | None = None) -> tuple[int, dict[str, Any]]:
    """Return an error in YooKassa's format."""
    body = {
        "type": "error",
        "id": "ecf255db-cce8-4f15-8fc2-3d7a4678c867",
        "description": "Invalid request with ada@example.com",
        "code": code,
    }
    return status, {**body, "parameter": parameter} if parameter else body

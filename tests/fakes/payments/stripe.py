"""Stripe's API, as far as the service uses it.

The schemas are the ones of Stripe's OpenAPI document (https://github.com/stripe/openapi, MIT),
without prose and without the parameters that the service does not send: what is not listed is
refused. Responses have the fields of its fixtures.
"""

import base64
import re
from typing import Any
from urllib.parse import parse_qsl

import jsonschema

from chalicelib.core import clock
from tests.fakes import JsonServer, ReceivedRequest
from tests.fakes.payments.yookassa import closed

SECRET = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"
INTEGER = {"type": "string", "pattern": "^[0-9]+$"}
TEXT = {"type": "string", "maxLength": 5000}
METADATA = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 500}}
SCHEMAS = {
    "/checkout/sessions": closed(
        "mode success_url line_items",
        mode={"enum": ["payment", "setup", "subscription"]},
        payment_method_types={"items": {"enum": ["card", "link", "paypal"]}},
        line_items={
            "items": closed(
                "quantity price_data",
                quantity=INTEGER,
                price_data=closed(
                    "currency unit_amount product_data",
                    currency={"type": "string", "pattern": "^[a-z]{3}$"},
                    unit_amount=INTEGER,
                    product_data=closed("name", name=TEXT),
                ),
            )
        },
        adaptive_pricing=closed("", enabled={"enum": ["true", "false"]}),
        success_url=TEXT,
        cancel_url=TEXT,
        customer_email={"type": "string", "maxLength": 800},
        expires_at=INTEGER,
        client_reference_id={"type": "string", "maxLength": 200},
        metadata=METADATA,
        payment_intent_data=closed("", metadata=METADATA),
    ),
    "/refunds": closed("", payment_intent=TEXT, amount=INTEGER),
}


class FakeStripe(JsonServer):
    """An account. ``sessions`` and ``refunds`` are its objects by id, in Stripe's format."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.disputes: dict[str, dict[str, Any]] = {}
        self.refund_status = "succeeded"
        self.allows = True
        self.is_restricted = self.is_live = False
        self.series = "a"
        """A letter in the ids of this account, so that another account has other ids."""
        self.secret, self.account_id = SECRET, "acct_1032D82eZvKYlo2C"
        self._by_key: dict[str, tuple[bytes, dict[str, Any]]] = {}

    def pay(self, session_id: str) -> None:
        """Let the client pay."""
        session = self.sessions[session_id]
        charge = {
            "object": "charge",
            "amount_refunded": 0,
            "created": 1_795_770_000,
            "disputed": False,
        }
        intent = f"pi_{session_id.removeprefix('cs_test_')}"
        session |= {
            "status": "complete",
            "payment_status": "paid",
            "url": None,
            "payment_intent": {"object": "payment_intent", "id": intent, "latest_charge": charge},
        }

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:  # noqa: C901, PLR0911  one a route
        if request.headers.get("authorization") != authorization(self.secret):
            return error(401, None, message="Invalid API Key provided: sk_test_****dp7d")
        if not self.allows:
            return error(403, "more_permissions_required_for_application")
        assert re.fullmatch(r"20\d\d-\d\d-\d\d\.[a-z]+", request.headers["stripe-version"])
        match request.method, request.path.strip("/").split("/"):
            case "GET", ["account" | "balance"] if self.is_restricted:
                return error(403, "more_permissions_required_for_application")
            case "GET", ["account"]:
                return 200, {"id": self.account_id, "object": "account"}
            case "GET", ["balance"]:
                return 200, {"object": "balance", "livemode": self.is_live}
            case "GET", ["checkout", "sessions"]:
                return 200, {"object": "list", "data": [], "has_more": False}
            case "GET", ["checkout", "sessions", session_id] if session_id in self.sessions:
                assert request.query["expand[]"] == "payment_intent.latest_charge"
                return 200, self.sessions[session_id]
            case "POST", ["checkout", "sessions", session_id, "expire"]:
                return self._expire(session_id)
            case "GET", [("refunds" | "disputes") as kind]:
                return 200, self._page(getattr(self, kind), request)
            case "GET", ["refunds", refund_id] if refund_id in self.refunds:
                return 200, self.refunds[refund_id]
            case "POST", _ if request.path in SCHEMAS:
                return self._create(request)
        return error(404, "resource_missing", "id")

    def _create(self, request: ReceivedRequest) -> tuple[int, Any]:
        key = request.headers["idempotency-key"]
        if key in self._by_key:
            body, created = self._by_key[key]
            return (200, created) if body == request.body else error(400, None)
        form = nested(request.body)
        try:
            jsonschema.validate(form, SCHEMAS[request.path])
        except jsonschema.ValidationError as problem:
            return error(400, "parameter_unknown", ".".join(map(str, problem.absolute_path)))
        is_session = request.path == "/checkout/sessions"
        response = self._create_session(form) if is_session else self._create_refund(form)
        if response[0] == 200:
            self._by_key[key] = (request.body, response[1])
        return response

    def _create_session(self, form: dict[str, Any]) -> tuple[int, Any]:
        now = clock.now().timestamp()
        expires_at = int(form.get("expires_at") or now + 24 * 3600)
        if not now + 30 * 60 <= expires_at <= now + 24 * 3600:
            return error(400, None, "expires_at")
        price = form["line_items"][0]["price_data"]
        # https://docs.stripe.com/currencies#special-cases, #three-decimal
        least = {"isk": 100, "ugx": 100, "kwd": 10, "bhd": 10}.get(price["currency"], 1)
        if int(price["unit_amount"]) % least:
            return error(400, "invalid_charge_amount_no_decimal_compatible", "unit_amount")
        session_id = f"cs_test_{self.series}{len(self.sessions):023}"
        self.sessions[session_id] = {
            "id": session_id,
            "object": "checkout.session",
            "status": "open",
            "payment_status": "unpaid",
            "payment_intent": None,
            "amount_total": int(price["unit_amount"]),
            "currency": price["currency"],
            "customer_email": form.get("customer_email"),
            "expires_at": expires_at,
            "mode": form["mode"],
            "livemode": self.is_live,
            "metadata": form.get("metadata", {}),
            "client_reference_id": form.get("client_reference_id"),
            "success_url": form["success_url"],
            "url": f"https://checkout.stripe.com/c/pay/{session_id}",
        }
        return 200, self.sessions[session_id]

    def _expire(self, session_id: str) -> tuple[int, Any]:
        session = self.sessions[session_id]
        if session["status"] != "open":
            return error(400, None)
        session |= {"status": "expired", "url": None}
        return 200, session

    def _create_refund(self, form: dict[str, Any]) -> tuple[int, Any]:
        intent_id, amount = form["payment_intent"], int(form["amount"])
        for session in self.sessions.values():
            intent = session["payment_intent"]
            if intent and intent["id"] == intent_id:
                charge = intent["latest_charge"]
                if charge["amount_refunded"] + amount > session["amount_total"]:
                    return error(400, "charge_already_refunded")
                charge["amount_refunded"] += amount
                refund_id = f"re_{self.series}{len(self.refunds):023}"
                self.refunds[refund_id] = {
                    "id": refund_id,
                    "object": "refund",
                    "created": 1_795_770_000,
                    "amount": amount,
                    "currency": session["currency"],
                    "payment_intent": intent_id,
                    "status": self.refund_status,
                }
                return 200, self.refunds[refund_id]
        return error(404, "resource_missing", "payment_intent")

    def _page(self, rows: dict[str, dict[str, Any]], request: ReceivedRequest) -> dict[str, Any]:
        intent_id = request.query.get("payment_intent")
        since = int(request.query.get("created[gte]", "0"))
        last_id = request.query.get("starting_after", "")
        found = [it for it in rows.values() if intent_id in {None, it["payment_intent"]}]
        found = [it for it in found if it["id"] > last_id and it["created"] >= since]
        return {"object": "list", "data": found[:2], "has_more": len(found) > 2}

    def dispute(self, session_id: str, status: str) -> None:
        """Let the client's bank dispute a payment, or decide."""
        session = self.sessions[session_id]
        intent = session["payment_intent"]
        intent["latest_charge"]["disputed"] = True
        dispute_id = f"du_{session_id}"
        self.disputes[dispute_id] = {
            "id": dispute_id,
            "object": "dispute",
            "created": 1_795_770_000,
            "amount": session["amount_total"],
            "payment_intent": intent["id"],
            "status": status,
        }


def authorization(secret: str) -> str:
    """Return the header with which a key authenticates."""
    return f"Basic {base64.b64encode(f'{secret}:'.encode()).decode()}"


def nested(body: bytes) -> Any:
    """Parse a form whose names have indexes: ``line_items[0][quantity]``."""
    form: dict[str, Any] = {}
    for name, value in parse_qsl(body.decode(), keep_blank_values=True):
        *path, last = re.findall(r"[^\[\]]+", name)
        place = form
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return convert_indexes(form)


def convert_indexes(form: Any) -> Any:
    """Turn objects with the names 0, 1 … into arrays."""
    if not isinstance(form, dict):
        return form
    parts = {name: convert_indexes(part) for name, part in form.items()}
    return list(parts.values()) if "0" in parts else parts


def error(
    status: int, code: str | None, param: str | None = None, message: str = "No such thing"
) -> tuple[int, Any]:
    """Return an error in Stripe's format."""
    problem = {"type": "invalid_request_error", "message": message}
    problem |= {"code": code} if code else {}
    return status, {"error": {**problem, "param": param} if param else problem}

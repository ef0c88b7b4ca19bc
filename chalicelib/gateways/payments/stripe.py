"""Stripe Checkout Sessions (https://docs.stripe.com/api/checkout/sessions).

Facts that this module depends on, from Stripe's OpenAPI document and the pages named here:

- A request is a form, and authenticates by HTTP Basic with the secret key as the user.
- An ``Idempotency-Key`` is kept for 24 hours, and repeats the saved response, also a saved 500
  (https://docs.stripe.com/api/idempotent_requests). 409 means that the first one still runs.
- An amount is in the units of its currency (``stripe_units``).
- ``expires_at`` is 30 minutes to 24 hours after the creation.
- Only an open session can be expired. Its payment intent cannot be cancelled.
- A refund refers to the payment intent, which exists once the client has begun to pay.
- A session names neither its account nor its refunds. The charge has the sum of the refunds.
- ``disputed`` of a charge stays true. Its disputes say how much the bank holds or has taken:
  an inquiry (``warning_…``) takes nothing, and a dispute that is won gives the money back
  (https://docs.stripe.com/api/disputes/object).
- A restricted key may read ``/v1/balance`` and ``/v1/account`` only with the rights to them; else
  the status is 403 (https://docs.stripe.com/keys/restricted-api-keys). Its prefix, as of any key,
  names the mode.
- An object of another account or of the other mode is ``resource_missing``, with the status 404.
"""

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
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
    stripe_units,
)
from chalicelib.gateways.payments.client import Client
from chalicelib.lib import currencies

# Without it, the version of the API that the account was created with would apply.
VERSION = "2026-06-24.dahlia"
_REFUND_STATUS: dict[str, RefundStatus] = {
    "pending": "pending",
    "requires_action": "pending",
    "succeeded": "done",
    "failed": "failed",
    "canceled": "failed",
}

# Statuses of disputes whose amount was taken from the account.
_TAKEN = {"needs_response", "under_review", "lost"}


class Stripe:
    def __init__(self, merchant: Merchant) -> None:
        self._client = Client("Stripe", settings().stripe_url, merchant.secret, "")
        self._has_live_key = merchant.secret.startswith(("sk_live_", "rk_live_"))

    def create(self, request: PaymentRequest) -> Created:
        line = "line_items[0]"
        form = {
            "mode": "payment",
            "payment_method_types[0]": "card",
            f"{line}[quantity]": 1,
            f"{line}[price_data][currency]": request.currency.lower(),
            f"{line}[price_data][unit_amount]": _their_units(request.amount, request.currency),
            f"{line}[price_data][product_data][name]": request.purpose[:250],
            # Stripe would convert the price to the client's currency.
            "adaptive_pricing[enabled]": "false",
            "success_url": request.return_url,
            "cancel_url": request.return_url,
        }
        if request.reference:
            form["client_reference_id"] = request.reference
            # The session's metadata does not reach the payment intent, which the owner sees.
            form["metadata[payment]"] = request.reference
            form["payment_intent_data[metadata][payment]"] = request.reference
        if request.expires_at:
            form["expires_at"] = _seconds(request.expires_at)
        if request.receipt and request.receipt.email:
            form["customer_email"] = request.receipt.email
        session = self._post(form, request.idempotency_key, "checkout", "sessions")
        match session:
            case {"id": str(session_id), "url": url}:
                # A session that has ended has no page any more.
                return Created(session_id, url or request.return_url)
        raise self._client.unusable()

    def state(self, provider_id: str) -> PaymentState:
        query = {"expand[]": "payment_intent.latest_charge"}
        session = self._call("GET", "checkout", "sessions", provider_id, params=query)
        match session:
            case {
                "id": str(session_id),
                "status": str(status),
                "payment_status": str(payment_status),
                "amount_total": int(amount),
                "currency": str(currency),
                "livemode": bool(livemode),
            } if session_id == provider_id:
                intent = session.get("payment_intent") or {}
                charge = intent.get("latest_charge") or {}
                units = partial(self._minor_units, currency=currency.upper())
                return PaymentState(
                    status=_status(status, payment_status=payment_status),
                    amount=units(amount),
                    currency=currency.upper(),
                    account=None,
                    refunded=units(int(charge.get("amount_refunded") or 0)),
                    payment_ref=intent.get("id"),
                    paid_at=_moment(charge.get("created")),
                    reference=session.get("client_reference_id"),
                    is_test=not livemode,
                    disputed=units(self._disputed(intent)) if charge.get("disputed") else 0,
                )
        raise self._client.unusable()

    def expire(self, provider_id: str) -> PaymentState:
        # The session may not be open any more, because the client has just paid.
        with suppress(ProviderError):
            self._call("POST", "checkout", "sessions", provider_id, "expire")
        return self.state(provider_id)

    def refund(self, request: RefundRequest) -> RefundState:
        intent = self._intent(request.provider_id, request.payment_ref)
        amount = _their_units(request.amount, request.currency)
        form = {"payment_intent": intent, "amount": amount}
        return self._refund_state(self._post(form, request.idempotency_key, "refunds"))

    def refund_state(self, refund_id: str) -> RefundState:
        return self._refund_state(self._call("GET", "refunds", refund_id))

    def list_refunds(self, provider_id: str, payment_ref: str | None) -> Sequence[RefundState]:
        intent_id = self._intent(provider_id, payment_ref)
        refunds = self._list("refunds", payment_intent=intent_id)
        return [self._refund_state(refund) for refund in refunds]

    def list_returned(self, since: datetime) -> Collection[str]:
        query = {"created[gte]": str(_seconds(since))}
        objects = [*self._list("refunds", **query), *self._list("disputes", **query)]
        return {each["payment_intent"] for each in objects if each.get("payment_intent")}

    def closing_receipt(self, provider_id: str, receipt: Receipt, idempotency_key: str) -> None:
        """Do nothing, because Stripe has no receipts of 54-FZ."""

    def inspect(self) -> Account:
        self._call("GET", "checkout", "sessions", params={"limit": "1"})
        balance, account = self._call_if_allowed("balance"), self._call_if_allowed("account")
        is_live = balance.get("livemode", self._has_live_key)
        return Account(account.get("id"), is_test=not is_live)

    @staticmethod
    def read_hook(body: bytes) -> HookObject | None:
        try:
            event = json.loads(body)
        except (ValueError, RecursionError):
            return None
        match event:
            case {"data": {"object": {"object": "checkout.session", "id": str(session_id)}}}:
                return HookObject(session_id)
            case {
                "data": {
                    "object": {
                        "object": "refund",
                        "id": str(refund_id),
                        "payment_intent": str(intent_id),
                    }
                }
            }:
                return HookObject(intent_id, refund_id)
            case {"data": {"object": {"payment_intent": str(intent_id)}}}:  # a charge, a dispute
                return HookObject(intent_id)
        return None

    def _intent(self, provider_id: str, payment_ref: str | None) -> str:
        intent_id = payment_ref or self.state(provider_id).payment_ref
        if intent_id is None:
            raise ProviderError("Stripe has no payment for this session.")
        return intent_id

    def _post(self, form: dict[str, Any], key: str, *path: str) -> dict[str, Any]:
        return self._call("POST", *path, data=form, headers={"Idempotency-Key": key})

    def _call(self, method: str, *path: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
        headers = {"Stripe-Version": VERSION, **content.pop("headers", {})}
        return self._client.call(method, *path, headers=headers, **content)

    def _minor_units(self, amount: int, *, currency: str) -> int:
        units = stripe_units.from_stripe(amount, currency)
        if units is None:
            raise self._client.unusable()
        return units

    def _disputed(self, intent: dict[str, Any]) -> int:
        disputes = self._list("disputes", payment_intent=intent["id"])
        return sum(int(each["amount"]) for each in disputes if each["status"] in _TAKEN)

    def _list(self, path: str, **query: str) -> list[dict[str, Any]]:
        objects: list[dict[str, Any]] = []
        parameters = {**query, "limit": "100"}
        while True:
            page = self._call("GET", path, params=parameters)
            objects += page.get("data") or ()
            if not page.get("has_more"):
                return objects
            parameters["starting_after"] = objects[-1]["id"]

    def _call_if_allowed(self, path: str) -> dict[str, Any]:
        try:
            return self._call("GET", path)
        except ProviderError:
            return {}

    def _refund_state(self, refund: object) -> RefundState:
        match refund:
            case {
                "id": str(refund_id),
                "status": status,
                "amount": int(amount),
                "currency": str(currency),
                "created": int(at),
            }:
                return RefundState(
                    refund_id,
                    _REFUND_STATUS.get(status, "pending"),
                    self._minor_units(amount, currency=currency.upper()),
                    datetime.fromtimestamp(at, UTC),
                )
        raise self._client.unusable()


def _their_units(amount: int, currency: str) -> int:
    units = stripe_units.to_stripe(amount, currency)
    if units is not None:
        return units
    if currency in stripe_units.NOT_TAKEN:
        msg = f"Stripe does not take payments in {currency}."
    else:
        least = currencies.plain(stripe_units.step(currency), currency)
        msg = f"Stripe takes amounts in {currency} that are multiples of {least}."
    raise ProviderError(msg)


def _status(status: str, *, payment_status: str) -> PaymentStatus:
    match status, payment_status:
        case "complete", "paid":
            return "succeeded"
        case "expired", _:
            return "expired"
    return "pending"


def _moment(seconds: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int) else None
    except (ValueError, OverflowError, OSError):
        return None


def _seconds(at: datetime) -> int:
    return int(at.timestamp())

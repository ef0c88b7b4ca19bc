"""Pages of the test merchant of ``make dev`` at ``/dev/pay``, which moves no money.

The service creates its payments (``gateways.payments.local_merchant``). A developer settles a
payment on the page ``/dev/pay/{id}``, and chooses how its notification is sent.
"""

import json
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any, Literal
from urllib.parse import parse_qs

import requests

from chalicelib.core.errors import MethodNotAllowedError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.gateways.payments import PaymentStatus
from chalicelib.gateways.payments.local_merchant import (
    PATH,
    read_payment,
    return_payment,
    settle_payment,
)
from chalicelib.transports.http import HttpRequest, HttpResponse, redirect
from infra.local.devserver import inboxes
from infra.local.devserver.api_gateway import LocalRoute

LATE_SECONDS = 20
NOTIFICATIONS = {"once": [0], "late": [LATE_SECONDS], "twice": [0, 1], "never": []}
"""Seconds after which notifications are sent, by what the developer chooses."""
STATUSES: dict[str, PaymentStatus] = {"pay": "succeeded", "decline": "failed"}
RETURNS: dict[str, tuple[Literal["returned", "disputed"], bool]] = {
    "return": ("returned", True),
    "dispute": ("disputed", True),
    "win": ("disputed", False),
}
"""What happens to a paid payment, and whether to its whole amount."""
NEWEST = 100
"""Payments in the list, newest first."""


def serve(request: HttpRequest) -> HttpResponse:
    """Show a payment or the newest payments, or settle a payment."""
    payment_id = request.path.get("proxy", "")
    if not payment_id:
        return inboxes.page("payments.html", path=PATH, payments=_newest())
    payment = read_payment(payment_id)
    if payment is None:
        msg = f"No such payment. The list of payments is at {PATH}."
        raise NotFoundError(msg)
    match request.method:
        case "GET" | "HEAD":
            return inboxes.page("payment.html", path=PATH, id=payment_id, payment=payment)
        case "POST":
            form = parse_qs(request.body.decode())
            _settle(payment_id, payment, form)
            return redirect(payment["return_url"])
    raise MethodNotAllowedError("A payment takes GET and POST.", headers={"Allow": "GET, POST"})


def _settle(payment_id: str, payment: dict[str, Any], form: dict[str, list[str]]) -> None:
    """Let the client pay or fail, or the money go back, and send the notifications.

    After any other action the payment waits.
    """
    action = form.get("action", [""])[0]
    if action in STATUSES:
        settle_payment(payment_id, STATUSES[action])
    elif action in RETURNS and payment["status"] == "succeeded":
        how, is_whole = RETURNS[action]
        return_payment(payment_id, how, payment["amount"] if is_whole else 0)
    else:
        return
    for seconds in NOTIFICATIONS.get(form.get("notification", [""])[0], [0]):
        Timer(seconds, partial(_notify, payment_id, shop_id=payment["shop_id"])).start()


def _notify(payment_id: str, *, shop_id: str) -> None:
    """Send a notification to every account with a shop id."""
    # The table has rows of other classes, which ``MerchantRow`` cannot read.
    is_account = (MerchantRow.provider == "test") & (MerchantRow.shop_id == shop_id)
    for row in MerchantRow.scan(is_account):
        url = f"{settings().public_url}/api/public/payments/hooks/{row.merchant_id}"
        requests.post(url, json={"payment": payment_id}, timeout=30)


def _newest() -> list[tuple[str, dict[str, Any]]]:
    folder = Path(settings().object_store.partition("://")[2]) / ".payments"
    files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    return [(file.stem, json.loads(file.read_bytes())) for file in files[:NEWEST]]


ROUTES = (LocalRoute(PATH, serve), LocalRoute(f"{PATH}/", serve))

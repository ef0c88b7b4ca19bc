"""A receiver of webhooks in development, at ``/dev/webhooks``.

The demo has a webhook with this URL. A page shows the requests, and whether the signature of
each is right. Requests are kept until the process ends.
"""

import json
import os
from collections import deque
from pathlib import Path
from typing import NamedTuple

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from chalicelib.core import clock
from chalicelib.core.errors import MethodNotAllowedError
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local.data_dir import DataDir
from infra.local.devserver import inboxes
from infra.local.devserver.api_gateway import LocalRoute

PATH = "/dev/webhooks"
KEPT = 50
"""Requests that are kept."""


class Received(NamedTuple):
    """A request.

    ``verified`` can be None, if the webhook's secret is not known here.
    """

    at: str
    id: str
    body: str
    verified: bool | None


received: deque[Received] = deque(maxlen=KEPT)


def serve(request: HttpRequest) -> HttpResponse:
    """Take a request of a webhook, or show the received ones, newest first."""
    match request.method:
        case "GET" | "HEAD":
            return inboxes.page("webhooks.html", received=list(reversed(received)))
        case "POST":
            received.append(
                Received(
                    f"{clock.now():%H:%M:%S}",
                    request.headers.get("webhook-id", ""),
                    _indented(request.body),
                    _is_verified(request),
                )
            )
            return HttpResponse(204, b"", {})
    raise MethodNotAllowedError("Webhooks are sent by POST.", headers={"Allow": "GET, POST"})


def _is_verified(request: HttpRequest) -> bool | None:
    secret = DataDir(Path(os.environ["DATA_DIR"])).demo.get("webhookSecret")
    if not secret:
        return None
    try:
        Webhook(secret).verify(request.body, dict(request.headers))
    except WebhookVerificationError:
        return False
    return True


def _indented(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body.decode(errors="replace")


ROUTES = (LocalRoute(PATH, serve),)

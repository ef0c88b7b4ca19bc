"""A stand-in for the messenger MAX in development, at ``/dev/max``.

It has one bot and one user. The service reaches it by the methods of the Bot API that it uses. What
a developer writes on the page goes to the webhook of the service, as MAX sends it.
"""

import json
from collections import deque
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import requests

from chalicelib.core import clock
from chalicelib.core.errors import MethodNotAllowedError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.gateways import max_messenger
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse, redirect
from chalicelib.transports.routes import MAX_PATH
from infra.local.devserver import inboxes
from infra.local.devserver.api_gateway import LocalRoute

PATH = "/dev/max"
TOKEN = "local"  # noqa: S105  it opens nothing but this module
BOT = "local_bot"
USER = {"user_id": 1, "first_name": "Demo", "username": None, "is_bot": False}
KEPT = 200
"""Messages that are kept."""
SECONDS = 10.0
START = "/start "


class Message(NamedTuple):
    """A message of the dialog. ``is_ours`` is true if the service sent it."""

    at: str
    text: str
    is_ours: bool


messages: deque[Message] = deque(maxlen=KEPT)


def serve(request: HttpRequest) -> HttpResponse:
    """Respond to a method of the Bot API, show the dialog, or send what the developer writes."""
    path = request.path["proxy"]
    if "authorization" in request.headers:
        return _method(request, path)
    if path not in {"", BOT}:
        msg = f"No such page. The dialog is at {PATH}."
        raise NotFoundError(msg)
    match request.method:
        case "GET" | "HEAD":
            code = request.query.get("start", [""])[0]
            draft = f"{START}{code}" if code else ""
            return inboxes.page("max.html", path=PATH, messages=list(messages), draft=draft)
        case "POST":
            text = parse_qs(request.body.decode()).get("text", [""])[0].strip()
            if text:
                _add(text, is_ours=False)
                _send_update(_update(text))
            return redirect(PATH)
    raise MethodNotAllowedError("The dialog takes GET and POST.", headers={"Allow": "GET, POST"})


def _method(request: HttpRequest, path: str) -> HttpResponse:
    if request.headers["authorization"] != TOKEN:
        return _json(401, {"code": "verify.token", "message": "Invalid access_token"})
    match request.method, path:
        case "GET", "me":
            return _json(200, {"user_id": 2, "first_name": "Local bot", "username": BOT})
        case "POST", "messages":
            _add(json.loads(request.body)["text"], is_ours=True)
            return _json(200, {"message": {}})
        case "GET", "subscriptions":
            return _json(200, {"subscriptions": [{"url": settings().public_url + MAX_PATH}]})
    return _json(404, {"code": "not.found", "message": "No such method"})


def _update(text: str) -> dict[str, Any]:
    now = int(clock.now().timestamp() * 1000)
    shared = {"timestamp": now, "user_locale": "en"}
    if text.startswith(START):  # as the link to the bot does
        kind = {"update_type": "bot_started", "payload": text.removeprefix(START).strip()}
        return {**kind, **shared, "chat_id": 1, "user": USER}
    message = {
        "sender": USER,
        "recipient": {"chat_id": 1, "chat_type": "dialog", "user_id": 2},
        "timestamp": now,
        "body": {"mid": f"mid.{now}", "seq": now, "text": text},
    }
    return {"update_type": "message_created", **shared, "message": message}


def _send_update(update: dict[str, Any]) -> None:
    headers = {max_messenger.SECRET_HEADER: max_messenger.webhook_secret()}
    url = settings().public_url + MAX_PATH
    reply = requests.post(url, json=update, headers=headers, timeout=SECONDS)
    if not reply.ok:  # MAX would send the update again for eight hours.
        _add(f"The webhook has answered with status {reply.status_code}.", is_ours=True)


def _add(text: str, *, is_ours: bool) -> None:
    messages.append(Message(f"{clock.now():%H:%M:%S}", text, is_ours))


def _json(status: int, answer: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status, json.dumps(answer).encode(), {"Content-Type": JSON_TYPE})


ROUTES = (LocalRoute(PATH, serve), LocalRoute(f"{PATH}/", serve))

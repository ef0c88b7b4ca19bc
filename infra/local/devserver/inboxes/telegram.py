"""A stand-in for Telegram in development, at ``/dev/telegram``.

It has one bot and one chat. The service reaches it by the methods of the Bot API that it uses, and
a developer reads and writes the chat on a page. Messages are kept until the process ends.
"""

import json
import re
from collections import deque
from threading import Condition
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from chalicelib.core import clock
from chalicelib.core.errors import MethodNotAllowedError, NotFoundError
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse, redirect
from infra.local.devserver import inboxes
from infra.local.devserver.api_gateway import Handler, LocalRoute

PATH = "/dev/telegram"
TOKEN = "1:local"  # noqa: S105  it opens nothing but this module
BOT = "local_bot"
CHAT = {"id": 1, "first_name": "Demo", "type": "private"}
WAIT_SECONDS = 1.0
"""How long a request for updates waits at most. A longer one would delay the server's end."""
KEPT = 200
"""Messages that are kept, and updates that wait for the service."""

_METHOD = re.compile(r"bot([^/]+)/(\w+)")


class Message(NamedTuple):
    """A message of the chat.

    ``is_ours`` is true if the service sent the message.
    """

    at: str
    text: str
    is_ours: bool


class Chat:
    """The messages of the chat, and the updates that the service has not read."""

    def __init__(self) -> None:
        self.messages: deque[Message] = deque(maxlen=KEPT)
        self._updates: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._changed = Condition()
        # Updates have increasing ids, after a restart, too.
        self._next_id = int(clock.now().timestamp())

    def clear(self) -> None:
        """Remove all messages and updates."""
        with self._changed:
            self.messages.clear()
            self._updates.clear()

    def write(self, text: str) -> None:
        """Add a message of the developer, which becomes an update."""
        with self._changed:
            self._next_id += 1
            sender = {"id": CHAT["id"], "is_bot": False, "first_name": CHAT["first_name"]}
            message = {"message_id": self._next_id, "from": sender, "chat": CHAT, "text": text}
            message["date"] = int(clock.now().timestamp())
            self._updates.append({"update_id": self._next_id, "message": message})
            self._add(text, is_ours=False)
            self._changed.notify_all()

    def bot(self, _: dict[str, Any]) -> object:
        """Return the bot."""
        return {"id": 1, "is_bot": True, "first_name": "Local bot", "username": BOT}

    def send(self, args: dict[str, Any]) -> object:
        """Add a message of the service."""
        with self._changed:
            self._add(args["text"], is_ours=True)
        return {"message_id": len(self.messages), "chat": CHAT}

    def updates(self, args: dict[str, Any]) -> object:
        """Return the updates from an offset on, or wait for the first such update."""
        with self._changed:
            while self._updates and self._updates[0]["update_id"] < args.get("offset", 0):
                self._updates.popleft()
            if not self._updates:
                self._changed.wait(min(args.get("timeout", 0), WAIT_SECONDS))
            return list(self._updates)

    def webhook(self, _: dict[str, Any]) -> object:
        """Report that no webhook is set, so that the service asks for updates."""
        return {"url": "", "pending_update_count": len(self._updates)}

    def _add(self, text: str, *, is_ours: bool) -> None:
        self.messages.append(Message(f"{clock.now():%H:%M:%S}", text, is_ours))


chat = Chat()
METHODS = {
    "getMe": chat.bot,
    "getUpdates": chat.updates,
    "getWebhookInfo": chat.webhook,
    "sendMessage": chat.send,
}
"""The methods of the Bot API that the service uses under ``make dev``."""


def serve(request: HttpRequest) -> HttpResponse:
    """Respond to a method of the Bot API, show the chat, or add what the developer writes."""
    if match := _METHOD.fullmatch(request.path["proxy"]):
        return _method(request, match[1], name=match[2])
    if request.path["proxy"] not in {"", BOT}:
        msg = f"No such page. The chat is at {PATH}."
        raise NotFoundError(msg)
    match request.method:
        case "GET" | "HEAD":
            code = request.query.get("start", [""])[0]
            draft = f"/start {code}" if code else ""
            return inboxes.page(
                "telegram.html", path=PATH, messages=list(chat.messages), draft=draft
            )
        case "POST":
            text = parse_qs(request.body.decode()).get("text", [""])[0].strip()
            if text:
                chat.write(text)
            return redirect(PATH)
    raise MethodNotAllowedError("The chat takes GET and POST.", headers={"Allow": "GET, POST"})


def _method(request: HttpRequest, token: str, *, name: str) -> HttpResponse:
    if token != TOKEN:
        return _json(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
    if name not in METHODS:
        return _json(404, {"ok": False, "error_code": 404, "description": "Not Found"})
    args = json.loads(request.body or b"{}")
    return _json(200, {"ok": True, "result": METHODS[name](args)})


def _json(status: int, answer: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status, json.dumps(answer).encode(), {"Content-Type": JSON_TYPE})


def _run(request: HttpRequest, handler: Handler) -> HttpResponse:
    """Run the handler without a line in the log, because the service asks each second."""
    return handler(request)


ROUTES = (LocalRoute(PATH, serve), LocalRoute(f"{PATH}/", serve, run=_run))

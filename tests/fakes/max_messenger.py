"""The Bot API of the messenger MAX, with the responses that its documentation describes."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.gateways import max_messenger as gateway
from tests.fakes import JsonServer, ReceivedRequest

TOKEN = "f9LHodD0cOL-test_token"
NAME = "t1_workspace_bot"


def failure(status: int, code: str, message: str = "") -> tuple[int, Any]:
    """Return the status and the JSON of a refused request."""
    return status, {"code": code, "message": message or code}


STOPPED = failure(403, "chat.denied", "error.dialog.suspended")
BUSY = failure(429, "too.many.requests")


class FakeMax(JsonServer):
    """A bot that any user takes messages of.

    ``failures`` are the next responses to messages, in place of success.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[int, Any]] = []
        self.subscriptions: list[dict[str, Any]] = []
        self.sent_messages: list[tuple[int, str]] = []

    @property
    def texts(self) -> list[str]:
        """The messages that were delivered."""
        return [text for _, text in self.sent_messages]

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:  # noqa: PLR0911  one a method
        if request.headers.get("authorization") != TOKEN:
            return failure(401, "verify.token", "Invalid access_token")
        match request.method, request.path:
            case "GET", "/me":
                return 200, {"user_id": 9, "first_name": "Bot", "username": NAME, "is_bot": True}
            case "POST", "/messages":
                return self._send(request)
            case "GET", "/subscriptions":
                return 200, {"subscriptions": self.subscriptions}
            case "POST", "/subscriptions":
                self.subscriptions.append({"time": 1, **json.loads(request.body)})
                return 200, {"success": True}
            case "DELETE", "/subscriptions":
                url = request.query["url"]
                self.subscriptions = [each for each in self.subscriptions if each["url"] != url]
                return 200, {"success": True}
        return failure(404, "not.found")

    def _send(self, request: ReceivedRequest) -> tuple[int, Any]:
        if self.failures:
            return self.failures.pop(0)
        user, text = int(request.query["user_id"]), json.loads(request.body)["text"]
        self.sent_messages.append((user, text))
        return 200, {"message": {"recipient": {"user_id": user, "chat_type": "dialog"}}}


def started(user_id: int, payload: str | None, timestamp: int = 1, **fields: Any) -> Any:
    """Return the update of a user who presses the button that starts the bot."""
    update = {
        "update_type": "bot_started",
        "timestamp": 1_790_000_000_000 + timestamp,
        "chat_id": 1000 + user_id,
        "user": {"user_id": user_id, "first_name": "Ада", "is_bot": False, "username": None},
        "payload": payload,
        "user_locale": "ru",
    }
    return update | fields


def said(user_id: int, text: str | None, mid: str, **fields: Any) -> Any:
    """Return the update of a message that a user writes to the bot."""
    update = {
        "update_type": "message_created",
        "timestamp": 1_790_000_000_000,
        "message": {
            "sender": {"user_id": user_id, "first_name": "Ада", "is_bot": False},
            "recipient": {"chat_id": 1000 + user_id, "chat_type": "dialog", "user_id": 9},
            "timestamp": 1_790_000_000_000,
            "body": {"mid": mid, "seq": 1, "text": text, "attachments": None},
        },
        "user_locale": "ru",
    }
    return update | fields


@pytest.fixture
def max_bot(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[FakeMax]:
    """MAX, with a bot that the service is configured for."""
    with FakeMax() as server:
        monkeypatch.setenv("MAX_URL", server.url)
        monkeypatch.setenv("MAX_TOKEN", TOKEN)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        reload_settings()
        yield server
        gateway._bot_name.cache_clear()

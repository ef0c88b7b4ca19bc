"""Telegram's Bot API, with the responses that its documentation and its users describe."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.gateways import telegram as gateway
from tests.fakes import JsonServer, ReceivedRequest

TOKEN = "123456:AAE-test_token"
NAME = "workspace_test_bot"


def failure(status: int, description: str, **parameters: Any) -> tuple[int, Any]:
    """Return the status and the JSON of a refused request."""
    error_fields = {"parameters": parameters} if parameters else {}
    return status, {"ok": False, "error_code": status, "description": description, **error_fields}


class FakeTelegram(JsonServer):
    """A bot without chats of its own: every chat id exists.

    ``failures`` are the next responses to ``sendMessage``, in place of success. ``pending`` are the
    updates that the bot has not confirmed, and ``error`` is the last error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[int, Any]] = []
        self.pending: list[dict[str, Any]] = []
        self.webhook: dict[str, Any] = {"url": ""}
        self.error = ""
        self.sent_messages: list[dict[str, Any]] = []

    @property
    def texts(self) -> list[str]:
        """The messages that were delivered."""
        return [message["text"] for message in self.sent_messages]

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        _, bot, method = request.path.split("/")
        if bot != f"bot{TOKEN}":
            return failure(401, "Unauthorized")
        args = json.loads(request.body)
        result = getattr(self, method)(args)
        return result if isinstance(result, tuple) else (200, {"ok": True, "result": result})

    def getMe(self, args: dict[str, Any]) -> Any:  # noqa: N802  Telegram's name, as below
        return {"id": 123456, "is_bot": True, "first_name": "Bot", "username": NAME}

    def sendMessage(self, args: dict[str, Any]) -> Any:  # noqa: N802
        if self.failures:
            return self.failures.pop(0)
        self.sent_messages.append(args)
        return {"message_id": len(self.sent_messages), "chat": {"id": args["chat_id"]}}

    def getUpdates(self, args: dict[str, Any]) -> Any:  # noqa: N802
        if self.webhook["url"]:
            return failure(409, "Conflict: can't use getUpdates method while webhook is active")
        self.pending = [
            pending_update
            for pending_update in self.pending
            if pending_update["update_id"] >= args["offset"]
        ]
        return self.pending

    def setWebhook(self, args: dict[str, Any]) -> Any:  # noqa: N802
        self.webhook = args
        return True

    def deleteWebhook(self, args: dict[str, Any]) -> Any:  # noqa: N802
        self.webhook = {"url": ""}
        return True

    def getWebhookInfo(self, args: dict[str, Any]) -> Any:  # noqa: N802
        state = {"url": self.webhook["url"], "pending_update_count": len(self.pending)}
        return state | ({"last_error_message": self.error} if self.error else {})


def update(update_id: int, chat_id: int, text: str, **fields: Any) -> dict[str, Any]:
    """Return the update of a message that a user sends to the bot in a private chat."""
    person = {"id": chat_id, "is_bot": False, "first_name": "Ada", "language_code": "en"}
    return {
        "update_id": update_id,
        "message": {
            "message_id": update_id,
            "from": person | fields,
            "chat": {"id": chat_id, "first_name": "Ada", "type": "private"},
            "date": 1_790_000_000,
            "text": text,
        },
    }


@pytest.fixture
def telegram(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[FakeTelegram]:
    """Telegram, with a bot that the service is configured for."""
    with FakeTelegram() as server:
        monkeypatch.setenv("TELEGRAM_URL", server.url)
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        reload_settings()
        yield server
        gateway._bot_name.cache_clear()

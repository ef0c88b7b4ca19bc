"""Send messages with Telegram's Bot API, and receive the bot's updates.

https://core.telegram.org/bots/api describes the methods. The token of the bot is a part of each
URL, so no error and no log line of this module contains a URL.
"""

import hmac
import re
from functools import cache
from typing import Any

from chalicelib.core.deadline import Deadline
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import refuse_from_test
from chalicelib.gateways.json_api import JsonApiError, post_json
from chalicelib.gateways.messenger_errors import BusyError, ChatGoneError, MessengerError
from chalicelib.gateways.secrets_manager import UnreadableSecretError, value_of

MAX_TEXT = 4096  # UTF-16 code units
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105  a header's name
SECONDS = 10.0  # of a request
POLL_SECONDS = 25  # Telegram waits for an update this long.

_FAILED = range(400, 600)
_BUSY = 429
# Parts of descriptions of chats that take no more messages, by status. Other refusals with these
# statuses may pass: Telegram also sends 403 "bot can't send messages to the user" for minutes to
# chats that take messages before and after.
_GONE = {
    400: ("chat not found", "user not found"),
    403: ("blocked by the user", "user is deactivated", "was kicked"),
}
_TOKEN = re.compile(r"[0-9]+:[\w-]+", re.ASCII)
_SERVICE = "Telegram"


def is_configured() -> bool:
    """Return whether this stage has a bot.

    Raises:
        MessengerError: the secret with the token cannot be read.
    """
    return bool(_token())


def send(chat_id: int, text: str, *, origin: str) -> None:
    """Send a plain message to a chat. A message over the limit is cut.

    ``origin`` is the workspace that causes it, or ``PLATFORM``.

    Raises:
        InTestWorkspaceError: a test workspace causes the message.
        ChatGoneError: the chat takes no more messages from the bot.
        BusyError: the bot has sent too much.
        MessengerError: another failure. The message may have been sent.
        NotConfiguredError: the stage has no bot.
    """
    refuse_from_test(origin)
    _call("sendMessage", message(chat_id, text))


def message(chat_id: int, text: str) -> dict[str, Any]:
    """Return the parameters of ``sendMessage``, without a parse mode, so nothing is markup."""
    return {
        "chat_id": chat_id,
        "text": _cut(text),
        "link_preview_options": {"is_disabled": True},
    }


def start_url(code: str) -> str:
    """Return the URL that opens the chat with the bot and sends the code. Raises as ``send``."""
    return f"{settings().telegram_links}/{bot_name()}?start={code}"


def bot_name() -> str:
    """Return the user name of the bot, without ``@``. It is read once a process.

    Raises:
        MessengerError: the request failed.
        NotConfiguredError: the stage has no bot.
    """
    return _bot_name(settings().telegram_url, token=_token())


@cache
def _bot_name(url: str, *, token: str) -> str:  # noqa: ARG001  the key of the cache
    return str(_call("getMe", {})["username"])


def updates(offset: int, *, wait: int = POLL_SECONDS) -> list[dict[str, Any]]:
    """Return the updates from ``offset`` on, after at most ``wait`` seconds.

    Telegram removes the updates before ``offset``. It refuses the call if the bot has a webhook.
    Raises MessengerError or NotConfiguredError, as the calls below.
    """
    args = {"offset": offset, "timeout": wait, "allowed_updates": ["message"]}
    updates: list[dict[str, Any]] = _call("getUpdates", args, timeout_seconds=wait + SECONDS)
    return updates


def webhook_secret() -> str:
    """Return the secret that Telegram sends with each update, which follows from the token.

    Raises:
        MessengerError: the secret with the token cannot be read.
        NotConfiguredError: the stage has no bot.
    """
    return hmac.digest(_required_token().encode(), b"telegram webhook", "sha256").hex()


def set_webhook(url: str) -> None:
    """Make Telegram send the bot's updates to a URL.

    Raises MessengerError if the request fails, and NotConfiguredError if the stage has no bot.
    """
    args = {"url": url, "secret_token": webhook_secret(), "allowed_updates": ["message"]}
    _call("setWebhook", args)


def delete_webhook() -> None:
    """Make Telegram keep the bot's updates for ``updates``. Raises as ``set_webhook``."""
    _call("deleteWebhook", {})


def webhook(token: str | None = None) -> dict[str, Any]:
    """Return Telegram's state of the webhook, by default of the stage's bot.

    Its ``url`` is empty without a webhook. Raises as ``set_webhook``.
    """
    state: dict[str, Any] = _call("getWebhookInfo", {}, token=token)
    return state


def _call(
    method: str, args: dict[str, Any], timeout_seconds: float = SECONDS, token: str | None = None
) -> Any:  # noqa: ANN401  any JSON value
    url = f"{settings().telegram_url}/bot{token or _required_token()}/{method}"
    try:
        answer = post_json(
            _SERVICE,
            url=url,
            body=args,
            deadline=Deadline(timeout_seconds),
            statuses={200, *_FAILED},
        )
    except JsonApiError as error:
        # The cause may contain the URL, of which the token is a part.
        raise MessengerError(error.reason) from None
    match answer:
        case {"ok": True, "result": result}:
            return result
        case {"ok": False, "error_code": int(status), "description": str(why), **more}:
            raise _error(method, status, why, more.get("parameters"))
    msg = f"{_SERVICE} sent an unknown response to {method}"
    raise MessengerError(msg)


def _error(method: str, status: int, description: str, parameters: object) -> MessengerError:
    if status == _BUSY:
        # Telegram names the wait in seconds, but the field may be missing.
        match parameters:
            case {"retry_after": int(seconds)}:
                return BusyError(_SERVICE, max(seconds, 1))
        return BusyError(_SERVICE, 1)
    if any(phrase in description.lower() for phrase in _GONE.get(status, ())):
        return ChatGoneError(f"{_SERVICE} has no such chat for the bot any more")
    return MessengerError(f"{_SERVICE} refused {method} with status {status}")


def _required_token() -> str:
    if token := _token():
        return token
    raise NotConfiguredError("The operator has not set up a Telegram bot.", key="telegram")


def _token() -> str:
    current = settings()
    try:
        token = current.telegram_bot_token or value_of(current.telegram_bot_token_secret)
    except UnreadableSecretError as error:
        msg = f"the token of the Telegram bot cannot be read: {error}"
        raise MessengerError(msg) from None
    if token and not _TOKEN.fullmatch(token):
        raise MessengerError("the token of the Telegram bot is malformed")
    return token


def _cut(text: str) -> str:
    encoded = text.encode("utf-16-le", errors="replace")
    if len(encoded) <= 2 * MAX_TEXT:
        return encoded.decode("utf-16-le")
    # The cut may divide a pair of surrogates, whose first half is dropped.
    return encoded[: 2 * (MAX_TEXT - 1)].decode("utf-16-le", errors="ignore") + "…"

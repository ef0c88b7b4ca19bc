"""Send messages with the Bot API of the messenger MAX, and register the webhook of the bot.

https://dev.max.ru/docs-api describes the methods. The token of the bot is in a header, and no error
and no log line of this module contains it. The hosts of MAX may have a certificate that the usual
authorities have not signed, so ``MAX_CA`` adds an authority for requests of this module only.
"""

import hmac
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from chalicelib.core.deadline import Deadline
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import refuse_from_test
from chalicelib.gateways.json_api import JsonApiError, JsonResponse, request_json
from chalicelib.gateways.messenger_errors import BusyError, ChatGoneError, MessengerError
from chalicelib.gateways.secrets_manager import UnreadableSecretError, value_of

MAX_TEXT = 4000  # characters (POST /messages)
SECRET_HEADER = "X-Max-Bot-Api-Secret"  # noqa: S105  a header's name
SECONDS = 10.0  # of a request
UPDATES = ("bot_started", "bot_stopped", "message_created")

_SUCCESS = 200
_BUSY = 429
_BUSY_SECONDS = 1.0  # MAX names no wait; a chat takes two messages a second
_FAILED = range(400, 600)
# Parts of codes and messages of errors by chats that take no more messages: the user has stopped
# the bot or removed the dialog, or there is no such user.
_GONE = ("dialog.suspended", "dialog.notfound", "dialog.not.found", "chat.not.found")
_GONE_STATUSES = {403, 404}
# Visible ASCII, as a header takes it.
_TOKEN = re.compile(r"[!-~]+", re.ASCII)
_SERVICE = "MAX"


def is_configured() -> bool:
    """Return whether this stage has a bot, or raise MessengerError."""
    return bool(_token())


def send(chat_id: int, text: str, *, origin: str) -> None:
    """Send a plain message to the dialog with a user. A message over the limit is cut.

    ``chat_id`` is the id of the user: MAX tells the ids of dialogs only to some methods.
    ``origin`` is the workspace that causes it, or ``PLATFORM``.

    Raises:
        InTestWorkspaceError: a test workspace causes the message.
        ChatGoneError: the user takes no more messages from the bot.
        BusyError: the bot has sent too much.
        MessengerError: another failure. The message may have been sent.
        NotConfiguredError: the stage has no bot.
    """
    refuse_from_test(origin)
    # Without a format, nothing in the text is markup.
    query = {"user_id": chat_id, "disable_link_preview": "true"}
    _call("POST", "/messages", query=query, body={"text": _cut(text)})


def start_url(code: str) -> str:
    """Return the URL that opens the chat with the bot and sends the code. Raises as ``send``."""
    return f"{settings().max_links}/{bot_name()}?start={code}"


def bot_name() -> str:
    """Return the user name of the bot. It is read once a process.

    Raises:
        MessengerError: the request failed.
        NotConfiguredError: the stage has no bot.
    """
    return _bot_name(settings().max_url, token=_required_token())


@cache
def _bot_name(url: str, *, token: str) -> str:  # noqa: ARG001  the key of the cache
    match _call("GET", "/me"):
        case {"username": str(name)} if name:
            return name
    msg = f"{_SERVICE} sent no user name of the bot"
    raise MessengerError(msg)


def webhook_secret() -> str:
    """Return the secret that MAX sends with each update, which follows from the token.

    Raises:
        MessengerError: the secret with the token cannot be read.
        NotConfiguredError: the stage has no bot.
    """
    return hmac.digest(_required_token().encode(), b"max webhook", "sha256").hex()


def set_webhook(url: str) -> None:
    """Make MAX send the bot's updates to a URL, and to no other.

    Raises MessengerError if a request fails, and NotConfiguredError if the stage has no bot.
    """
    for other in webhooks():
        if other != url:
            delete_webhook(other)
    body = {"url": url, "update_types": list(UPDATES), "secret": webhook_secret()}
    _require_success(_call("POST", "/subscriptions", body=body), "/subscriptions")


def delete_webhook(url: str) -> None:
    """Make MAX send no updates to a URL. Raises as ``set_webhook``."""
    _require_success(_call("DELETE", "/subscriptions", query={"url": url}), "/subscriptions")


def webhooks(token: str | None = None) -> list[str]:
    """Return the URLs that get the updates, by default of the stage's bot.

    Raises as ``set_webhook``.
    """
    match _call("GET", "/subscriptions", token=token):
        case {"subscriptions": list(found)}:
            return [str(each["url"]) for each in found if isinstance(each, dict) and "url" in each]
    msg = f"{_SERVICE} sent an unknown list of subscriptions"
    raise MessengerError(msg)


def _require_success(response: object, path: str) -> None:
    match response:
        case {"success": True}:
            return
    # The message may name the URL, which is no secret, but also anything else.
    msg = f"{_SERVICE} refused {path}"
    raise MessengerError(msg)


def _call(
    method: str,
    path: str,
    *,
    query: dict[str, Any] | None = None,
    body: dict[str, Any] | None = None,
    token: str | None = None,
) -> object:
    content: dict[str, Any] = {
        "headers": {"Authorization": token or _required_token()},
        "verify": _authorities(settings().max_ca),
    }
    if query:
        content["params"] = query
    if body is not None:
        content["json"] = body
    try:
        response = request_json(
            _SERVICE,
            method=method,
            url=settings().max_url + path,
            content=content,
            deadline=Deadline(SECONDS),
            statuses={_SUCCESS, *_FAILED},
        )
    except JsonApiError as error:
        raise MessengerError(error.reason) from None
    if response.status == _SUCCESS:
        return response.body
    raise _error(path, response)


def _error(path: str, response: JsonResponse) -> MessengerError:
    if response.status == _BUSY:
        return BusyError(_SERVICE, _BUSY_SECONDS)
    match response.body:
        case {"code": code, "message": message}:
            reason = f"{code} {message}".lower()
            if response.status in _GONE_STATUSES and any(part in reason for part in _GONE):
                return ChatGoneError(f"{_SERVICE} has no such chat for the bot any more")
    return MessengerError(f"{_SERVICE} refused {path} with status {response.status}")


def _required_token() -> str:
    if token := _token():
        return token
    raise NotConfiguredError("The operator has not set up a bot at MAX.", key="max")


def _token() -> str:
    current = settings()
    try:
        token = current.max_token or value_of(current.max_token_secret)
    except UnreadableSecretError as error:
        msg = f"the token of the bot at MAX cannot be read: {error}"
        raise MessengerError(msg) from None
    if token and not _TOKEN.fullmatch(token):
        raise MessengerError("the token of the bot at MAX is malformed")
    return token


@cache
def _authorities(extra: str) -> str | bool:
    # The usual authorities stay: the hosts may get a certificate of one of them again.
    if not extra:
        return True
    from certifi import where  # of ``requests``

    usual = Path(where()).read_text("ascii", errors="ignore")
    pem = extra if extra.startswith("-----") else Path(extra).read_text("ascii")
    # ``requests`` takes a path only. The file lives as long as the process.
    with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as file:
        file.write(f"{usual}\n{pem}\n")
    return file.name


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"

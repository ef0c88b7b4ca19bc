"""The webhook of the Telegram bot.

Telegram repeats an update until it gets status 200. The body of the response is the bot's reply to
the chat, so the request calls no other service (Bot API, Making requests when getting updates).
"""

import hmac
import json

from chalicelib.core.errors import ForbiddenError, NotFoundError, UpstreamFailedError
from chalicelib.domains.notifications.flows import messenger_chats
from chalicelib.gateways import telegram
from chalicelib.gateways.messenger_errors import MessengerError
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse, parse_json


def serve(request: HttpRequest) -> HttpResponse:
    """Carry out an update, which Telegram repeats after an error.

    Raises:
        NotFoundError: this stage has no bot.
        ForbiddenError: the request is not from Telegram.
        UpstreamFailedError: the bot's token cannot be read.
        UnavailableError: the database is unavailable.
    """
    _check_sender(request)
    try:
        update = parse_json(request.body)
    except ValueError:
        return HttpResponse(200, b"")
    reply = messenger_chats.receive("telegram", update)
    if reply is None:
        return HttpResponse(200, b"")
    body = {"method": "sendMessage", **telegram.message(reply.chat_id, reply.text)}
    return HttpResponse(200, json.dumps(body).encode(), {"Content-Type": JSON_TYPE})


def _check_sender(request: HttpRequest) -> None:
    try:
        if not telegram.is_configured():
            raise NotFoundError("This stage has no Telegram bot.", key="telegram")
        secret = telegram.webhook_secret()
    except MessengerError as error:
        msg = "The token of the Telegram bot cannot be read."
        raise UpstreamFailedError(msg, key="telegram_token") from error
    header = request.headers.get(telegram.SECRET_HEADER.lower(), "")
    if not hmac.compare_digest(header.encode(errors="replace"), secret.encode()):
        raise ForbiddenError("Only Telegram can call this path.", key="wrong_secret")

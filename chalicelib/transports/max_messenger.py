"""The webhook of the bot at the messenger MAX.

MAX repeats an update until it gets status 200. The response has no room for the bot's reply, so the
request sends the reply itself. If that fails, MAX repeats the update, which gets the same reply.
"""

import hmac

from chalicelib.core.errors import ForbiddenError, NotFoundError, UpstreamFailedError
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.notifications.flows import messenger_chats
from chalicelib.gateways import max_messenger
from chalicelib.gateways.messenger_errors import ChatGoneError, MessengerError
from chalicelib.transports.http import HttpRequest, HttpResponse, parse_json


def serve(request: HttpRequest) -> HttpResponse:
    """Carry out an update, which MAX repeats after an error.

    Raises:
        NotFoundError: this stage has no bot.
        ForbiddenError: the request is not from MAX.
        UpstreamFailedError: the bot's token cannot be read, or the reply cannot be sent.
        UnavailableError: the database is unavailable.
    """
    _check_sender(request)
    try:
        update = parse_json(request.body)
    except ValueError:
        return HttpResponse(200, b"")
    reply = messenger_chats.receive("max", update)
    if reply is not None:
        try:
            max_messenger.send(reply.chat_id, reply.text, origin=PLATFORM)
        except ChatGoneError:  # There is nobody to read the reply.
            pass
        except MessengerError as error:
            raise UpstreamFailedError("MAX does not take the reply.", key="max") from error
    return HttpResponse(200, b"")


def _check_sender(request: HttpRequest) -> None:
    try:
        if not max_messenger.is_configured():
            raise NotFoundError("This stage has no bot at MAX.", key="max")
        secret = max_messenger.webhook_secret()
    except MessengerError as error:
        msg = "The token of the bot at MAX cannot be read."
        raise UpstreamFailedError(msg, key="max_token") from error
    header = request.headers.get(max_messenger.SECRET_HEADER.lower(), "")
    if not hmac.compare_digest(header.encode(errors="replace"), secret.encode()):
        raise ForbiddenError("Only MAX can call this path.", key="wrong_secret")

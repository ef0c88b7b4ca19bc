"""The messengers by which the bots of the service write to people, with one interface."""

import logging
from importlib import import_module
from typing import Protocol, cast

from chalicelib.core.messengers import Messenger
from chalicelib.core.settings import settings
from chalicelib.gateways.messenger_errors import MessengerError

log = logging.getLogger(__name__)


class Bot(Protocol):
    """The bot of this stage at a messenger. The modules of the messengers are bots."""

    def is_configured(self) -> bool:
        """Return whether this stage has a bot, or raise MessengerError."""

    def start_url(self, code: str) -> str:
        """Return the URL that opens the chat with the bot, and sends it a code.

        Raises MessengerError, or NotConfiguredError if the stage has no bot.
        """

    def send(self, chat_id: int, text: str, *, origin: str) -> None:
        """Send a plain message to a chat. ``origin`` is the workspace that causes it.

        Raises ChatGoneError, BusyError, MessengerError, NotConfiguredError or InTestWorkspaceError.
        """


_MODULES: dict[Messenger, str] = {
    "telegram": "chalicelib.gateways.telegram",
    "max": "chalicelib.gateways.max_messenger",
}


def bot(messenger: Messenger) -> Bot:
    """Return the bot of a messenger."""
    # Most requests need none of the modules.
    return cast("Bot", import_module(_MODULES[messenger]))


def may_be_ready(messenger: Messenger) -> bool:
    """Return whether this stage has a place for the token of a bot, without reading a secret."""
    current = settings()
    match messenger:
        case "telegram":
            return bool(current.telegram_bot_token or current.telegram_bot_token_secret)
        case "max":
            return bool(current.max_token or current.max_token_secret)


def is_ready(messenger: Messenger) -> bool:
    """Return whether this stage has a bot at a messenger, and its token can be read now."""
    try:
        return may_be_ready(messenger) and bot(messenger).is_configured()
    except MessengerError:
        log.warning("the token of a messenger cannot be read", extra={"messenger": messenger})
        return False

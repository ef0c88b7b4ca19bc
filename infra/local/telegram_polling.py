"""Polls Telegram for updates of the bot under ``chalice local``, which no webhook can reach."""

import logging
import threading
import time
from collections.abc import Callable

from chalicelib.core.principals import PLATFORM
from chalicelib.core.settings import settings
from chalicelib.domains.notifications.flows import messenger_chats
from chalicelib.gateways import telegram
from chalicelib.gateways.messenger_errors import BusyError, MessengerError

RETRY_SECONDS = 5.0
"""Pause after a failed request, in seconds."""

log = logging.getLogger("chalicelib.telegram_polling")


def run_in_background() -> None:
    """Start a thread that handles updates until the process ends, if there is a bot's token."""
    if settings().telegram_bot_token:
        threading.Thread(target=poll, daemon=True, name="telegram-polling").start()


def poll(
    *, stop: Callable[[], bool] = lambda: False, pause: Callable[[float], None] = time.sleep
) -> None:
    """Handle updates until ``stop`` returns True, or return immediately if a webhook is set."""
    offset, is_checked = 0, False
    while not stop():
        try:
            if not is_checked and telegram.webhook()["url"]:
                log.warning("the Telegram bot has a webhook, so its updates are not polled")
                return
            is_checked = True
            offset = answer_updates(offset)
        except BusyError as error:
            pause(error.retry_after)
        except MessengerError as error:
            log.warning("updates of the Telegram bot cannot be read: %s", error)
            pause(RETRY_SECONDS)
        except Exception:
            log.exception("updates of the Telegram bot cannot be answered")
            pause(RETRY_SECONDS)


def answer_updates(offset: int, *, wait: int = telegram.POLL_SECONDS) -> int:
    """Handle the updates from an offset on, and return the next offset.

    An update that fails is repeated, as by the webhook. A reply that cannot be sent is lost.

    Raises:
        MessengerError: Telegram cannot be reached.
    """
    for update in telegram.updates(offset, wait=wait):
        reply = messenger_chats.receive("telegram", update)
        # Telegram deletes the updates below the offset of the next request.
        offset = int(update["update_id"]) + 1
        if reply is not None:
            try:
                telegram.send(reply.chat_id, reply.text, origin=PLATFORM)
            except MessengerError as error:
                log.warning("an answer of the Telegram bot is lost: %s", error)
    return offset

"""Registers the webhook of the Telegram bot of a stage."""

from typing import Any

import click

from chalicelib.gateways import telegram
from chalicelib.gateways.messenger_errors import MessengerError
from chalicelib.transports.routes import TELEGRAM_PATH
from infra.operator.webhook_urls import webhook_url


def change(action: str) -> dict[str, Any]:
    """Set or delete the webhook, or only show it. Returns its state at Telegram afterwards.

    Raises:
        click.ClickException: the stage has no HTTPS URL, or Telegram refuses the change.
        NotConfiguredError: the stage has no bot.
    """
    try:
        if action == "set":
            telegram.set_webhook(
                webhook_url(TELEGRAM_PATH, messenger="Telegram", locally="it polls")
            )
        elif action == "delete":
            telegram.delete_webhook()
        return {"bot": telegram.bot_name(), **telegram.webhook()}
    except MessengerError as error:
        msg = f"{error}. Check the token of the bot, and try again."
        raise click.ClickException(msg) from error

"""Registers the webhook of the Telegram bot of a stage."""

from typing import Any

import click

from chalicelib.core.settings import settings
from chalicelib.gateways import telegram
from chalicelib.gateways.messenger_errors import MessengerError
from chalicelib.transports.routes import TELEGRAM_PATH


def change(action: str) -> dict[str, Any]:
    """Set or delete the webhook, or only show it. Returns its state at Telegram afterwards.

    Raises:
        click.ClickException: the stage has no HTTPS URL, or Telegram refuses the change.
        NotConfiguredError: the stage has no bot.
    """
    try:
        if action == "set":
            telegram.set_webhook(_url())
        elif action == "delete":
            telegram.delete_webhook()
        return {"bot": telegram.bot_name(), **telegram.webhook()}
    except MessengerError as error:
        msg = f"{error}. Check the token of the bot, and try again."
        raise click.ClickException(msg) from error


def _url() -> str:
    base = settings().public_url
    if not base.startswith("https://"):
        msg = (
            f"PUBLIC_URL: expected an HTTPS URL that Telegram can reach, received {base!r}. Choose"
            " a deployed stage with --stage. make dev needs no webhook: it polls."
        )
        raise click.ClickException(msg)
    return base + TELEGRAM_PATH

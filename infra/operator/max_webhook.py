"""Registers the webhook of the bot of a stage at the messenger MAX."""

from typing import Any

import click

from chalicelib.gateways import max_messenger
from chalicelib.gateways.messenger_errors import MessengerError
from chalicelib.transports.routes import MAX_PATH
from infra.operator.webhook_urls import webhook_url


def change(action: str) -> dict[str, Any]:
    """Set or delete the webhook, or only show it. Returns the URLs that get updates afterwards.

    Raises:
        click.ClickException: the stage has no HTTPS URL, or MAX refuses the change.
        NotConfiguredError: the stage has no bot.
    """
    try:
        if action == "set":
            max_messenger.set_webhook(
                webhook_url(MAX_PATH, messenger="MAX", locally="it has a MAX of its own")
            )
        elif action == "delete":
            for url in max_messenger.webhooks():
                max_messenger.delete_webhook(url)
        return {"bot": max_messenger.bot_name(), "urls": max_messenger.webhooks()}
    except MessengerError as error:
        msg = f"{error}. Check the token of the bot and MAX_CA, and try again."
        raise click.ClickException(msg) from error

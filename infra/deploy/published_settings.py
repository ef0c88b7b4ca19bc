"""Settings of a deployed stage in Parameter Store, for operators' machines."""

import re

from infra.deploy.aws.account import Account
from infra.deploy.names import APP

FOR_OPERATORS = (
    "TABLE_PREFIX",
    "OBJECT_STORE",
    "PUBLIC_URL",
    "CHAT_URL",
    "SITES_DOMAIN",
    # Webhooks, e-mails and Telegram may report what a command changes, as if the API changed it.
    "EVENTS_QUEUE_URL",
    "MASTER_KEY_SECRET",
    "TELEGRAM_BOT_TOKEN_SECRET",
    "MAIL",
    "MAIL_FROM",
    "MAIL_SMTP",
)
"""The variables that ``admin --stage`` needs. None is a secret: the password of the SMTP server is
left out, because functions send the e-mails.
"""
PASSWORD = re.compile(r"//[^/]*@")


def publish(account: Account, stage: str, variables: dict[str, str]) -> None:
    """Store each variable as a parameter, for operators' machines."""
    client, old_settings = account.client("ssm"), published(account, stage)
    for name in FOR_OPERATORS:
        if value := PASSWORD.sub("//", variables.get(name, "")):
            if old_settings.get(name) != value:
                client.put_parameter(
                    Name=_path(stage) + name, Value=value, Type="String", Overwrite=True
                )
        elif name in old_settings:
            client.delete_parameter(Name=_path(stage) + name)


def unpublish(account: Account, stage: str) -> None:
    """Delete the parameters of a stage."""
    publish(account, stage, {})


def published(account: Account, stage: str) -> dict[str, str]:
    """Return a deployed stage's variables for operators, or {} if the stage is not deployed."""
    pages = account.client("ssm").get_paginator("get_parameters_by_path")
    path = _path(stage)
    return {
        parameter["Name"].removeprefix(path): parameter["Value"]
        for page in pages.paginate(Path=path)
        for parameter in page["Parameters"]
    }


def _path(stage: str) -> str:
    return f"/{APP}/{stage}/"

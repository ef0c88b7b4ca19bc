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
    "MAX_TOKEN_SECRET",
    "TELEGRAM_BOT_TOKEN_SECRET",
    "MAIL",
    "MAIL_FROM",
    "MAIL_SMTP",
)
"""The variables that ``admin --stage`` needs. None is a secret: the password of the SMTP server is
left out, because functions send the e-mails.
"""
PASSWORD = re.compile(r"//[^/]*@")
FORMAT = "STORED_FORMAT"
"""The number of the form of the stage's rows. It stays with the data when a stage is destroyed."""


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
    parameters = _parameters(account, stage)
    return {name: parameters[name] for name in FOR_OPERATORS if name in parameters}


def stored_format(account: Account, stage: str) -> int | None:
    """Return the number of the form of a stage's rows, or None if no code was deployed to it.

    It is 0 if the stage was deployed before there was a number.
    """
    parameters = _parameters(account, stage)
    return int(parameters.get(FORMAT, 0)) if parameters else None


def publish_stored_format(account: Account, stage: str, number: int) -> None:
    """Store the number of the form of a stage's rows."""
    account.client("ssm").put_parameter(
        Name=_path(stage) + FORMAT, Value=str(number), Type="String", Overwrite=True
    )


def forget_stored_format(account: Account, stage: str) -> None:
    """Delete the number of the form of rows that were deleted, if there is one."""
    if FORMAT in _parameters(account, stage):
        account.client("ssm").delete_parameter(Name=_path(stage) + FORMAT)


def kept(account: Account, stage: str) -> list[str]:
    """Return the type and name of each parameter that stays with the data of a stage."""
    names = _parameters(account, stage).keys() & {FORMAT}
    return [f"AWS::SSM::Parameter {_path(stage)}{name}" for name in names]


def _parameters(account: Account, stage: str) -> dict[str, str]:
    pages = account.client("ssm").get_paginator("get_parameters_by_path")
    path = _path(stage)
    return {
        parameter["Name"].removeprefix(path): parameter["Value"]
        for page in pages.paginate(Path=path)
        for parameter in page["Parameters"]
    }


def _path(stage: str) -> str:
    return f"/{APP}/{stage}/"

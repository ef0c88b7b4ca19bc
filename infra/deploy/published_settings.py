"""Settings of a deployed stage in Parameter Store, where operators' machines find the stage."""

from infra.deploy.aws.account import Account
from infra.deploy.names import APP

FOR_OPERATORS = ("TABLE_PREFIX", "OBJECT_STORE", "PUBLIC_URL", "SITES_DOMAIN")
"""The variables that ``admin --stage`` needs; none is a secret."""


def publish(account: Account, stage: str, variables: dict[str, str]) -> None:
    """Tell operators' machines where the stage is: a parameter for each variable."""
    client, before = account.client("ssm"), published(account, stage)
    for name in FOR_OPERATORS:
        if value := variables.get(name):
            if before.get(name) != value:
                client.put_parameter(
                    Name=_path(stage) + name, Value=value, Type="String", Overwrite=True
                )
        elif name in before:
            client.delete_parameter(Name=_path(stage) + name)


def unpublish(account: Account, stage: str) -> None:
    """Forget where the stage was."""
    publish(account, stage, {})


def published(account: Account, stage: str) -> dict[str, str]:
    """Return the variables that a deployed stage has for operators; nothing if there is none."""
    pages = account.client("ssm").get_paginator("get_parameters_by_path")
    path = _path(stage)
    return {
        each["Name"].removeprefix(path): each["Value"]
        for page in pages.paginate(Path=path)
        for each in page["Parameters"]
    }


def _path(stage: str) -> str:
    return f"/{APP}/{stage}/"

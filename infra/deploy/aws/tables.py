"""Checks and protects the tables that the functions use.

A restored table has no point-in-time recovery, no deletion protection and no time-to-live (DynamoDB
API reference, RestoreTableToPointInTime), and it is in no stack. Each deployment enables these
settings. It also enables a deletion protection that was turned off by hand, or by a destruction
that was interrupted.
"""

from typing import Any

import click

from chalicelib.engine.tables import TABLES
from infra.deploy.aws.account import Account
from infra.deploy.progress import Progress

READY = {"ACTIVE", "UPDATING"}


def names(stage: str, *, prefix: str) -> list[str]:
    """Return the names of the tables with a prefix."""
    return [f"{prefix}-{stage}-{name}" for name in TABLES]


def existing(account: Account, stage: str, *, prefix: str) -> list[str]:
    """Return the names of those tables that exist."""
    client = account.client("dynamodb")
    return [name for name in names(stage, prefix=prefix) if _about(client, name)]


def require(account: Account, stage: str, *, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the description of every table by its name.

    Raises:
        click.ClickException: a table is missing, or is still being restored.
    """
    client = account.client("dynamodb")
    descriptions = {name: _about(client, name) for name in names(stage, prefix=prefix)}
    absent = [name for name, about in descriptions.items() if about.get("TableStatus") not in READY]
    if absent:
        msg = (
            f"There is no {', no '.join(absent)}, or it is still being restored. Wait until all "
            f"{len(TABLES)} tables are active, or give the --table-prefix of others."
        )
        raise click.ClickException(msg)
    return descriptions


def protect(account: Account, stage: str, *, prefix: str, progress: Progress) -> None:
    """Enable recovery, deletion protection and time-to-live for every table.

    Raises:
        click.ClickException: a table is missing, or is still being restored.
    """
    client = account.client("dynamodb")
    descriptions = require(account, stage, prefix=prefix)
    for name, row in zip(descriptions, TABLES.values(), strict=True):
        if not descriptions[name].get("DeletionProtectionEnabled"):
            client.update_table(TableName=name, DeletionProtectionEnabled=True)
            # DynamoDB refuses a second change while a table is UPDATING.
            client.get_waiter("table_exists").wait(TableName=name)
            progress.note(f"{name}: protected from deletion")
        if not _recoverable(client, name):
            on = {"PointInTimeRecoveryEnabled": True}
            client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=on)
            progress.note(f"{name}: restorable to any moment from now on")
        model: Any = row  # PynamoDB has no public name for the next call.
        expires = model._ttl_attribute()  # noqa: SLF001  as above
        if expires is not None and not _has_time_to_live(client, name):
            on = {"AttributeName": expires.attr_name, "Enabled": True}
            client.update_time_to_live(TableName=name, TimeToLiveSpecification=on)
            progress.note(f"{name}: forgets by {expires.attr_name}")


def _about(client: Any, name: str) -> dict[str, Any]:  # noqa: ANN401  boto3's own
    try:
        about: dict[str, Any] = client.describe_table(TableName=name)["Table"]
    except client.exceptions.ResourceNotFoundException:
        return {}
    return about


def _recoverable(client: Any, name: str) -> bool:  # noqa: ANN401  as above
    about = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = about.get("PointInTimeRecoveryDescription", {})
    return bool(recovery.get("PointInTimeRecoveryStatus") == "ENABLED")


def _has_time_to_live(client: Any, name: str) -> bool:  # noqa: ANN401  as above
    about = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    return about.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}

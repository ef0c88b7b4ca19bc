"""Schedules jobs that fold stored texts again after the code's folding rule changed (ADR 42).

A row of the content table has the folding version of its texts, and is restored with them.
"""

from datetime import timedelta
from typing import Any

from chalicelib.application import refolding
from chalicelib.core import clock
from chalicelib.core.operations import load_all
from chalicelib.core.principals import PLATFORM
from chalicelib.core.text import SEARCH_FOLDING
from chalicelib.domains.identity.store import workspaces

_KEY = {"pk": {"S": "FOLDING"}, "sk": {"S": "-"}}
DELAY = timedelta(minutes=1)
"""Requests that the former code still processes end within this time; none takes 30 seconds."""


def schedule(client: Any, prefix: str) -> int:  # noqa: ANN401  boto3 creates its clients at run time
    """Schedule a job for each workspace, unless all texts have the code's version.

    The version is stored last. After an interruption, all jobs are scheduled again; a second job
    for a workspace is harmless.

    Args:
        client: the DynamoDB client.
        prefix: prefix of the tables, such as ``workspace-dev``.

    Returns:
        The number of scheduled jobs.
    """
    content = f"{prefix}-content"
    found = client.get_item(TableName=content, Key=_KEY, ConsistentRead=True).get("Item", {})
    if int(found.get("version", {"N": "0"})["N"]) >= SEARCH_FOLDING:
        return 0
    load_all()
    due = clock.now() + DELAY
    tenants = [PLATFORM, *_workspaces(client, f"{prefix}-identity")]
    for tenant in tenants:
        job = refolding.job(tenant, due).serialize()
        client.put_item(TableName=f"{prefix}-control", Item=job)
    version = {"version": {"N": str(SEARCH_FOLDING)}}
    client.put_item(TableName=content, Item=_KEY | version)
    return len(tenants)


def forget(client: Any, prefix: str) -> None:  # noqa: ANN401  as above
    """Delete the stored version, because older code will write texts with its own rule."""
    client.delete_item(TableName=f"{prefix}-content", Key=_KEY)


def _workspaces(client: Any, table: str) -> list[str]:  # noqa: ANN401  as above
    pages = client.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression="sk = :workspace",
        ExpressionAttributeValues={":workspace": {"S": workspaces.SORT_KEY}},
        ProjectionExpression="pk",
    )
    return [item["pk"]["S"].partition("#")[2] for page in pages for item in page["Items"]]

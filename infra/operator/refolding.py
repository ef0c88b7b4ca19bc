"""Schedules jobs that fold stored strings again after the code's folding rule changed (ADR 42).

A row of the content table has the folding version of its strings, and is restored with these
strings.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from chalicelib.application import refolding
from chalicelib.core import clock
from chalicelib.core.operations import load_all
from chalicelib.core.principals import PLATFORM
from chalicelib.core.text import SEARCH_FOLDING
from chalicelib.domains.identity.flows import emails
from chalicelib.domains.identity.store import accounts, workspaces

_KEY = {"pk": {"S": "FOLDING"}, "sk": {"S": "-"}}
DELAY = timedelta(minutes=1)
"""Requests that the former code still processes end within this time; none takes 30 seconds."""


def schedule(client: Any, prefix: str) -> int:  # noqa: ANN401  boto3 creates its clients at run time
    """Schedule a job for each workspace, unless all strings have the code's version.

    An account gets one, too, if its e-mail address has another key than in earlier versions.

    The version is stored last. After an interruption, all jobs are scheduled again; a second job
    for a workspace is harmless.

    Args:
        client: the DynamoDB client.
        prefix: prefix of the tables, such as ``workspace-dev``.

    Returns:
        The number of scheduled jobs.
    """
    content = f"{prefix}-content"
    row = client.get_item(TableName=content, Key=_KEY, ConsistentRead=True).get("Item", {})
    if int(row.get("version", {"N": "0"})["N"]) >= SEARCH_FOLDING:
        return 0
    load_all()
    due = clock.now() + DELAY
    found_jobs = [refolding.job(PLATFORM, due)]
    for item in _workspaces_and_accounts(client, f"{prefix}-identity"):
        row_id = item["pk"]["S"].partition("#")[2]
        if item["sk"]["S"] == workspaces.SORT_KEY:
            found_jobs.append(refolding.job(row_id, due))
        elif not item["email"]["S"].isascii():
            found_jobs.append(emails.claim_job(row_id))
    for job in found_jobs:
        client.put_item(TableName=f"{prefix}-control", Item=job.serialize())
    version = {"version": {"N": str(SEARCH_FOLDING)}}
    client.put_item(TableName=content, Item=_KEY | version)
    return len(found_jobs)


def forget(client: Any, prefix: str) -> None:  # noqa: ANN401  as above
    """Delete the stored version, because older code will write strings with its own rule."""
    client.delete_item(TableName=f"{prefix}-content", Key=_KEY)


def _workspaces_and_accounts(client: Any, table: str) -> Iterator[Any]:  # noqa: ANN401  as above
    pages = client.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression="sk IN (:workspace, :account)",
        ExpressionAttributeValues={
            ":workspace": {"S": workspaces.SORT_KEY},
            ":account": {"S": accounts.SORT_KEY},
        },
        ProjectionExpression="pk, sk, email",
    )
    return (item for page in pages for item in page["Items"])

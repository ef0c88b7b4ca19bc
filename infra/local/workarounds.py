"""Handlers of botocore events that work around differences between DynamoDB Local and DynamoDB."""

from typing import Any

from chalicelib.engine.connection import connection
from chalicelib.engine.tables import ControlRow

PAGE_ROWS = 500
"""Largest number of rows in a page of a Query."""


def apply(*, in_memory: bool = False) -> None:
    """Register the workarounds for this process. Call it after the endpoint is set.

    A database in memory has no disk to wait for.
    """
    client = connection().client
    events = client.meta.events
    control = ControlRow.Meta.table_name

    def wait_for_commit(**_: object) -> None:
        """Read a row after a transaction, to wait until the transaction is on disk.

        DynamoDB Local responds to TransactWriteItems before SQLite commits. In about one of fifteen
        kills of the process, the last answered transaction was lost. Reads and commits share a
        queue, so the read is answered after the commit. Other writes commit before the response.
        """
        key = {"pk": {"S": "BARRIER"}, "sk": {"S": "-"}}
        client.get_item(TableName=control, Key=key, ConsistentRead=True)

    def limit_page_rows(params: dict[str, Any], **_: object) -> None:
        """Limit the rows of each page of a Query.

        Without a limit, DynamoDB Local reads the rest of the partition for every page. In a
        partition of 100,000 rows, a page then takes ten seconds instead of a third of a second.
        """
        params.setdefault("Limit", PAGE_ROWS)

    if not in_memory:
        events.register("after-call.dynamodb.TransactWriteItems", wait_for_commit)
    events.register("provide-client-params.dynamodb.Query", limit_page_rows)

"""Handlers of botocore events that work around differences between DynamoDB Local and DynamoDB."""

from threading import Lock, local
from typing import Any

from chalicelib.core import deadline
from chalicelib.engine.connection import connection
from chalicelib.engine.tables import ControlRow

PAGE_ROWS = 500
"""Largest number of rows in a page of a Query."""
TURN_SECONDS = 20.0
"""Longest wait of a transaction for the others of this process."""


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

    turn, thread = Lock(), local()

    def wait_for_turn(**_: object) -> None:
        """Send one transaction at a time, as DynamoDB Local carries them out.

        Otherwise the fiftieth waits there for all others, longer than the service waits for AWS.
        The service would send it again, behind all others, and at last refuse the call.
        """
        thread.has_turn = turn.acquire(timeout=deadline.remaining(TURN_SECONDS))

    def end_turn(**_: object) -> None:
        if thread.has_turn:
            turn.release()

    events.register("before-call.dynamodb.TransactWriteItems", wait_for_turn)
    events.register("after-call.dynamodb.TransactWriteItems", end_turn)
    events.register("after-call-error.dynamodb.TransactWriteItems", end_turn)
    if not in_memory:
        events.register("after-call.dynamodb.TransactWriteItems", wait_for_commit)
    events.register("provide-client-params.dynamodb.Query", limit_page_rows)

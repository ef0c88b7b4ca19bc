"""What DynamoDB Local does unlike DynamoDB, cured by botocore events on the store's connection."""

from typing import Any

from chalicelib.engine.connection import connection
from chalicelib.engine.tables import ControlRow

PAGE_ROWS = 500


def apply() -> None:
    """Cure the connection of this process; do it once, after the endpoint is set."""
    client = connection().client
    events = client.meta.events
    control = ControlRow.Meta.table_name

    def wait_for_commit(**_: object) -> None:
        """Acknowledge no transaction before it is on disk.

        TransactWriteItems is answered when SQLite's COMMIT is only queued: about one kill in
        fifteen lost the last transaction that had been answered. The queue is served in order, so
        a read that has been answered stands behind the commit. Plain writes commit first.
        """
        key = {"pk": {"S": "BARRIER"}, "sk": {"S": "-"}}
        client.get_item(TableName=control, Key=key, ConsistentRead=True)

    def end_pages_early(params: dict[str, Any], **_: object) -> None:
        """Ask for limited pages only.

        Without a limit every page of a Query reads the rest of the partition: ten seconds a page
        at 100,000 rows, instead of a third of one.
        """
        params.setdefault("Limit", PAGE_ROWS)

    events.register("after-call.dynamodb.TransactWriteItems", wait_for_commit)
    events.register("provide-client-params.dynamodb.Query", end_pages_early)

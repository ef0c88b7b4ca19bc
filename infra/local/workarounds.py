"""Handlers of botocore events that work around differences between DynamoDB Local and DynamoDB."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from botocore.model import OperationModel

from chalicelib.core import deadline, retry
from chalicelib.engine import connection as connection_module
from chalicelib.engine.connection import connection
from chalicelib.engine.tables import ControlRow

PAGE_ROWS = 500
"""Largest number of rows in a page of a Query."""
TURN_SECONDS = 20.0
"""Longest wait of a transaction or a retry for the others of this process."""
DATABASE_SECONDS = 20
"""Seconds to wait for a response of DynamoDB Local on a busy machine."""
REQUEST_SECONDS = 60.0
"""Seconds until the deadline of a request. No gateway ends it earlier."""
CONTENTION_SECONDS = 50.0
"""Duration of retries under high contention."""

_TRANSACTION = "TransactWriteItems"
_HAS_TURN = "workarounds_has_turn"
"""Name in a request's context that says whether the request has the turn."""


def be_patient() -> None:
    """Give requests more time than on AWS, where no other work shares the processors.

    On a busy machine, a request would otherwise be refused, or sent to the database again, which
    makes the machine only busier. Call it before the first connection.
    """
    connection_module.READ_SECONDS = DATABASE_SECONDS
    deadline.REQUEST_SECONDS = REQUEST_SECONDS
    retry.HIGH_CONTENTION_SECONDS = CONTENTION_SECONDS
    retry.turn = retry_in_turn


_retries = Lock()


@contextmanager
def retry_in_turn() -> Iterator[None]:
    """Let the threads of this process retry a contended change one after the other.

    They share the processors with each other and with the database. Otherwise, on a busy machine,
    most of fifty clients who book the same day fail each other's attempts until their time is up.
    """
    has_turn = _retries.acquire(timeout=deadline.remaining(TURN_SECONDS))
    try:
        yield
    finally:
        if has_turn:
            _retries.release()


def apply(*, in_memory: bool = False, in_turn: bool = True) -> None:
    """Register the workarounds for this process. Call it after the endpoint is set.

    A database in memory has no disk to wait for. Without ``in_turn``, transactions do not wait for
    each other.
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

    turn = Lock()

    def wait_for_turn(model: OperationModel, context: dict[str, Any], **_: object) -> None:
        """Send one transaction at a time, as DynamoDB Local carries them out.

        Otherwise the fiftieth waits there for all others, longer than the service waits for AWS.
        The service would send it again, behind all others, and at last refuse the call.
        """
        if model.name == _TRANSACTION:
            context[_HAS_TURN] = turn.acquire(timeout=deadline.remaining(TURN_SECONDS))

    def end_turn(context: dict[str, Any], **_: object) -> None:
        if context.pop(_HAS_TURN, False):
            turn.release()

    if in_turn:
        # A turn begins after all other handlers and ends before them. If a handler fails between,
        # botocore calls no other one, and the turn would never end.
        events.register_last("before-call.dynamodb", wait_for_turn)
        for end in ("after-call", "after-call-error"):
            events.register_first(f"{end}.dynamodb.{_TRANSACTION}", end_turn)
    if not in_memory:
        events.register(f"after-call.dynamodb.{_TRANSACTION}", wait_for_commit)
    events.register("provide-client-params.dynamodb.Query", limit_page_rows)

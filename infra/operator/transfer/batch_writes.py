"""Write rows in bulk without conditions, 25 in a request, several requests at a time."""

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core import retry
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.connection import connection, is_passing
from chalicelib.engine.reading import Item
from chalicelib.engine.tables import Row

REQUEST_ROWS = 25
"""Rows in one BatchWriteItem (DynamoDB quota)."""
WRITERS = 8
MAX_WAITING = 4 * WRITERS
"""Maximum of queued and running tasks, so that the reader does not fill the memory."""
ATTEMPTS = 20
LONGEST_PAUSE = 10.0
"""Seconds. A table in on-demand mode takes minutes to adapt to a new load."""


class BatchWriter:
    """Writes rows and runs other tasks in threads, and waits for all when its block ends."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], Item] = {}
        self._pool = ThreadPoolExecutor(WRITERS)
        self._pending: set[Future[None]] = set()

    def __enter__(self) -> Self:
        """Start the threads."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Wait for all tasks and stop the threads.

        Raises:
            UnavailableError: DynamoDB keeps refusing requests; some rows may have been written.
        """
        try:
            if kind is None:
                self.flush()
        finally:
            self._pool.shutdown(cancel_futures=True)

    def put(self, row: type[Row], item: Item) -> None:
        """Write a row of a class in DynamoDB's JSON, in place of a row with the same key."""
        self._rows[row.Meta.table_name, item["pk"]["S"], item["sk"]["S"]] = item
        if len(self._rows) >= REQUEST_ROWS:
            self._send()

    def do(self, work: Callable[[], None]) -> None:
        """Run another task in a thread, such as storing an object."""
        if len(self._pending) >= MAX_WAITING:
            done_futures, self._pending = wait(self._pending, return_when="FIRST_COMPLETED")
            for future in done_futures:
                future.result()
        self._pending.add(self._pool.submit(work))

    def flush(self) -> None:
        """Wait until all tasks are done."""
        if self._rows:
            self._send()
        done_futures, _ = wait(self._pending, return_when=FIRST_EXCEPTION)
        for future in done_futures:
            future.result()
        self._pending.clear()

    def _send(self) -> None:
        requests: dict[str, list[Any]] = {}
        for (table, _, _), item in self._rows.items():
            requests.setdefault(table, []).append({"PutRequest": {"Item": item}})
        self._rows = {}
        self.do(lambda: _write(requests))


def _write(requests: dict[str, list[Any]]) -> None:
    """Send rows until DynamoDB has processed all, because a throttled table returns some."""
    unwritten = requests
    for number in range(ATTEMPTS):
        try:
            unwritten = connection().client.batch_write_item(RequestItems=unwritten)[
                "UnprocessedItems"
            ]
        except (BotoCoreError, ClientError) as error:
            if not is_passing(error):
                raise
        if not unwritten:
            return
        retry.backoff(number, LONGEST_PAUSE)
    raise UnavailableError

"""The database and the objects as they were, put back after each request."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType

from chalicelib.core.jobs import Queue
from chalicelib.engine import metrics, visitors
from chalicelib.engine.events import subscriptions
from chalicelib.engine.jobs import SHARDS
from tests.support.restoring import moto_tables

Place = tuple[str, str, str]
"""The table and the key of a row."""
_QUEUES = {f"{queue}#{shard}" for queue in Queue for shard in range(SHARDS)}


class StoredState:
    """A snapshot of all rows and objects. Only what was written since is put back."""

    def __init__(self, objects: Path) -> None:
        self._objects = objects
        self._files = dict(self._read())
        self._rows = {
            (name, pk.value, sk.value): item
            for name, table in moto_tables().items()
            for pk, rows in table.items.items()
            for sk, item in rows.items()
        }
        self._written: set[Place] = set()
        self.objects_written = False
        """Whether an object was written or removed since the last restoration."""

    def note(self, operation: str, request: dict[str, Any]) -> None:
        """Remember the rows that a request to DynamoDB may write."""
        self._written.update(_written_places(operation, request))

    def jobs(self) -> Iterator[Place]:
        """Yield the places of all jobs that wait."""
        (name,) = (table_name for table_name in moto_tables() if table_name.endswith("control"))
        for pk, rows in moto_tables()[name].items.items():
            if pk.value in _QUEUES:
                yield from ((name, pk.value, sk.value) for sk in list(rows))

    def remove(self, places: Iterable[Place]) -> None:
        """Remove rows without a request."""
        for name, pk, sk in places:
            self._written.add((name, pk, sk))
            moto_tables()[name].items[DynamoType({"S": pk})].pop(DynamoType({"S": sk}), None)

    def restore(self) -> None:
        """Put everything back, and clear the process's caches."""
        tables = moto_tables()
        for place in self._written:
            name, pk, sk = place
            rows, key = tables[name].items[DynamoType({"S": pk})], DynamoType({"S": sk})
            if place in self._rows:
                rows[key] = self._rows[place]
            else:
                rows.pop(key, None)
        self._written.clear()
        if self.objects_written:
            self._restore_objects()
        metrics.clear_value_cache()
        subscriptions.forget()
        visitors.forget()

    def _restore_objects(self) -> None:
        old_objects = dict(self._read())
        for path in old_objects.keys() - self._files.keys():
            path.unlink()
        for path, content in self._files.items():
            if old_objects.get(path) != content:
                if path.is_dir():
                    shutil.rmtree(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        self.objects_written = False

    def _read(self) -> Iterator[tuple[Path, bytes]]:
        for path in self._objects.rglob("*"):
            if path.is_file():
                yield path, path.read_bytes()


def _written_places(operation: str, request: dict[str, Any]) -> Iterator[Place]:
    """Yield the table and the key of each row that a request may write."""
    if operation == "TransactWriteItems":
        for item in request["TransactItems"]:
            for part in item.values():
                yield _place(part["TableName"], part.get("Key") or part["Item"])
    elif operation == "BatchWriteItem":
        for table, parts in request["RequestItems"].items():
            for part in parts:
                (write,) = part.values()
                yield _place(table, write.get("Key") or write["Item"])
    elif operation in {"PutItem", "UpdateItem", "DeleteItem"}:
        yield _place(request["TableName"], request.get("Key") or request["Item"])


def _place(table: str, row: dict[str, Any]) -> Place:
    return table, row["pk"]["S"], row["sk"]["S"]

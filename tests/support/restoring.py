"""Snapshots of data that is created once through the public API, and restored for each test.

Creating a workspace with a key for each test took half of the suite's time. Snapshots share rows
with moto, because a stored row never changes: an update replaces it (``quick_moto``). To DynamoDB
Local they are written again.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from chalicelib.core import clock
from chalicelib.engine import tables
from chalicelib.engine.connection import connection

SECONDS = 300
"""Seconds for which a snapshot is restored. Later, deadlines in its data would have passed."""

READ_AT_ONCE, WRITTEN_AT_ONCE = 100, 25
"""Most rows of a BatchGetItem and of a BatchWriteItem."""

Place = tuple[str, Any, Any]
"""The table, the partition key and the sort key of a row."""
Rows = dict[Place, Any]


def moto_tables() -> dict[str, Any]:
    """Return moto's tables by name."""
    return dict(dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].tables)


def delete_all_rows() -> None:
    """Empty DynamoDB Local. Creating its tables again would take several times as long."""
    _write_at_once(
        (name, {"DeleteRequest": {"Key": key}})
        for name in _local_tables()
        for key in _scan(name, ProjectionExpression="pk, sk")
    )


class _Database(Protocol):
    """The rows of all tables."""

    def all(self) -> Rows: ...
    def at(self, places: Collection[Place]) -> Rows:
        """Return the rows at some places. A place without a row is left out."""
        ...

    def write(self, rows: Rows) -> None: ...
    def is_same(self, row: Any, other: Any) -> bool:
        """Whether a row, or its absence, has not been written again."""
        ...


class _Moto:
    def all(self) -> Rows:
        return {
            (name, pk, sk): item
            for name, table in moto_tables().items()
            for pk, rows in table.items.items()
            for sk, item in rows.items()
        }

    def at(self, places: Collection[Place]) -> Rows:
        tables = moto_tables()
        found = {(name, pk, sk): tables[name].items.get(pk, {}).get(sk) for name, pk, sk in places}
        return {place: row for place, row in found.items() if row is not None}

    def write(self, rows: Rows) -> None:
        tables = moto_tables()
        for (name, pk, sk), row in rows.items():
            tables[name].items[pk][sk] = row

    def is_same(self, row: Any, other: Any) -> bool:
        return row is other


class _DynamoDBLocal:
    def all(self) -> Rows:
        return {_place(name, row): row for name in _local_tables() for row in _scan(name)}

    def at(self, places: Collection[Place]) -> Rows:
        rows, all_places = {}, list(places)
        for first in range(0, len(all_places), READ_AT_ONCE):
            keys: dict[str, Any] = {}
            for name, pk, sk in all_places[first : first + READ_AT_ONCE]:
                key = {"pk": {"S": pk}, "sk": {"S": sk}}
                keys.setdefault(name, {"Keys": [], "ConsistentRead": True})["Keys"].append(key)
            answer = connection().client.batch_get_item(RequestItems=keys)
            assert not answer["UnprocessedKeys"]
            for name, found in answer["Responses"].items():
                rows |= {_place(name, row): row for row in found}
        return rows

    def write(self, rows: Rows) -> None:
        _write_at_once((name, {"PutRequest": {"Item": row}}) for (name, *_), row in rows.items())

    def is_same(self, row: Any, other: Any) -> bool:
        return bool(row == other)


def _local_tables() -> list[str]:
    return [row.Meta.table_name for row in tables.TABLES.values()]


def _place(name: str, row: dict[str, Any]) -> Place:
    return name, row["pk"]["S"], row["sk"]["S"]


def _scan(name: str, **options: Any) -> Iterator[dict[str, Any]]:
    pages = connection().client.get_paginator("scan")
    for page in pages.paginate(TableName=name, ConsistentRead=True, **options):
        yield from page["Items"]


def _write_at_once(writes: Iterator[tuple[str, dict[str, Any]]]) -> None:
    all_writes = list(writes)
    for first in range(0, len(all_writes), WRITTEN_AT_ONCE):
        requests: dict[str, list[dict[str, Any]]] = {}
        for name, write in all_writes[first : first + WRITTEN_AT_ONCE]:
            requests.setdefault(name, []).append(write)
        answer = connection().client.batch_write_item(RequestItems=requests)
        assert not answer["UnprocessedItems"]


@dataclass
class _Snapshot:
    """The created value, with the rows and files that were added or changed together.

    ``former_rows`` has the former items of changed rows.
    """

    result: Any
    former_rows: Rows
    rows: Rows
    files: dict[Path, bytes]
    since: float


class Snapshots:
    """Snapshots that are created once and then restored."""

    def __init__(self, files: Path, *, is_local: bool) -> None:
        self._folder = files
        self._database: _Database = _DynamoDBLocal() if is_local else _Moto()
        self._kept: dict[str, _Snapshot] = {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the first result of ``make``, with its rows and files as they were then.

        Other rows and files are kept. Making a snapshot again ends all later snapshots, because
        they may hold changes of its rows.
        """
        snapshot = self._kept.get(name)
        if snapshot is None or monotonic() - snapshot.since > SECONDS:
            if snapshot is not None:
                since = snapshot.since
                self._kept = {
                    n: snapshot for n, snapshot in self._kept.items() if snapshot.since < since
                }
            rows, files = self._database.all(), self._files()
            created = make()
            changed_places = {
                place: row
                for place, row in self._database.all().items()
                if not self._database.is_same(rows.get(place), row)
            }
            new_files = {path: data for path, data in self._files().items() if path not in files}
            rows_before = {place: rows[place] for place in changed_places if place in rows}
            self._kept[name] = _Snapshot(
                created, rows_before, changed_places, new_files, monotonic()
            )
            return created
        self._database.write(snapshot.rows)
        for path, data in snapshot.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return snapshot.result

    def once_upon_equal_rows(self, name: str, make: Callable[[], Any]) -> Any:
        """Do the same as ``once``, unless a row that would be replaced differs from what it was.

        A test may have changed such a row already, with another fixture. Then call ``make``. What
        is made in one minute of the service's clock is not used in another.
        """
        name = f"{name} at {clock.now():%Y-%m-%d %H:%M}"
        snapshot = self._kept.get(name)
        if snapshot is not None:
            present = self._database.at(snapshot.rows)
            for place in snapshot.rows:
                former = snapshot.former_rows.get(place)
                if not self._database.is_same(present.get(place), former):
                    return make()
        return self.once(name, make)

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._folder.rglob("*") if path.is_file()}

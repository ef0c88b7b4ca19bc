"""Snapshots of data that is created once through the public API, and restored for each test.

Creating a workspace with a key for each test took half of the suite's time. Snapshots share rows
with the database, because a stored row never changes: an update replaces it (``quick_moto``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from chalicelib.core import clock
from chalicelib.engine import tables
from chalicelib.engine.connection import connection

SECONDS = 300
"""Seconds for which a snapshot is restored. Later, deadlines in its data would have passed."""

DELETED_AT_ONCE = 25
"""Most rows of a BatchWriteItem."""

Rows = dict[tuple[str, Any, Any], Any]
"""Items of moto by table, partition key and sort key."""


def moto_tables() -> dict[str, Any]:
    """Return moto's tables by name."""
    return dict(dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].tables)


def delete_all_rows() -> None:
    """Empty DynamoDB Local. Creating its tables again would take several times as long."""
    client = connection().client
    for row in tables.TABLES.values():
        name, pages = row.Meta.table_name, client.get_paginator("scan")
        for page in pages.paginate(TableName=name, ProjectionExpression="pk, sk"):
            requests = [{"DeleteRequest": {"Key": key}} for key in page["Items"]]
            for first in range(0, len(requests), DELETED_AT_ONCE):
                some = requests[first : first + DELETED_AT_ONCE]
                client.batch_write_item(RequestItems={name: some})


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
    """Snapshots that are created once and then restored.

    DynamoDB Local does not support restoring. There, the data is created each time.
    """

    def __init__(self, files: Path, *, works: bool) -> None:
        self._folder, self._works = files, works
        self._kept: dict[str, _Snapshot] = {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the first result of ``make``, with its rows and files as they were then.

        Other rows and files are kept. Making a snapshot again ends all later snapshots, because
        they may hold changes of its rows.
        """
        if not self._works:
            return make()
        snapshot = self._kept.get(name)
        if snapshot is None or monotonic() - snapshot.since > SECONDS:
            if snapshot is not None:
                since = snapshot.since
                self._kept = {
                    n: snapshot for n, snapshot in self._kept.items() if snapshot.since < since
                }
            rows, files = _rows(), self._files()
            created = make()
            changed_places = {
                place: item for place, item in _rows().items() if rows.get(place) is not item
            }
            new_files = {path: data for path, data in self._files().items() if path not in files}
            rows_before = {place: rows[place] for place in changed_places if place in rows}
            self._kept[name] = _Snapshot(
                created, rows_before, changed_places, new_files, monotonic()
            )
            return created
        tables = moto_tables()
        for (table, pk, sk), item in snapshot.rows.items():
            tables[table].items[pk][sk] = item
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
            tables = moto_tables()
            for place in snapshot.rows:
                table, pk, sk = place
                if tables[table].items.get(pk, {}).get(sk) is not snapshot.former_rows.get(place):
                    return make()
        return self.once(name, make)

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._folder.rglob("*") if path.is_file()}


def _rows() -> Rows:
    return {
        (name, pk, sk): item
        for name, table in moto_tables().items()
        for pk, rows in table.items.items()
        for sk, item in rows.items()
    }

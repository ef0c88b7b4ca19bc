"""Worlds that are made once, through the public face, and put back for each test that asks.

Making a workspace with a key over and over took half of the suite's time.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

SECONDS = 300
"""How long a world is put back: later, what it has to finish in time would be over."""

Rows = dict[tuple[str, Any, Any], Any]
"""Items of moto by table, partition and sort key."""


def moto_tables() -> dict[str, Any]:
    """Return moto's tables by name."""
    return dict(dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].tables)


@dataclass
class _Snapshot:
    """What was made, and the rows and files that came or changed with it."""

    made: Any
    rows: Rows
    files: dict[Path, bytes]
    since: float


class Snapshots:
    """What is made once and then put back.

    On DynamoDB Local there is nothing to put back by hand: there it is made each time.
    """

    def __init__(self, files: Path, *, works: bool) -> None:
        self._folder, self._works = files, works
        self._kept: dict[str, _Snapshot] = {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` made the first time, with its rows and files as they were then.

        What else there is stays.
        """
        if not self._works:
            return make()
        kept = self._kept.get(name)
        if kept is None or monotonic() - kept.since > SECONDS:
            rows, files = copy.deepcopy(_rows()), self._files()
            made = make()
            changed = {
                place: copy.deepcopy(item)
                for place, item in _rows().items()
                if place not in rows or rows[place] != item
            }
            added = {path: data for path, data in self._files().items() if path not in files}
            self._kept[name] = _Snapshot(made, changed, added, monotonic())
            return made
        tables = moto_tables()
        for (table, pk, sk), item in copy.deepcopy(kept.rows).items():
            tables[table].items[pk][sk] = item
        for path, data in kept.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return kept.made

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._folder.rglob("*") if path.is_file()}


def _rows() -> Rows:
    return {
        (name, pk, sk): item
        for name, table in moto_tables().items()
        for pk, rows in table.items.items()
        for sk, item in rows.items()
    }

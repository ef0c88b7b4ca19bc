"""Rows that writes change, and their write units by the rules of AWS.

A write costs one unit for each KB of the former or the new row, whichever is larger. An entry of a
local index costs nothing if it does not change, one write if it is added, removed or changed, and
two writes if its key changes. A transaction costs twice as much, and its condition checks cost as
much as writes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

from chalicelib.engine.tables import ContentRow

Item = dict[str, dict[str, Any]]
KB = 1024
_SINGLE = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}
_ID = re.compile(r"(?<![0-9A-Za-z])(?=\w*\d)[0-9A-Za-z_-]{16,}")
_NESTED_BYTES = 3


def size_of(item: Item) -> int:
    """Return the bytes of an item as DynamoDB counts them, names included."""
    return sum(len(name.encode()) + _value_size(content) for name, content in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S" | "B":
            return len(content if kind == "B" else content.encode())
        case "N":
            return (len(content.lstrip("-").replace(".", "")) + 1) // 2 + 1
        case "M":
            return _NESTED_BYTES + size_of(content) + len(content)
        case "L":
            return _NESTED_BYTES + sum(map(_value_size, content)) + len(content)
        case _:
            return 1


class Index(NamedTuple):
    """A local index, with the attribute that sorts its entries, and the projected attributes."""

    name: str
    key: str
    projected: frozenset[str]

    def entry(self, item: Item | None) -> Item | None:
        """Return the entry of an item, if it has one."""
        if item is None or self.key not in item:
            return None
        return {name: item[name] for name in item.keys() & self.projected}

    def writes(self, old: Item | None, *, new: Item | None) -> list[int]:
        """Return the sizes of the entries that a change of a row writes."""
        old_entry, new_entry = self.entry(old), self.entry(new)
        if old_entry == new_entry:
            return []
        if old_entry and new_entry and old_entry[self.key] == new_entry[self.key]:
            return [max(size_of(old_entry), size_of(new_entry))]
        return [*map(size_of, filter(None, (old_entry, new_entry)))]


def _declared_indexes() -> list[Index]:
    """Return the indexes of ``content``, the only table that has any."""
    indexes = []
    for name, index in ContentRow._indexes.items():  # noqa: SLF001  PynamoDB has no public list
        (key,) = index.Meta.attributes.keys() - {"pk"}
        projection = index.Meta.projection.non_key_attributes or ()
        indexes.append(Index(name, key, frozenset({"pk", "sk", key, *projection})))
    return indexes


class WrittenRow(NamedTuple):
    """A row that a request wrote, deleted or checked.

    ``units`` includes the entries in ``indexes``, by name, each with the number of its writes.
    """

    action: str
    table: str
    key: str
    size: int
    indexes: dict[str, int]
    units: int

    @property
    def kind(self) -> str:
        """The key of the row without the workspace, ids, hashes, times and shards."""
        partition, _, sort_key = self.key.partition(" ")
        name = _ID.sub("…", partition).removeprefix("W#…#")
        if name.startswith(("JOBS#", "EVENTS#")):
            return f"JOBS {sort_key.split('#')[1]}"
        if name.startswith("COUNT#"):
            return f"{name} {sort_key.partition('#')[0]}"
        name = re.sub(r"^(CLAIM#[a-z-]+|LIMIT#[a-z-]+|SALT)#.*", r"\1", name)
        return re.sub(r"^IDEMPOTENCY#[0-9a-f]$", "IDEMPOTENCY#shard", name)


@dataclass
class WriteMeter:
    """Computes what requests write, from the rows before and after each request.

    ``read`` returns the stored row of a table with a key.
    """

    read: Callable[[str, Item], Item | None]
    rows: list[WrittenRow] = field(default_factory=list)
    _indexes: list[Index] = field(default_factory=_declared_indexes)

    def read_targets(
        self, operation: str, params: Mapping[str, Any]
    ) -> list[tuple[str, str, Item, Any]]:
        """Return the action, table, key and stored row of each write of a request."""
        return [
            (action, table, key, self.read(table, key))
            for action, table, key in _targets(operation, params)
        ]

    def record(self, operation: str, targets: list[tuple[str, str, Item, Any]]) -> None:
        """Record the rows of a request that has succeeded."""
        factor = 2 if operation == "TransactWriteItems" else 1
        for action, table, key, old in targets:
            new = old if action == "ConditionCheck" else self.read(table, key)
            size = max(size_of(row or key) for row in (old, new))
            indexes = self._indexes if table == ContentRow.Meta.table_name else ()
            writes = {index.name: index.writes(old, new=new) for index in indexes}
            sizes = [
                size,
                *(entry_size for entry_sizes in writes.values() for entry_size in entry_sizes),
            ]
            units = factor * sum(ceil(row_size / KB) for row_size in sizes)
            index_writes = {name: len(entries) for name, entries in writes.items() if entries}
            name = f"{key['pk']['S']} {key['sk']['S']}"
            self.rows.append(WrittenRow(action, table, name, size, index_writes, units))


def _targets(operation: str, params: Mapping[str, Any]) -> list[tuple[str, str, Item]]:
    if operation == "TransactWriteItems":
        writes = [pair for write in params["TransactItems"] for pair in write.items()]
    elif operation in _SINGLE:
        writes = [(_SINGLE[operation], params)]
    else:
        return []
    return [
        (
            action,
            write["TableName"],
            write.get("Key") or {name: write["Item"][name] for name in ("pk", "sk")},
        )
        for action, write in writes
    ]

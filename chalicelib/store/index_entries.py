"""The compact index and the orders: what a listed record looks like to the list engine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pynamodb.expressions.condition import Condition

from chalicelib.core.text import cut_bytes
from chalicelib.store.reading import Partition
from chalicelib.store.tables import ContentRow

INLINE_TEXT_BYTES = 512
"""Search text kept in the compact index; a longer one is looked up when this does not match."""
NAME_BYTES = 900
"""What names are sorted by: 200 characters of any script. The table takes keys of a kilobyte."""
BY_ROW = "by_row"

SortKey = Literal["id", "t", "n1", "n2"]

_SEPARATOR = "\t"
"""Ends a part of a key.

Less than any character that a part may have, so that parts compare before what follows them.
"""
_OFFSET = 2**52
"""Added to numbers, so that negative ones sort as text, too; they are exact as floats up to it."""


def group(value: str | None) -> str:
    """Return what the keys of the rows with one value begin with: of a parent or of a facet."""
    return f"{value or ''}{_SEPARATOR}"


def number_in(sort_key: str) -> int:
    """Return the number that a key in an order over numbers begins with."""
    return int(sort_key.partition(_SEPARATOR)[0], 16) - _OFFSET


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A row of the compact index; ``cut`` if its text is longer than that."""

    id: str
    numbers: tuple[int, int]
    text: str
    cut: bool

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> "IndexEntry":
        """Read a raw DynamoDB item."""
        n1, n2 = (int(item[slot]["N"]) if slot in item else 0 for slot in ("n1", "n2"))
        text = item["t"]["S"] if "t" in item else ""
        return cls(item["sk"]["S"], (n1, n2), text, cut="x" in item)

    @property
    def texts(self) -> list[str]:
        """The folded texts, the name first."""
        return self.text.split("\n")

    def sort_key(self, sort: SortKey) -> str:
        """Return what the row sorts by, as text; rows that tie sort by their ids."""
        match sort:
            case "id":
                part = ""
            case "t":
                part = cut_bytes(self.texts[0], NAME_BYTES)
            case "n1" | "n2":
                part = f"{self.numbers[int(sort[1]) - 1] + _OFFSET:014x}"
        return f"{part}{_SEPARATOR}{self.id}"


def rows(
    partition: Partition, parent: str | None, where: Condition | None, *, consistent: bool
) -> Iterator[IndexEntry]:
    """Yield the compact rows, or those under one parent, in the order of creation."""
    items = partition.items(
        index_name=BY_ROW,
        range_key_condition=parent and ContentRow.r.startswith(group(parent)),
        filter_condition=where,
        consistent_read=consistent,
    )
    return map(IndexEntry.read, items)

"""Index entries: what the list engine sees of a record, without reading the record.

An entry is what the compact index ``by_row`` projects, about 150 bytes a record, and the keys by
which the other indexes sort. Entries are the indexes' own of a record's row; or rows of their own,
in the partition of a value that the record has, such as its category.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from operator import and_
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pynamodb.attributes import Attribute, UnicodeAttribute
from pynamodb.expressions.condition import Condition

from chalicelib.core.text import cut_bytes, fold, search_fold, squeezed
from chalicelib.engine.reading import MergedPartitions, Partition
from chalicelib.engine.tables import ContentRow

INLINE_TEXT_BYTES = 512
"""Search text kept in an entry unless the noun says otherwise; the whole of a longer one has a row
of its own (``TextRow``)."""
NAME_BYTES = 900
"""What names are sorted by: 200 characters of any script. The table takes keys of a kilobyte."""
MOST_WORDS = 10
"""Words of a search that DynamoDB looks for, the longest."""
BY_ROW = "by_row"
ENTRY_ATTRIBUTES = (
    *("r", "s", "f1", "f2", "f3", "n1", "n2", "t", "x", "c", "y1", "y2"),
    *("o1", "o2", "o3", "o4"),
)

SortKey = Literal["id", "t", "n1", "n2"]

SEPARATOR = "\t"
"""Ends a part of a key.

Less than any character that a part may have, so that parts compare before what follows them.
"""
_OFFSET = 2**52
"""Added to numbers, so that negative ones sort as text, too; they are exact as floats up to it."""


def group(value: str | None) -> str:
    """Return what the keys of the rows with one value begin with: of a parent or of a facet."""
    return f"{value or ''}{SEPARATOR}"


def number_key(number: int) -> str:
    """Return a number as text that sorts as it does."""
    return f"{number + _OFFSET:014x}"


def number_in(sort_key: str) -> int:
    """Return the number that a key in an order over numbers begins with."""
    return int(sort_key.partition(SEPARATOR)[0], 16) - _OFFSET


def token(name: str, value: str) -> str:
    """Return how one value of a multi-valued facet stands in the slot that is searched for it."""
    return f"{SEPARATOR}{name}={fold(value)}{SEPARATOR}"


def token_values(name: str, tokens: str) -> list[str]:
    """Return the values of a multi-valued facet in that slot, folded."""
    begin = f"{name}="
    parts = tokens.split(SEPARATOR)
    return [part.removeprefix(begin) for part in parts if part.startswith(begin)]


class IndexEntry(NamedTuple):
    """An entry; ``cut`` if the record's search text is longer than what it holds."""

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

    def matches(self, wanted: str) -> bool:
        """Whether a wanted text is part of one of those held here."""
        return holds(self.text, wanted)

    def sort_key(self, sort: SortKey) -> str:
        """Return what the record sorts by, as text; records that tie sort by their ids."""
        match sort:
            case "id":
                part = ""
            case "t":
                part = cut_bytes(self.texts[0], NAME_BYTES)
            case "n1" | "n2":
                part = number_key(self.numbers[int(sort[1]) - 1])
        return f"{part}{SEPARATOR}{self.id}"


def wanted_in(search: str | None) -> str:
    """Return what a search looks for: the folded text, its white space as single spaces."""
    return squeezed(search_fold(search or ""))


def holds(text: str, wanted: str) -> bool:
    """Whether one of the folded texts, a line each, has a wanted one in it.

    What is stored keeps its doubled spaces, so both sides are squeezed.
    """
    spaced = " " in wanted
    return any(wanted in part or (spaced and wanted in squeezed(part)) for part in text.split("\n"))


def may_hold(attribute: Attribute[str], wanted: str) -> Condition:
    """Return the condition that stored texts have the words of a wanted one; ``holds`` is exact."""
    words = sorted(set(wanted.split()), key=len)[-MOST_WORDS:]
    conditions: list[Condition] = [attribute.contains(word) for word in words]
    return reduce(and_, conditions)


def under(parent: str) -> Condition:
    """Return the condition on keys that entries lie under one parent."""
    return ContentRow.r.startswith(group(parent))


def entries(
    partition: Partition | MergedPartitions,
    keys: Condition | None,
    where: Condition | None,
    *,
    consistent: bool,
    any_of: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Iterator[IndexEntry]:
    """Yield the entries of a partition, or those between some keys, in the order of creation.

    ``any_of`` maps slots to values, one of which an entry must have. That is seen to here: an
    expression of DynamoDB's does not hold a thousand values, and saves no units.
    """
    items = partition.items(
        index_name=BY_ROW,
        range_key_condition=keys,
        filter_condition=where,
        consistent_read=consistent,
    )
    for item in items:
        if all(item.get(slot, {}).get("S") in values for slot, values in any_of.items()):
            yield IndexEntry.read(item)


class EntryRow(ContentRow):
    """A record's entry in the partition of a value that it has."""


class TextRow(ContentRow):
    """The whole search text of a record that is too long for its entry."""

    whole = UnicodeAttribute()


def partition_of(workspace_id: str, noun: str, facet: str, value: str) -> str:
    """Return the partition of the entries of a noun's records that have a value."""
    return f"W#{workspace_id}#{noun}#{facet}#{value}"


def texts_partition(workspace_id: str, noun: str) -> str:
    """Return the partition of a noun's long search texts."""
    return f"W#{workspace_id}#{noun}#TEXT"

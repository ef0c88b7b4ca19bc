"""Index entries, which the list engine reads instead of the records.

An entry is what the compact index ``by_row`` projects of a record, about 150 bytes. Others are
separate rows, in the partition of one of the record's values, such as its category.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import and_
from typing import Any, Literal, NamedTuple

from pynamodb.attributes import Attribute, UnicodeAttribute
from pynamodb.expressions.condition import Condition

from chalicelib.core.clock import epoch_ms
from chalicelib.core.text import cut_bytes, fold, is_found
from chalicelib.engine.reading import Partition
from chalicelib.engine.tables import ContentRow, Record

# Bytes of search text in an entry, unless the noun sets a limit. A longer text has a ``TextRow``.
INLINE_TEXT_BYTES = 512
# Bytes of a name in sort keys: 200 characters of any script. Keys hold 1,024 bytes at most.
NAME_BYTES = 900
MOST_WORDS = 10  # DynamoDB filters by the longest words of a search.
BY_ROW = "by_row"
# The slot of the time of the last change. Entries in the partitions of values lack it, because each
# change of a record would write them all.
UPDATED_SLOT = "y2"
ENTRY_ATTRIBUTES = ("r", "s", "f1", "f2", "f3", "n1", "n2", "t", "x", "c", "y1")

SortKey = Literal["id", "t", "n1", "n2", "y2"]

# Ends a part of a key. Lower than every character in a part, so that a shorter part sorts first.
SEPARATOR = "\t"
_OFFSET = 2**52  # makes negative numbers sort as strings, too; floats are exact up to it


def group(value: str | None) -> str:
    """Return the prefix of the keys of all rows with one parent or one facet value."""
    return f"{value or ''}{SEPARATOR}"


def number_key(number: int) -> str:
    """Return a number as a string that sorts in numeric order."""
    return f"{number + _OFFSET:014x}"


def number_in(sort_key: str) -> int:
    """Return the number at the beginning of a sort key made by ``number_key``."""
    return int(sort_key.partition(SEPARATOR)[0], 16) - _OFFSET


def token(name: str, *, value: str) -> str:
    """Return the form of one value of a multi-valued facet in the slot of tokens."""
    return f"{SEPARATOR}{name}={fold(value)}{SEPARATOR}"


def token_values(name: str, *, tokens: str) -> list[str]:
    """Return the values of a multi-valued facet from the slot of tokens, folded."""
    begin = f"{name}="
    parts = tokens.split(SEPARATOR)
    return [part.removeprefix(begin) for part in parts if part.startswith(begin)]


class IndexEntry(NamedTuple):
    """An index entry. ``cut`` means that the record's search text is longer than its entry.

    ``updated_ms`` is None in entries of earlier releases, and in the partitions of values.
    """

    id: str
    numbers: tuple[int, int]
    text: str
    cut: bool
    updated_ms: int | None = None

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> "IndexEntry":
        n1, n2 = (int(item[slot]["N"]) if slot in item else 0 for slot in ("n1", "n2"))
        text = item["t"]["S"] if "t" in item else ""
        updated = int(item[UPDATED_SLOT]["N"]) if UPDATED_SLOT in item else None
        return cls(item["sk"]["S"], (n1, n2), text, cut="x" in item, updated_ms=updated)

    @classmethod
    def from_record(cls, record: Record) -> "IndexEntry":
        n1, n2 = (int(number or 0) for number in (record.n1, record.n2))
        updated = epoch_ms(record.updated_at)
        text, cut = record.t or "", record.x is not None
        return cls(record.id, (n1, n2), text, cut=cut, updated_ms=updated)

    @property
    def texts(self) -> list[str]:
        """The folded searchable strings, the name first."""
        return self.text.split("\n")

    def matches(self, words: str) -> bool:
        return is_found(self.texts, words)

    def sort_key(self, sort: SortKey) -> str:
        """Return the sort key of the record as a string. Records with equal keys sort by id."""
        match sort:
            case "id":
                part = ""
            case "t":
                part = cut_bytes(self.texts[0], NAME_BYTES)
            case "n1" | "n2":
                part = number_key(self.numbers[int(sort[1]) - 1])
            case "y2":
                part = number_key(self.updated_ms or 0)
        return f"{part}{SEPARATOR}{self.id}"


def may_contain(attribute: Attribute[str], search: str) -> Condition:
    """Return the condition that strings contain the longest words of a search, as matches do."""
    # Whatever divides words divides them in stored strings, too. ``is_found`` is exact.
    words = sorted(set(search.split()), key=len)[-MOST_WORDS:]
    conditions: list[Condition] = [attribute.contains(word) for word in words]
    return reduce(and_, conditions)


def parent_condition(parent: str) -> Condition:
    """Return the key condition that entries belong to one parent."""
    return ContentRow.r.startswith(group(parent))


def entry_options(
    keys: Condition | None, *, where: Condition | None, consistent: bool
) -> dict[str, Any]:
    """Return the options of a Query for entries, optionally within key bounds."""
    return {
        "index_name": BY_ROW,
        "range_key_condition": keys,
        "filter_condition": where,
        "consistent_read": consistent,
    }


def read_entries(
    items: Iterable[Mapping[str, Any]], any_of: Mapping[str, Collection[str]]
) -> Iterator[IndexEntry]:
    """Yield the entries of raw items. ``any_of`` maps slots to accepted values."""
    for item in items:
        # A filter expression of DynamoDB cannot hold a thousand values and saves no read units.
        if all(item.get(slot, {}).get("S") in values for slot, values in any_of.items()):
            yield IndexEntry.read(item)


def entries(
    partition: Partition, keys: Condition | None, *, where: Condition | None, consistent: bool
) -> Iterator[IndexEntry]:
    """Yield the entries of a partition, optionally within key bounds, in the order of keys."""
    items = partition.items(**entry_options(keys, where=where, consistent=consistent))
    return map(IndexEntry.read, items)


class EntryRow(ContentRow):
    """A record's entry in the partition of one of its values."""


class TextRow(ContentRow):
    """The whole search text of a record, if it is too long for the entry."""

    whole = UnicodeAttribute()


def partition_of(workspace_id: str, *, noun: str, facet: str, value: str) -> str:
    """Return the partition of a noun's entries that have one value of a facet."""
    return f"W#{workspace_id}#{noun}#{facet}#{value}"


def texts_partition(workspace_id: str, *, noun: str) -> str:
    """Return the partition of a noun's long searchable strings."""
    return f"W#{workspace_id}#{noun}#TEXT"

"""Search among index entries, whose texts may be cut."""

from collections.abc import Iterable

from chalicelib.core.text import is_found
from chalicelib.engine.listing.index_entries import IndexEntry, TextRow, may_contain
from chalicelib.engine.reading import Key, Partition, fetch

FETCHED_TEXTS = 100
"""Up to this many long texts are fetched by their keys. For more, all of them are searched."""


def matches(
    rows: Iterable[IndexEntry], wanted: str, texts: Partition, *, consistent: bool
) -> list[IndexEntry]:
    """Return the entries that match a search. The whole texts of cut entries are read."""
    found = [(entry, entry.matches(wanted)) for entry in rows]
    unsure = [entry.id for entry, matched in found if entry.cut and not matched]
    long = _search_long_texts(wanted, unsure, texts, consistent=consistent) if unsure else set()
    return [entry for entry, matched in found if matched or entry.id in long]


def _search_long_texts(
    wanted: str, ids: list[str], texts: Partition, *, consistent: bool
) -> set[str]:
    if len(ids) <= FETCHED_TEXTS:
        rows = fetch((Key(TextRow, texts.pk, each) for each in ids), texts.cost)
        return {
            row.sk
            for row in rows
            if isinstance(row, TextRow) and is_found(row.whole.split("\n"), wanted)
        }
    items = texts.items(
        filter_condition=may_contain(TextRow.whole, wanted), consistent_read=consistent
    )
    return {item["sk"]["S"] for item in items if is_found(item["whole"]["S"].split("\n"), wanted)}

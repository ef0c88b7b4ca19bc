"""Search among index entries, whose texts may be cut."""

from collections.abc import Iterable

from chalicelib.engine.listing.index_entries import IndexEntry, TextRow, contains, may_contain
from chalicelib.engine.reading import Key, Partition, fetch

FETCHED_TEXTS = 100
"""Up to this many long texts are fetched by their keys. For more, all of them are searched."""


def matches(
    rows: Iterable[IndexEntry], wanted: str, texts: Partition, *, consistent: bool
) -> list[IndexEntry]:
    """Return the entries that contain a text. The whole texts of cut entries are read."""
    found = list(rows)
    unsure = [entry.id for entry in found if entry.cut and not entry.matches(wanted)]
    long = _search_long_texts(wanted, unsure, texts, consistent=consistent) if unsure else set()
    return [entry for entry in found if entry.matches(wanted) or entry.id in long]


def _search_long_texts(
    wanted: str, ids: list[str], texts: Partition, *, consistent: bool
) -> set[str]:
    if len(ids) <= FETCHED_TEXTS:
        rows = fetch((Key(TextRow, texts.pk, each) for each in ids), texts.cost)
        return {row.sk for row in rows if isinstance(row, TextRow) and contains(row.whole, wanted)}
    items = texts.items(
        filter_condition=may_contain(TextRow.whole, wanted), consistent_read=consistent
    )
    return {item["sk"]["S"] for item in items if contains(item["whole"]["S"], wanted)}

"""A search reads the whole strings of index entries that are cut."""

from collections.abc import Iterable

from chalicelib.core.text import is_found
from chalicelib.engine.listing.index_entries import IndexEntry, TextRow, may_contain
from chalicelib.engine.reading import Key, Partition, fetch

FETCHED_TEXTS = 100  # Above this, all long strings are searched, not fetched by their keys.


def matches(
    rows: Iterable[IndexEntry], words: str, texts: Partition, *, consistent: bool
) -> list[IndexEntry]:
    """Return the entries that match a search. The whole strings of cut entries are read."""
    entries = [(entry, entry.matches(words)) for entry in rows]
    unsure = [entry.id for entry, matched in entries if entry.cut and not matched]
    long = _search_long_texts(words, unsure, texts, consistent=consistent) if unsure else set()
    return [entry for entry, matched in entries if matched or entry.id in long]


def _search_long_texts(
    words: str, ids: list[str], texts: Partition, *, consistent: bool
) -> set[str]:
    if len(ids) <= FETCHED_TEXTS:
        rows = fetch((Key(TextRow, texts.pk, record_id) for record_id in ids), texts.cost)
        return {
            row.sk
            for row in rows
            if isinstance(row, TextRow) and is_found(row.whole.split("\n"), words)
        }
    items = texts.items(
        filter_condition=may_contain(TextRow.whole, words), consistent_read=consistent
    )
    return {item["sk"]["S"] for item in items if is_found(item["whole"]["S"].split("\n"), words)}

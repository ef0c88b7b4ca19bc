"""Compare two strings line by line."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

CONTEXT_LINES = 3  # equal lines before and after a change
# The comparison takes time in proportion to the product of the numbers of lines.
MAX_LINES = 3_000


class Row(NamedTuple):
    """A line of each text, or None where it is absent."""

    old_line: str | None
    new_line: str | None
    is_changed: bool
    skipped: int = 0  # number of equal lines before


def compare(old_text: str, *, new_text: str) -> list[Row] | None:
    """Return the changed lines with their surroundings, or None if the strings are too long."""
    old, new = old_text.splitlines(), new_text.splitlines()
    if max(len(old), len(new)) > MAX_LINES:
        return None
    return list(_rows(old, new=new))


def _rows(old: Sequence[str], *, new: Sequence[str]) -> Iterator[Row]:
    shown_end = 0
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES):
        skipped = group[0][1] - shown_end
        for tag, start, end, new_start, new_end in group:
            pairs = zip_longest(old[start:end], new[new_start:new_end])
            for old_line, new_line in pairs:
                yield Row(old_line, new_line, tag != "equal", skipped)
                skipped = 0
        shown_end = group[-1][2]

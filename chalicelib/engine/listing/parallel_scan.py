"""The entries of a large partition are read in ranges of keys, side by side (ADR 52).

DynamoDB does not report the middle of a partition, so the bounds are guessed. A wrong guess costs
time but no correctness, because every key is in exactly one range.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chalicelib.core import deadline, retry
from chalicelib.engine.listing.index_entries import IndexEntry
from chalicelib.engine.listing.index_ranges import IndexRange
from chalicelib.engine.reading import Item, Partition
from chalicelib.engine.tables import ContentRow

RANGES = 8  # are read at the same time, and one is cut into as many
UNITS_A_SECOND = 3_000  # DynamoDB serves this from one partition. Faster scans would be throttled.
UNITS_AT_ONCE = 3_000  # A scan may read this without a pause: the cost of about 150,000 entries.
PAGES_A_RANGE = 2  # Ranges of fewer would end with many short pages.
DIGITS = 14  # of a key, compared with bounds: a number, or the time and more of an id
ID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
NUMBER_DIGITS = "0123456789abcdef"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Range:
    low: str
    high: str
    end: int  # where its entries presumably end
    start: Item | None = None  # a key to resume at


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ParallelScan:
    """A scan of the entries within ``bounds``, whose keys begin with ``digits``."""

    partition: Partition
    bounds: IndexRange
    rows: int  # about as many as there are
    digits: str
    options: dict[str, Any]  # of each Query
    read: Callable[[Iterable[Item]], Iterable[IndexEntry]]

    def entries(self) -> list[IndexEntry]:
        """Return the entries, in no order."""
        # An entry that moves during the scan is returned once at most.
        entries_by_id: dict[str, IndexEntry] = {}
        begun, units = time.monotonic(), self.partition.cost.units
        rows_left, pending = self.rows, self._first_ranges()
        while pending:
            answers = deadline.map_in_threads(self._page, pending, RANGES)
            for _, entries in answers:
                entries_by_id.update((entry.id, entry) for entry in entries)
            rows_left -= sum(answer["ScannedCount"] for answer, _ in answers)
            pending = [
                part
                for range_, (answer, _) in zip(pending, answers, strict=True)
                for part in self._remaining_ranges(range_, answer, max(rows_left, 0))
            ]
            ahead = (self.partition.cost.units - units - UNITS_AT_ONCE) / UNITS_A_SECOND
            if pending and (pause := ahead - (time.monotonic() - begun)) > 0:
                retry.sleep(deadline.remaining(pause))
        return list(entries_by_id.values())

    def _first_ranges(self) -> list[_Range]:
        ends = deadline.map_in_threads(self._end, [False, True], 2)
        if None in ends:
            return []
        first, last = (end or "" for end in ends)
        full_range = _Range(first, (self.bounds.upper or "") + "~", self._position(last))
        begin = self._position(first)
        return list(self._cut(full_range, begin, (full_range.end - begin) / RANGES, RANGES))

    def _end(self, descending: bool) -> str | None:  # noqa: FBT001  called by map_in_threads
        options = self.bounds.options(descending=descending)
        items = self.partition.items(1, consistent_read=True, **options)
        return next((item["r"]["S"] for item in items), None)

    def _page(self, range_: _Range) -> tuple[Item, list[IndexEntry]]:
        keys = ContentRow.r.between(range_.low, range_.high)
        options = self.options | {"range_key_condition": keys, "exclusive_start_key": range_.start}
        answer = self.partition.query(**options)
        return answer, list(self.read(answer.pop("Items")))

    def _remaining_ranges(self, range_: _Range, answer: Item, rows_left: int) -> Iterator[_Range]:
        start = answer.get("LastEvaluatedKey")
        if start is None:
            return
        key = start["r"]["S"]
        begin = self._position(key)
        # The next ranges are as wide as some pages would be if the entries stayed as dense.
        width = max(1, begin - self._position(range_.low))
        pages = min((range_.end - begin) / width, rows_left / max(1, answer["ScannedCount"]))
        pieces = max(1, min(RANGES, int(pages / PAGES_A_RANGE)))
        unread = _Range(key, range_.high, range_.end, start)
        yield from self._cut(unread, begin, width * pages / pieces, pieces)

    def _cut(self, full_range: _Range, begin: int, width: float, pieces: int) -> Iterator[_Range]:
        low, start = full_range.low, full_range.start
        bounds = {begin + int(width * number) for number in range(1, pieces)}
        for bound in sorted(bound for bound in bounds if begin < bound < full_range.end):
            high = self._key(bound)
            yield _Range(low, high, bound, start)
            low, start = high, None
        yield _Range(low, full_range.high, full_range.end, start)

    def _position(self, key: str) -> int:
        base, number = len(self.digits), 0
        for character in key[:DIGITS].ljust(DIGITS, self.digits[0]):
            number = number * base + min(bisect_left(self.digits, character), base - 1)
        return number

    def _key(self, position: int) -> str:
        # No key is as short as this beginning of one.
        characters = []
        for _ in range(DIGITS):
            position, digit = divmod(position, len(self.digits))
            characters.append(self.digits[digit])
        return "".join(reversed(characters))

"""Store the sums of a workspace's days, and what each booking has added to them (ADR 143).

All rows of sums share a partition, so one query reads them. Whoever changes them saves the row of
the state, so that of two readers at once one counts again.
"""

import json
import zlib
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, Self

from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    ListAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.domains.reports.rules.figures import Counts
from chalicelib.engine.reading import Cost, Key, Partition, fetch, fetch_of
from chalicelib.engine.tables import ContentRow, JsonAttribute

STATE = "0"  # sorts before the Mondays


class StateRow(ContentRow):
    """How far the bookings of a workspace are counted."""

    version = VersionAttribute()
    timezone = UnicodeAttribute()  # of the days
    cursor = UnicodeAttribute()  # Changes before this id of the audit log are counted.
    # Ids of the audit log after the cursor that are counted, too.
    seen: ListAttribute[str] = ListAttribute(default=list)
    # The last booking of the first count, which passes over all; None: it has ended.
    walked_to = UnicodeAttribute(null=True)
    resource_ids: ListAttribute[str] = ListAttribute(default=list)  # also of deleted ones
    read_at = UTCDateTimeAttribute()  # when a member or a program last asked, to the day
    has_job = BooleanAttribute(default=False)


class WeekRow(ContentRow):
    """The sums of the days of a week, whose Monday is the sort key."""

    version = VersionAttribute()
    # Compressed JSON: the numbers by day, and the latest names of services and resources.
    packed = BinaryAttribute(legacy_encoding=False)


class CountedRow(ContentRow):
    """What a booking has added to the sums. The sort key is its id."""

    counts: JsonAttribute = JsonAttribute()


class Week(NamedTuple):
    """The sums of a week."""

    days: Counts
    names: dict[str, str]

    @classmethod
    def from_record(cls, row: WeekRow) -> Self:
        """Return the sums that a row has."""
        return cls.unpack(row.packed)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the sums that a row has in its compressed form."""
        return cls(*json.loads(zlib.decompress(packed)))

    def pack(self) -> bytes:
        """Return the sums in the compressed form of a row."""
        text = json.dumps(self, ensure_ascii=False, separators=(",", ":"))
        return zlib.compress(text.encode(), 6)


class Sums(NamedTuple):
    """The state and the sums that were read."""

    state: StateRow | None
    days: Counts
    names: dict[str, str]  # of services and resources, by ``s:<id>`` and ``p:<id>``


def read_all(workspace_id: str, *, last: str) -> Sums:
    """Return the sums of all weeks until the Monday ``last``, by one query of a megabyte each."""
    items = Partition(partition(workspace_id), Cost()).items(
        range_key_condition=ContentRow.sk <= last, consistent_read=True
    )
    rows: list[Any] = [
        (StateRow if item["sk"]["S"] == STATE else WeekRow).from_raw_data(item) for item in items
    ]
    return _sums(rows)


def read_weeks(workspace_id: str, mondays: Iterable[str]) -> Sums:
    """Return the state and the sums of some weeks, by one request."""
    pk = partition(workspace_id)
    keys = [Key(StateRow, pk, STATE), *(Key(WeekRow, pk, monday) for monday in mondays)]
    return _sums(fetch(keys))


def _sums(rows: Iterable[Any]) -> Sums:
    state, days, names = None, Counts(), dict[str, str]()
    for row in sorted(rows, key=lambda row: str(row.sk)):
        if isinstance(row, StateRow):
            state = row
        else:
            week = Week.from_record(row)
            days |= week.days
            names |= week.names
    return Sums(state, days, names)


def find_state(workspace_id: str) -> StateRow | None:
    """Return the state of the sums, or None if nothing was counted yet."""
    return StateRow.find(partition(workspace_id), STATE)


def fetch_weeks(workspace_id: str, mondays: Collection[str]) -> dict[str, WeekRow]:
    """Return the rows of some weeks, which are new where there were none."""
    pk = partition(workspace_id)
    found = {row.sk: row for row in fetch_of(WeekRow, ((pk, monday) for monday in mondays))}
    return {
        monday: found.get(monday) or WeekRow(pk, monday, packed=Week({}, {}).pack())
        for monday in mondays
    }


def fetch_counted(workspace_id: str, booking_ids: Iterable[str]) -> dict[str, CountedRow]:
    """Return what bookings have added, by their ids, without those that were not counted."""
    pk = counted_partition(workspace_id)
    rows = fetch_of(CountedRow, ((pk, booking_id) for booking_id in booking_ids))
    return {row.sk: row for row in rows}


def partition(workspace_id: str) -> str:
    """Return the partition of the state and the sums."""
    return f"W#{workspace_id}#REPORT"


def counted_partition(workspace_id: str) -> str:
    """Return the partition of what the bookings have added."""
    return f"W#{workspace_id}#REPORT#COUNTED"

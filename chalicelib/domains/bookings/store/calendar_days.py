"""Store small records that list the bookings of one resource on one UTC day (ADR 21).

A booking is entered in every day that it overlaps, including its buffers. So two conflicting
bookings always have a day in common. The transaction of a booking writes these days, if their
versions are unchanged. If two transactions change the same day, the second one fails, runs again
and reads the first booking. Empty days are not deleted, because a new record of the same day would
start with version 1 again.

A day also has the dated starts that overlap it (ADR 141), and the time in which the resource's own
calendar is busy (ADR 135). Slots therefore find them where they find bookings, and a booking
conflicts with a change of them.

A day for which somebody waits has a mark (ADR 142). Each change of such a day makes a job, in the
same transaction, and other days cost nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute, VersionAttribute

from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules.job_kinds import DAYS_CHANGED
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.engine import jobs
from chalicelib.engine.reading import Cost, Item, Key, Partition, Rows
from chalicelib.engine.tables import ContentRow, Row
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span, merge

MAX_ENTRIES = 3000  # per day. One has 64 bytes at most, so a record fits DynamoDB's 400 KB.
_MINUTE = 60_000
_DAY = timedelta(days=1)
_DAY_MINUTES = 24 * 60
_NO_ENTRIES = {"S": ""}


class DayFullError(Exception):
    """A day of a resource has no room for another booking. It never reaches the API."""


class BookedDays(NamedTuple):
    """What takes up a resource's time on some days."""

    entries: list[BusyEntry]
    elsewhere: list[Span]  # busy in the own calendar
    starts: Sequence[DatedStart] = ()


class CalendarDayRow(ContentRow):
    version = VersionAttribute()
    entries = UnicodeAttribute(default="")  # one line per booking
    # Busy times of the own calendar, such as "540-600 720-780": minutes of the UTC day. Half of the
    # day's minutes, one by one, have 7 KB.
    elsewhere = UnicodeAttribute(null=True)
    # Somebody has waited for this day. The mark stays, because the end of a line and the beginning
    # of another one would have to agree on it.
    is_awaited = BooleanAttribute(null=True)
    # One line per dated start. They do not overlap, and one has 60 bytes at most.
    starts = UnicodeAttribute(null=True)

    @property
    def busy(self) -> list[BusyEntry]:
        return list(_parse(self.entries or ""))

    @property
    def busy_elsewhere(self) -> list[Span]:
        return _spans_of(self.sk, self.elsewhere or "")

    @property
    def dated_starts(self) -> list[DatedStart]:
        return list(_parse_starts(self.starts or ""))

    def set_start(self, start: DatedStart, *, removed: bool = False) -> None:
        """Add a dated start, replace the one of its service at its time, or remove that."""
        others = [
            each
            for each in self.dated_starts
            if (each.service_id, each.start) != (start.service_id, start.start)
        ]
        kept = sorted([*others, *([] if removed else [start])], key=lambda each: each.start)
        self.starts = "\n".join(map(_start_line, kept)) or None

    def put(self, entry: BusyEntry) -> None:
        """Add a booking, or replace its entry. Raises DayFullError at ``MAX_ENTRIES``."""
        # The entry is replaced if the unit runs again, so a booking is never listed twice.
        lines = self._other_lines(entry.booking_id)
        if len(lines) >= MAX_ENTRIES:
            raise DayFullError
        self.entries = "\n".join([*lines, _line(entry)])

    def remove(self, booking_id: str) -> None:
        self.entries = "\n".join(self._other_lines(booking_id))

    def _other_lines(self, booking_id: str) -> list[str]:
        lines = (self.entries or "").splitlines()
        return [line for line in lines if not line.startswith(f"{booking_id},")]


def _line(entry: BusyEntry) -> str:
    # At most 63 bytes: the id, the start and the length in minutes, the buffers and the expiry.
    start, start_seconds = divmod(entry.start, _MINUTE)
    length, length_seconds = divmod(entry.end - entry.start, _MINUTE)
    assert not start_seconds, "bookings start on whole minutes"  # noqa: S101  the entry has no seconds
    assert not length_seconds, "bookings last whole minutes"  # noqa: S101  as above
    until = "" if entry.until is None else entry.until
    buffer_before, buffer_after = entry.buffer_before_min, entry.buffer_after_min
    return f"{entry.booking_id},{start},{length},{buffer_before},{buffer_after},{until}"


def _parse(lines: str) -> Iterator[BusyEntry]:
    for line in lines.splitlines():
        booking_id, start, length, buffer_before, buffer_after, until = line.split(",")
        begin = int(start) * _MINUTE
        yield BusyEntry(
            booking_id,
            begin,
            begin + int(length) * _MINUTE,
            int(buffer_before),
            int(buffer_after),
            int(until) if until else None,
        )


def _start_line(dated: DatedStart) -> str:
    start, length = dated.start // _MINUTE, (dated.end - dated.start) // _MINUTE
    return f"{dated.service_id},{start},{length},{dated.buffer_before_min},{dated.buffer_after_min}"


def _parse_starts(lines: str) -> Iterator[DatedStart]:
    for line in lines.splitlines():
        service_id, start, length, buffer_before, buffer_after = line.split(",")
        begin = int(start) * _MINUTE
        end = begin + int(length) * _MINUTE
        yield DatedStart(service_id, begin, end, int(buffer_before), int(buffer_after))


def days_of(span: Span) -> list[str]:
    """Return the UTC days that a span overlaps, in order."""
    first, last = _day(span.start), _day(span.end - 1)
    return [str(first + number * _DAY) for number in range((last - first).days + 1)]


def _spans_of(day: str, text: str) -> list[Span]:
    midnight = _midnight(day)
    minutes = (part.split("-") for part in text.split())
    return [
        Span(midnight + int(start) * _MINUTE, midnight + int(end) * _MINUTE)
        for start, end in minutes
    ]


def elsewhere_by_day(spans: Iterable[Span]) -> dict[str, str]:
    """Return busy times as rows have them, by UTC day. The times are in whole minutes.

    >>> elsewhere_by_day([Span(23 * 3_600_000, 25 * 3_600_000)])
    {'1970-01-01': '1380-1440', '1970-01-02': '0-60'}
    """
    parts = defaultdict[str, list[str]](list)
    for span in spans:
        for day in days_of(span):
            midnight = _midnight(day) // _MINUTE
            start = max(span.start // _MINUTE - midnight, 0)
            end = min(-(-span.end // _MINUTE) - midnight, _DAY_MINUTES)
            parts[day].append(f"{start}-{end}")
    return {day: " ".join(texts) for day, texts in parts.items()}


class KeptDays(NamedTuple):
    """What the days of a resource have besides bookings."""

    elsewhere: dict[str, str]  # busy times of the own calendar as rows have them, by UTC day
    starts: list[DatedStart]


def read_kept(
    workspace_id: str, *, resource_id: str, first_day: str = "0", last_day: str = "9"
) -> KeptDays:
    """Return what days have besides bookings, by default all days."""
    items = list(
        Partition(_partition(workspace_id, resource_id=resource_id), Cost()).items(
            range_key_condition=ContentRow.sk.between(first_day, last_day), consistent_read=True
        )
    )
    texts = {item["sk"]["S"]: item["elsewhere"]["S"] for item in items if "elsewhere" in item}
    return KeptDays(texts, _starts_among(items))


def read_elsewhere(
    workspace_id: str, *, resource_id: str, first_day: str, last_day: str
) -> dict[str, str]:
    """Return the busy times of a resource's own calendar as rows have them, by UTC day."""
    return read_kept(
        workspace_id, resource_id=resource_id, first_day=first_day, last_day=last_day
    ).elsewhere


def days_among(rows: Iterable[Row]) -> Mapping[str, BookedDays]:
    """Return what takes up the time of resources in calendar days among rows, by resource."""
    by_resource = defaultdict[str, list[CalendarDayRow]](list)
    for row in rows:
        if isinstance(row, CalendarDayRow):
            by_resource[row.pk.rpartition("#")[2]].append(row)
    return {resource_id: _booked(days) for resource_id, days in by_resource.items()}


def _booked(rows: Sequence[CalendarDayRow]) -> BookedDays:
    # What overlaps several days is returned once.
    entries = list(dict.fromkeys(entry for row in rows for entry in row.busy))
    starts = list(dict.fromkeys(start for row in rows for start in row.dated_starts))
    return BookedDays(entries, _joined(row.busy_elsewhere for row in rows), starts)


def stage_elsewhere(unit: UnitOfWork, resource_id: str, texts: Mapping[str, str]) -> None:
    """Stage the busy times of a resource's own calendar on some days, which replace the former."""
    partition = _partition(unit.workspace_id, resource_id=resource_id)
    keys = {day: Key(CalendarDayRow, partition, day) for day in texts}
    rows = {row.sk: row for row in unit.rows.fetch(keys.values())}
    changed = []
    for day, text in texts.items():
        row = rows.get(day)
        day_row = row if isinstance(row, CalendarDayRow) else CalendarDayRow(partition, day)
        if (day_row.elsewhere or "") != text:
            day_row.elsewhere = text or None
            unit.save(day_row)
            changed.append(day_row)
    _stage_look(unit, changed)


def mark_awaited(
    unit: UnitOfWork, resource_days: Iterable[tuple[str, Span]]
) -> list[tuple[str, str]]:
    """Stage the mark of days for which somebody waits, and return the newly marked ones."""
    keys = keys_of(unit.workspace_id, resource_days)
    rows = {(row.pk, row.sk): row for row in unit.rows.fetch(keys.values())}
    marked = []
    for resource_day, key in keys.items():
        row = rows.get((key.pk, key.sk))
        day_row = row if isinstance(row, CalendarDayRow) else CalendarDayRow(key.pk, key.sk)
        if not day_row.is_awaited:
            day_row.is_awaited = True
            unit.save(day_row)
            marked.append(resource_day)
    return marked


def _stage_look(unit: UnitOfWork, changed: Iterable[CalendarDayRow]) -> None:
    # The job is in the transaction of the change, so neither is without the other.
    awaited = [row for row in changed if row.is_awaited]
    if awaited:
        days = sorted({row.sk for row in awaited})
        resource_ids = sorted({row.pk.rpartition("#")[2] for row in awaited})
        payload = {"days": days, "resourceIds": resource_ids}
        unit.create(jobs.row(DAYS_CHANGED, unit.workspace_id, payload))


def read(
    workspace_id: str, *, resource_id: str, span: Span, cost: Cost | None = None
) -> BookedDays:
    """Return what takes up a resource's time on the UTC days of a span, by one query."""
    days = days_of(span)
    # A stale read could miss a booking that was just made, and list its time as free.
    partition = Partition(_partition(workspace_id, resource_id=resource_id), cost or Cost())
    items = list(
        partition.items(
            range_key_condition=ContentRow.sk.between(days[0], days[-1]), consistent_read=True
        )
    )
    elsewhere = (
        _spans_of(item["sk"]["S"], item["elsewhere"]["S"]) for item in items if "elsewhere" in item
    )
    return BookedDays(_entries(items), _joined(elsewhere), _starts_among(items))


def _starts_among(items: Iterable[Item]) -> list[DatedStart]:
    # One that overlaps several days is returned once.
    lines = {
        line: None for item in items for line in item.get("starts", _NO_ENTRIES)["S"].splitlines()
    }
    return list(_parse_starts("\n".join(lines)))


def _entries(items: Iterable[Item]) -> list[BusyEntry]:
    # A booking that overlaps several days is returned once.
    lines = {
        line: None for item in items for line in item.get("entries", _NO_ENTRIES)["S"].splitlines()
    }
    return list(_parse("\n".join(lines)))


def _joined(spans: Iterable[Iterable[Span]]) -> list[Span]:
    # Busy times that pass midnight are parts of two days.
    return merge((span for some in spans for span in some), touching=True)


def keys_of(workspace_id: str, spans: Iterable[tuple[str, Span]]) -> dict[tuple[str, str], Key]:
    """Return the keys of the days that the spans overlap, by resource and day."""
    return {
        (resource_id, day): Key(
            CalendarDayRow, _partition(workspace_id, resource_id=resource_id), day
        )
        for resource_id, span in spans
        for day in days_of(span)
    }


class CalendarDays:
    """Calendar days that one transaction reads and changes. The commit checks their versions."""

    def __init__(
        self,
        workspace_id: str,
        spans: Iterable[tuple[str, Span]],
        rows: Rows | None = None,
    ) -> None:
        # One strongly consistent request.
        keys = keys_of(workspace_id, spans)
        rows_by_key = {(row.pk, row.sk): row for row in (rows or Rows()).fetch(keys.values())}
        self._rows: dict[tuple[str, str], CalendarDayRow] = {}
        for resource_day, key in keys.items():
            row = rows_by_key.get((key.pk, key.sk))
            self._rows[resource_day] = (
                row if isinstance(row, CalendarDayRow) else CalendarDayRow(key.pk, key.sk)
            )
        self._changed: set[tuple[str, str]] = set()

    def of(self, resource_id: str) -> BookedDays:
        """Return what takes up the time of a resource on its days."""
        rows = [
            row
            for (row_resource_id, _), row in self._rows.items()
            if row_resource_id == resource_id
        ]
        return _booked(rows)

    def add(self, resource_id: str, entry: BusyEntry) -> None:
        """Add a booking to every day that it overlaps. Raises DayFullError."""
        for day in days_of(entry.buffered):
            self._rows[resource_id, day].put(entry)
            self._changed.add((resource_id, day))

    def remove(self, resource_id: str, entry: BusyEntry) -> None:
        # The buffers may reach into another day, which has an entry of the booking, too.
        for day in days_of(entry.buffered):
            self._rows[resource_id, day].remove(entry.booking_id)
            self._changed.add((resource_id, day))

    def set_start(self, resource_id: str, start: DatedStart, *, removed: bool = False) -> None:
        """Add or replace a dated start in every day that it overlaps, or remove it."""
        for day in days_of(start.buffered):
            self._rows[resource_id, day].set_start(start, removed=removed)
            self._changed.add((resource_id, day))

    def stage(self, unit: UnitOfWork) -> None:
        """Stage the changed days. The commit fails if the versions of the days have changed."""
        for resource_day in sorted(self._changed):
            unit.save(self._rows[resource_day])
        _stage_look(unit, (self._rows[resource_day] for resource_day in self._changed))


def new_rows(
    workspace_id: str,
    booked: Iterable[tuple[str, BusyEntry]],
    dated: Iterable[tuple[str, DatedStart]] = (),
) -> Iterator[CalendarDayRow]:
    """Yield new rows of all calendar days of a workspace.

    They have bookings and dated starts, which are given with their resource ids.

    Existing rows are not read. Use this only to write a whole workspace, as an import does.
    """
    lines = defaultdict[tuple[str, str], list[str]](list)
    for resource_id, entry in booked:
        for day in days_of(entry.buffered):
            lines[resource_id, day].append(_line(entry))
    rows: dict[tuple[str, str], CalendarDayRow] = {}

    def row_of(resource_id: str, day: str) -> CalendarDayRow:
        pk = _partition(workspace_id, resource_id=resource_id)
        return rows.setdefault((resource_id, day), CalendarDayRow(pk, day, version=1))

    for (resource_id, day), entries in lines.items():
        row_of(resource_id, day).entries = "\n".join(entries)
    for resource_id, start in dated:
        for day in days_of(start.buffered):
            row_of(resource_id, day).set_start(start)
    yield from rows.values()


def read_all(workspace_id: str, *, resource_id: str) -> dict[str, list[BusyEntry]]:
    """Return all days of a resource, for tests and repairs."""
    rows: Any = CalendarDayRow.partition(_partition(workspace_id, resource_id=resource_id))
    return {row.sk: row.busy for row in rows}


def _midnight(day: str) -> int:
    return epoch_ms(datetime.combine(date.fromisoformat(day), time(), UTC))


def _day(moment: int) -> date:
    return datetime.fromtimestamp(moment / 1000, UTC).date()


def _partition(workspace_id: str, *, resource_id: str) -> str:
    return f"W#{workspace_id}#CALENDAR#{resource_id}"

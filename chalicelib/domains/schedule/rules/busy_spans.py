"""Compute when the owner of a calendar is busy (ADR 135).

This runs in a process of its own (``gateways.isolation``), because the rules of a stranger's
calendar may take for ever. It returns times only: no title leaves the process. No other module
imports this one, so no other process loads its libraries.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

from icalendar import Calendar  # noqa: TID253  only a process of its own imports this module
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON  # noqa: TID253  as above
from recurring_ical_events import CalendarQuery  # noqa: TID253  as above

from chalicelib.domains.schedule.rules import calendar_text
from chalicelib.domains.schedule.rules.calendar_text import MAX_DAYS, CalendarError, Event, Line
from chalicelib.lib.spans import Span, merge

MAX_INSTANCES = 5_000

Moment = date | datetime  # a date is a whole day

_MINUTE = 60
_DAY = timedelta(days=1)
_TIMES = frozenset(("DTSTART", "DTEND", "RDATE", "EXDATE", "RECURRENCE-ID"))


class UnreadableError(Exception):
    """A calendar that cannot be read, by the code of the reason."""


class BusySpans(NamedTuple):
    """Busy times in minutes since 1970 UTC, sorted and without overlaps."""

    spans: list[Span]
    skipped: int = 0  # events that cannot be read, or repeat every minute or second


def read(zone: str, body: bytes, first_day: str, our_uids: str) -> str:
    """Return the busy times of ``MAX_DAYS`` from a UTC day on, as JSON: spans and ``skipped``.

    ``zone`` is that of dates and of times without a zone, unless the calendar names its own.
    """
    try:
        found = busy_spans(body, zone, date.fromisoformat(first_day), our_uids)
    except CalendarError as error:
        raise UnreadableError(*error.args) from None
    return json.dumps([found.spans, found.skipped])


def busy_spans(body: bytes, zone: str, first_day: date, our_uids: str = "") -> BusySpans:
    """Return the busy times of a calendar, or raise CalendarError."""
    calendar = calendar_text.reduce(body, first_day, our_uids)
    zones = _Zones(_known_zone(calendar.zone) or zone, calendar.zones)
    # One more day on each side, because dates begin earlier or later in other zones.
    start = datetime.combine(first_day, time(), UTC)
    period = (start - _DAY, start + (MAX_DAYS + 1) * _DAY)
    spans, skipped, instances = list[Span](), 0, 0
    for events in calendar.series:
        room = MAX_INSTANCES + 1 - instances
        # An event that no program could read must not hide all others.
        try:
            found = list(islice(_occurrences(_without_frequent(events), zones, period), room))
            spans += [span for pair in found if (span := _span(*pair, ZoneInfo(zones.own)))]
        except Exception:  # noqa: BLE001  the libraries raise many types
            skipped += 1
            continue
        instances += len(found)
        if instances > MAX_INSTANCES:
            raise CalendarError("too_many_instances")
        skipped += sum(map(_is_too_often, events))
    first = int(start.timestamp()) // _MINUTE
    bounds = Span(first, first + MAX_DAYS * 24 * 60)
    cut = (Span(max(span.start, bounds.start), min(span.end, bounds.end)) for span in spans)
    return BusySpans(merge((span for span in cut if span.start < span.end), touching=True), skipped)


class _Zones(NamedTuple):
    own: str  # of dates and of times without a zone
    defined: Mapping[str, Sequence[str]]  # by the calendar itself

    def resolve(self, name: str) -> str:
        # The rules of a known zone are newer than what a calendar has written down.
        return _known_zone(name) or (name if name in self.defined else self.own)


@cache
def _known_zone(name: str) -> str:
    # Names are IANA's, Windows', or end with IANA's: /citadel.org/20210210_1/Europe/Berlin.
    parts = name.strip().split("/")
    tails = ("/".join(parts[-count:]) for count in (3, 2) if len(parts) > count)
    for candidate in (WINDOWS_TO_OLSON.get(name.strip(), name.strip()), *tails):
        # ZoneInfo refuses paths that leave its folder. A folder of zones is no zone.
        with suppress(ValueError, OSError, LookupError):
            if candidate:
                return str(ZoneInfo(candidate))
    return ""


def _is_too_often(event: Event) -> bool:
    return any(map(_repeats_too_often, event.lines))


def _repeats_too_often(line: Line) -> bool:
    frequency = calendar_text.rule_parts(line.value).get("FREQ", "") if line.name == "RRULE" else ""
    return frequency in calendar_text.TOO_OFTEN


def _without_frequent(events: Sequence[Event]) -> list[Event]:
    # The first date of such an event stays busy.
    return [
        Event([line for line in event.lines if not _repeats_too_often(line)]) for event in events
    ]


def _occurrences(
    events: Sequence[Event], zones: _Zones, period: tuple[datetime, datetime]
) -> Iterator[tuple[Moment, Moment]]:
    if len(events) == 1 and (single := _single(events[0], zones)):
        yield single
        return
    calendar = Calendar.from_ical("\r\n".join(_ics(events, zones)))
    for series in CalendarQuery(calendar).series:
        # The library computes a list of all dates of a series first; the process bounds that.
        for occurrence in series.between(*period):
            event = occurrence.as_component(keep_recurrence_attributes=False)
            if event["X-BUSY"] == "1":
                yield occurrence.start, occurrence.end


def _single(event: Event, zones: _Zones) -> tuple[Moment, Moment] | None:
    # Most events are these. To parse them with the library would take ten times as long.
    times = {line.name: line for line in event.lines if line.name in {"DTSTART", "DTEND"}}
    if event.repeats or event.replaces_date or times.keys() != {"DTSTART", "DTEND"}:
        return None
    start, end = (_moment(times[name], zones) for name in ("DTSTART", "DTEND"))
    return None if start is None or end is None else (start, end)


def _moment(line: Line, zones: _Zones) -> Moment | None:
    value = line.value
    if len(value) == 8:  # noqa: PLR2004  YYYYMMDD
        return datetime.strptime(value, "%Y%m%d").date()  # noqa: DTZ007  a date
    if value.endswith("Z"):
        return datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    name = zones.resolve(line.parameters["TZID"]) if "TZID" in line.parameters else zones.own
    if name in zones.defined:
        return None  # The library reads the zone.
    return datetime.strptime(value, "%Y%m%dT%H%M%S").replace(tzinfo=ZoneInfo(name))


def _ics(events: Sequence[Event], zones: _Zones) -> Iterator[str]:
    yield "BEGIN:VCALENDAR"
    used = set[str]()
    texts = list[str]()
    for event in events:
        written = [_written(line, zones, used) for line in event.lines]
        texts += ["BEGIN:VEVENT", f"X-BUSY:{int(event.is_busy)}", *written, "END:VEVENT"]
    for name in used & zones.defined.keys():
        yield from zones.defined[name]
    yield from texts
    yield "END:VCALENDAR"


def _written(line: Line, zones: _Zones, used: set[str]) -> str:
    parameters = {
        name: value for name, value in line.parameters.items() if name in {"VALUE", "RANGE"}
    }
    if line.name in _TIMES and "T" in line.value and not line.value.endswith("Z"):
        zone = line.parameters.get("TZID")
        parameters["TZID"] = zones.resolve(zone) if zone else zones.own
        used.add(parameters["TZID"])
    written = "".join(f';{name}="{value}"' for name, value in parameters.items())
    return f"{line.name}{written}:{line.value}"


def _span(first: Moment, last: Moment, zone: ZoneInfo) -> Span | None:
    start, end = _epoch(first, zone), _epoch(last, zone)
    if not isinstance(first, datetime) and end <= start:
        # A date without an end is one day (RFC 5545, 3.6.1).
        end = _epoch(first + _DAY, zone)
    # A booking starts and ends on whole minutes, so a part of a minute counts.
    begin, finish = int(start // _MINUTE), int(-(-end // _MINUTE))
    return Span(begin, finish) if start < end else None


def _epoch(moment: Moment, zone: ZoneInfo) -> float:
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time(), zone)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment.timestamp()

"""Reduce the text of a stranger's calendar to what says when its owner is busy (ADR 135).

A calendar of ten years has megabytes of titles, notes, guests and reminders. All of that is left
out before a parser sees it, and so are events that ended before the period. Each step is linear.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain
from typing import NamedTuple

MAX_DAYS = 400  # more than the horizon of any service
MAX_EVENTS = 5_000  # of a calendar, without those that ended before the period or are free
MAX_LINES = 1_000_000  # of a file
MAX_LINE = 2**17  # characters: EXDATE names each date that is left out
MAX_ZONE_LINES = 5_000  # of the zones that a calendar defines itself
TOO_OFTEN = ("SECONDLY", "MINUTELY")

_TIMES = ("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")
_KEPT = frozenset(("UID", *_TIMES, "STATUS", "TRANSP", "SEQUENCE", "X-MICROSOFT-CDO-BUSYSTATUS"))
_NAME = re.compile(r"[\w-]{1,60}", re.ASCII)
# Events and replaced dates of a series may be as long as this, and reach into the period.
_LONGEST = timedelta(days=31)


class CalendarError(Exception):
    """A calendar that is not read, by the code of the reason."""


class Line(NamedTuple):
    """A line of a calendar, such as ``DTSTART;TZID=Europe/Berlin:20270104T100000``."""

    name: str
    parameters: Mapping[str, str]
    value: str

    @classmethod
    def parse(cls, text: str) -> "Line | None":
        """Return the parts of a line, or None if it has no name or no value.

        >>> Line.parse('DTSTART;TZID="A:B":20270104').parameters
        {'TZID': 'A:B'}
        """
        # A quoted parameter may contain what separates the parts.
        parts, quoted, begin = list[str](), False, 0
        for at, character in enumerate(text):
            if character == '"':
                quoted = not quoted
            elif character in ";:" and not quoted:
                parts.append(text[begin:at])
                begin = at + 1
                if character == ":":
                    break
        else:
            return None
        name, *parameters = parts
        pairs = (parameter.partition("=") for parameter in parameters)
        named = {key.strip().upper(): value.strip().strip('"') for key, _, value in pairs}
        return cls(name.strip().upper(), named, text[begin:].strip())


class Event(NamedTuple):
    """The lines of an event that say when it is, and whether its time is busy."""

    lines: Sequence[Line]

    def value(self, name: str) -> str:
        """Return the value of the first line with a name, or an empty text."""
        return next((line.value for line in self.lines if line.name == name), "")

    @property
    def uid(self) -> str:
        return self.value("UID")

    @property
    def is_busy(self) -> bool:
        """Whether the time is neither shown as free nor cancelled."""
        if self.value("STATUS").upper() == "CANCELLED":
            return False
        # Outlook sends both. TRANSP has no word for "working elsewhere", which is no absence.
        status = self.value("X-MICROSOFT-CDO-BUSYSTATUS").upper()
        if status:
            return status not in {"FREE", "WORKINGELSEWHERE"}
        return self.value("TRANSP").upper() != "TRANSPARENT"

    @property
    def replaces_date(self) -> bool:
        """Whether it takes the place of one date of a series."""
        return bool(self.value("RECURRENCE-ID"))

    @property
    def repeats(self) -> bool:
        return any(line.name in {"RRULE", "RDATE"} for line in self.lines)

    def ended_before(self, day: date) -> bool:
        """Whether the event, with all dates of its series, surely ended before a day."""
        start, end = _day(self.value("DTSTART")), _day(self.value("DTEND"))
        if start is None or self.value("DURATION") or (end is not None and end < start):
            return False
        length = (end or start) - start + timedelta(days=2)  # offsets of zones, and the last day
        if self.replaces_date:
            replaced = _day(self.value("RECURRENCE-ID"))
            is_one = all(
                "RANGE" not in line.parameters
                for line in self.lines
                if line.name == "RECURRENCE-ID"
            )
            if replaced is None or not is_one or self.repeats:
                return False
            return max(start + length, replaced + _LONGEST) < day
        if any(line.name == "RDATE" for line in self.lines):
            return False
        rules = [line.value for line in self.lines if line.name == "RRULE"]
        lasts = [_day(rule_parts(rule).get("UNTIL", "")) if rule else start for rule in rules]
        if None in lasts:
            return False
        return max([start, *(last for last in lasts if last)]) + length < day


class CalendarText(NamedTuple):
    """What is left of a calendar."""

    series: Sequence[Sequence[Event]]  # the events of each UID
    zones: Mapping[str, Sequence[str]]  # the lines of zones that the calendar defines, by name
    zone: str  # ``X-WR-TIMEZONE``, or an empty text


def reduce(body: bytes, first_day: date, our_uids: str = "") -> CalendarText:
    """Return the events of a calendar that may be busy from a day on.

    Events whose UID ends with ``our_uids`` are our own bookings, and left out.

    Raises:
        CalendarError: it is no calendar, or it is too large.
    """
    text = body.decode("utf-8-sig", errors="replace")
    if not text[:1000].lstrip().upper().startswith("BEGIN:VCALENDAR"):
        raise CalendarError("not_a_calendar")
    zones: dict[str, list[str]] = {}
    by_uid: defaultdict[str, list[Event]] = defaultdict(list)
    zone, zone_lines, number = "", 0, 0
    for component in _components(_unfolded(text)):
        if isinstance(component, str):
            line = Line.parse(component)
            zone = line.value if line and line.name == "X-WR-TIMEZONE" else zone
        elif isinstance(component, Event):
            number += 1
            uid = component.uid
            if (our_uids and uid.endswith(our_uids)) or component.ended_before(first_day):
                continue
            # Without a UID, each event is a series of its own.
            by_uid[uid or f"#{number}"].append(component)
        else:
            zone_lines += len(component)
            if zone_lines > MAX_ZONE_LINES:
                raise CalendarError("too_many_events")
            names = (text for text in component if text.upper().startswith("TZID"))
            name = Line.parse(next(names, ""))
            zones |= {name.value: component} if name else {}
    series = [events for events in by_uid.values() if _may_be_busy(events)]
    if sum(map(len, series)) > MAX_EVENTS:
        raise CalendarError("too_many_events")
    return CalendarText(series, zones, zone)


def _may_be_busy(events: Sequence[Event]) -> bool:
    # A series may be free but for one of its dates.
    return any(event.is_busy for event in events)


def rule_parts(rule: str) -> dict[str, str]:
    """Return the parts of a rule, such as ``FREQ=WEEKLY;BYDAY=MO``."""
    pairs = (part.partition("=") for part in rule.upper().split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _unfolded(text: str) -> Iterator[str]:
    # A line that begins with a space continues the one before (RFC 5545, 3.1). Only the line ends
    # of the standard count: ``splitlines`` splits at characters that titles may have.
    parts: list[str] = []
    size = 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) > MAX_LINES:
        raise CalendarError("too_many_events")
    for line in chain(lines, [""]):
        if line[:1] in {" ", "\t"}:
            size += len(line)
            if size <= MAX_LINE:
                parts.append(line[1:])
            continue
        if parts:
            yield "".join(parts)
        parts, size = [line[:MAX_LINE]], len(line)


def _components(lines: Iterable[str]) -> Iterator[Event | list[str] | str]:
    """Yield events, zones as their lines, and other lines of the calendar itself."""
    for text in lines:
        name = _begun(text)
        if name == "VEVENT":
            yield Event(list(_own_lines(lines)))
        elif name == "VTIMEZONE":
            yield [text, *_until_end(lines)]
        elif name == "VCALENDAR" or not name:
            yield text
        else:
            deque(_until_end(lines), maxlen=0)


def _begun(text: str) -> str:
    head = text[:60].strip().upper()
    return head.removeprefix("BEGIN:") if head.startswith("BEGIN:") else ""


def _until_end(lines: Iterable[str]) -> Iterator[str]:
    # The lines of a component that has begun, with those of its parts, and its end.
    depth = 1
    for text in lines:
        yield text
        depth += bool(_begun(text)) - text[:4].upper().startswith("END:")
        if not depth:
            return


def _own_lines(lines: Iterable[str]) -> Iterator[Line]:
    # Reminders inside an event have lines of the same names.
    inner = 0
    for text in _until_end(lines):
        inner += bool(_begun(text)) - text[:4].upper().startswith("END:")
        name = _NAME.match(text)
        if not inner and name and name[0].upper() in _KEPT and (line := Line.parse(text)):
            yield line


def _day(value: str) -> date | None:
    digits = value[:8]
    if not (digits.isascii() and digits.isdigit()):
        return None
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None

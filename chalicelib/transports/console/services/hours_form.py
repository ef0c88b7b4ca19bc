"""Convert the form of opening hours to rules and back.

A field of type ``time`` has no 24:00, so an end at 00:00 is the midnight after the start. Any other
end before the start is a mistake unless ``next`` is ticked: the hours then end on the next day.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from chalicelib.lib.zoned_times import WEEKDAYS

FIRST_OF_DAY, END_OF_DAY = "00:00", "24:00"
MAX_INTERVALS = 24
# Hours that the form of a resource without hours suggests, and that a save stores.
SUGGESTED = dict.fromkeys(WEEKDAYS[:5], (("09:00", "18:00"),))
Intervals = list[dict[str, str]]
_DAY = 24 * 60
_TIME = re.compile(r"([01]?[0-9]|2[0-4])[:.]([0-5][0-9])(?::00)?", re.ASCII)


class Typed(NamedTuple):
    start: str = ""
    end: str = ""
    overnight: bool = False

    @property
    def is_blank(self) -> bool:
        return not (self.start or self.end)

    @property
    def offers_overnight(self) -> bool:
        """Whether the line's end precedes its start, so that the form offers the next day."""
        start, end = _minutes(self.start), _minutes(self.end)
        return self.overnight or (start is not None and end is not None and 0 < end <= start)


class Day(NamedTuple):
    """The hours of a day as typed. ``key`` is ``mon`` to ``sun``, or ``date``."""

    key: str
    is_open: bool
    lines: list[Typed]

    @property
    def filled(self) -> list[Typed]:
        return [line for line in self.lines if not line.is_blank]

    @property
    def intervals(self) -> Intervals:
        """The hours as ``set_availability`` takes them. A closed day has none."""
        return [
            {"start": _padded(line.start), "end": _end(line)}
            for line in (self.filled if self.is_open else ())
        ]


def day_from_intervals(key: str, intervals: Sequence[Mapping[str, str]]) -> Day:
    """Return the day that shows stored hours."""
    lines = [
        Typed(
            interval["start"],
            FIRST_OF_DAY if interval["end"] == END_OF_DAY else interval["end"],
            interval["end"] <= interval["start"],
        )
        for interval in intervals
    ]
    return Day(key, bool(lines), lines or [Typed()])


def suggested(key: str) -> Day:
    """Return a day of the hours that the form suggests first."""
    lines = [Typed(*times) for times in SUGGESTED.get(key, ())]
    return Day(key, bool(lines), lines or [Typed()])


def read(form: Mapping[str, list[str]], key: str) -> Day:
    """Return a day as typed in a form."""
    starts, ends = form.get(f"start-{key}", []), form.get(f"end-{key}", [])
    ticked = set(form.get(f"next-{key}", []))
    lines = [
        Typed(start.strip()[:8], end.strip()[:8], str(number) in ticked)
        for number, (start, end) in enumerate(zip(starts, ends, strict=False))
    ]
    return Day(key, key in form.get("open", []), lines or [Typed()])


def errors(day: Day, stored_intervals: Sequence[Mapping[str, str]] = ()) -> dict[str, str]:
    """Return the catalogue key of each wrong line's error, by the id of the line."""
    if not day.is_open:
        return {}
    if not day.filled:
        return {f"{day.key}-0": "wrong_hours_missing"}
    wrong = {
        f"{day.key}-{number}": text
        for number, line in enumerate(day.lines)
        if not line.is_blank and (text := _error(line))
    }
    # Hours that are stored already are right, even if the form could not make them.
    if wrong or day.intervals == list(stored_intervals):
        return wrong
    if len(day.filled) > MAX_INTERVALS:
        return {f"{day.key}-0": "wrong_hours_many"}
    spans = sorted(
        (*_span(line), number) for number, line in enumerate(day.lines) if not line.is_blank
    )
    for (_, end, _), (start, _, number) in pairwise(spans):
        if start < end:
            wrong[f"{day.key}-{number}"] = "wrong_hours_overlap"
    return wrong


def _error(line: Typed) -> str | None:
    start, end = _minutes(line.start), _minutes(line.end)
    if start is None or end is None or start == _DAY:
        return "wrong_hours_time"
    if start == end and end:
        return "wrong_hours_empty"
    if 0 < end < start and not line.overnight:
        return "wrong_hours_order"
    return None


def _span(line: Typed) -> tuple[int, int]:
    # minutes since midnight
    start, end = _minutes(line.start) or 0, _minutes(line.end) or 0
    if not end:
        return start, _DAY
    return start, end if end > start else end + _DAY


def _end(line: Typed) -> str:
    end = _padded(line.end)
    return END_OF_DAY if end == FIRST_OF_DAY else end


def _padded(text: str) -> str:
    minutes = _minutes(text)
    return text if minutes is None else f"{minutes // 60:02}:{minutes % 60:02}"


def _minutes(text: str) -> int | None:
    match = _TIME.fullmatch(text)
    minutes = int(match[1]) * 60 + int(match[2]) if match else None
    return minutes if minutes is not None and minutes <= _DAY else None


def add_line(day: Day) -> Day:
    """Return a day that is open and has another blank line, unless it ends with one."""
    if day.lines and day.lines[-1].is_blank:
        return day._replace(is_open=True)
    return day._replace(is_open=True, lines=[*day.lines, Typed()])


def remove_line(day: Day, number: int) -> Day:
    """Return a day without one of its lines. Without any, it is closed."""
    lines = [line for place, line in enumerate(day.lines) if place != number]
    return day._replace(is_open=day.is_open and bool(lines), lines=lines or [Typed()])

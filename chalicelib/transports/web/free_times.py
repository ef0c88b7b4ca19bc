"""A month with free days and the free times of one day, as the booking pages show them.

Each day and each time is a link, so the calendar needs no script, and the keyboard works.
"""

from calendar import Calendar
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from chalicelib.transports.web import texts
from chalicelib.transports.web.booking_facts import zone_text
from chalicelib.transports.web.texts import Language

Link = Callable[..., str]  # Returns the link to a step, with these query parameters.

_MONDAY = date(2024, 1, 1)
_LONG_DAY = "EEEE, d MMMM"
_NEAR_WEEKS = 2
"""Weeks that narrow screens show at first, so that the first time is near the top."""


class Cell(NamedTuple):
    """A day of the month, or of the next one in the last week.

    A day without free times has no ``link``.
    """

    number: int
    label: str
    link: str | None
    is_selected: bool
    is_today: bool
    is_beside: bool  # in the next month


class Week(NamedTuple):
    """A week with free times or the selected day."""

    cells: list[Cell | None]
    is_far: bool  # Narrow screens show it on request.
    follows_gap: bool  # The weeks between it and the one above have no free times.


class LinkedMonth(NamedTuple):
    """A month to look at next."""

    text: str
    link: str


class Choice(NamedTuple):
    """A time that can be chosen. ``at`` is the moment, and ``text`` the local time."""

    at: str
    text: str
    link: str
    note: str  # what the time costs, or how long it takes


class FreeDay(NamedTuple):
    """A day with free times."""

    text: str
    link: str


class MonthView(NamedTuple):
    """The calendar of a month and the times of its selected day."""

    title: str
    weekdays: list[tuple[str, str]]
    weeks: list[Week]
    previous: str | None
    next: str | None
    ahead: LinkedMonth | None  # the next month, if little of this one is left
    day: str | None
    choices: list[Choice]
    next_free: FreeDay | None  # after the selected day
    zone: str
    zone_name: str
    is_dated: bool = False  # The choices are the dates of all months, and there is no calendar.


def month_view(
    language: Language,
    times: Mapping[str, Any],
    link: Link,
    note: Callable[[Sequence[str]], str] = lambda _: "",
) -> MonthView:
    """Return the view of ``MonthOfSlots``, in its wire form.

    ``note`` returns the note of a time, by the ids of the resources that are free.
    """
    if times["fixedStarts"]:
        return _dates_view(language, times, link, note)
    month = _first_of(times["month"])
    free = {day["date"] for day in times["days"] + times["daysAfter"]}
    selected, upcoming = times["day"], times["nextAvailable"]
    later = min((day for day in free if selected and day > selected), default=None)

    def cell(day: date) -> Cell | None:
        at = day.isoformat()
        is_beside = day.month != month.month
        if day < month or (is_beside and at not in free):
            return None
        return Cell(
            day.day,
            texts.dated(language, day, _LONG_DAY),
            link(day=at) if at in free else None,
            at == selected,
            at == times["today"],
            is_beside,
        )

    days = [_MONDAY.replace(day=number) for number in range(1, 8)]
    weeks = [
        [cell(day) for day in week]
        for week in Calendar().monthdatescalendar(month.year, month.month)
    ]
    shown = _shown_weeks(weeks)
    return MonthView(
        title=texts.dated(language, month, "LLLL y"),
        weekdays=[
            (texts.dated(language, d, "ccc"), texts.dated(language, d, "cccc")) for d in days
        ],
        weeks=shown,
        previous=times["previousMonth"] and link(month=times["previousMonth"]),
        next=times["nextMonth"] and link(month=times["nextMonth"]),
        ahead=_ahead(language, times["nextMonth"], link) if len(shown) <= _NEAR_WEEKS else None,
        day=selected and texts.dated(language, date.fromisoformat(selected), _LONG_DAY),
        choices=_times(language, times["slots"], link, note),
        next_free=_next_free(language, _day_of(upcoming) if upcoming else later, link),
        zone=zone_text(times["timezone"], _shown_moment(times)),
        zone_name=times["timezone"],
    )


def _dates_view(
    language: Language,
    times: Mapping[str, Any],
    link: Link,
    note: Callable[[Sequence[str]], str],
) -> MonthView:
    more = times["nextAvailable"]
    return MonthView(
        title=texts.translate(language, "book_dates"),
        weekdays=[],
        weeks=[],
        previous=None,
        next=None,
        ahead=None,
        day=None,
        choices=[
            _choice(
                language,
                slot,
                link,
                "EEE, d MMMM, HH:mm",
                ", ".join(filter(None, (places_text(language, slot), note(slot["resourceIds"])))),
            )
            for slot in times["slots"]
        ],
        next_free=_next_free(language, _day_of(more) if more else None, link),
        zone=zone_text(times["timezone"], _shown_moment(times)),
        zone_name=times["timezone"],
        is_dated=True,
    )


def places_text(language: Language, slot: Mapping[str, Any]) -> str:
    """Return how many places of a date are left, or nothing for a time without dates."""
    if "places" not in slot:
        return ""
    return texts.translate(language, "book_places_left", free=slot["free"], places=slot["places"])


def _shown_weeks(weeks: list[list[Cell | None]]) -> list[Week]:
    # Weeks that have passed have no free times either.
    numbers = [
        number
        for number, week in enumerate(weeks)
        if any(cell and (cell.link or cell.is_selected) for cell in week)
    ]
    selected = next(
        (n for n, at in enumerate(numbers) if any(cell and cell.is_selected for cell in weeks[at])),
        0,
    )
    first = max(0, min(selected, len(numbers) - _NEAR_WEEKS))
    return [
        Week(weeks[at], not first <= n < first + _NEAR_WEEKS, n > 0 and at > numbers[n - 1] + 1)
        for n, at in enumerate(numbers)
    ]


def _ahead(language: Language, month: str | None, link: Link) -> LinkedMonth | None:
    if month is None:
        return None
    return LinkedMonth(texts.dated(language, _first_of(month), "LLLL y"), link(month=month))


def _first_of(month: str) -> date:
    return date.fromisoformat(f"{month}-01")


def _times(
    language: Language,
    slots: list[dict[str, Any]],
    link: Link,
    note: Callable[[Sequence[str]], str],
) -> list[Choice]:
    # If clocks go back, repeated times are shown with their offset.
    seen = Counter(slot["startLocal"][:16] for slot in slots)
    choices_of_day = []
    for slot in slots:
        choice = _choice(language, slot, link, "HH:mm", note(slot["resourceIds"]))
        if seen[slot["startLocal"][:16]] > 1:
            offset = datetime.fromisoformat(slot["startLocal"]).utcoffset() or timedelta()
            minutes = offset // timedelta(minutes=1)
            choice = choice._replace(text=f"{choice.text} {texts.zone(minutes)}")
        choices_of_day.append(choice)
    return choices_of_day


def choices(
    language: Language, slots: list[dict[str, Any]], link: Link = lambda **_: ""
) -> list[Choice]:
    """Return times of several days, such as those nearest to one that is taken."""
    pattern = "EEEE, d MMMM, HH:mm"
    return [_choice(language, slot, link, pattern, places_text(language, slot)) for slot in slots]


def _choice(
    language: Language, slot: Mapping[str, Any], link: Link, pattern: str, note: str = ""
) -> Choice:
    local = datetime.fromisoformat(slot["startLocal"])
    label = texts.dated(language, local, pattern)
    return Choice(slot["startAt"], label, link(at=slot["startAt"], ids=slot["resourceIds"]), note)


def _day_of(slot: Mapping[str, Any]) -> str:
    return str(slot["startLocal"])[:10]


def _next_free(language: Language, day: str | None, link: Link) -> FreeDay | None:
    if day is None:
        return None
    return FreeDay(texts.dated(language, date.fromisoformat(day), _LONG_DAY), link(day=day))


def _shown_moment(times: Mapping[str, Any]) -> datetime:
    # An offset may change during the year, so it is the one of the shown day or month.
    if times["slots"]:
        return datetime.fromisoformat(times["slots"][0]["startAt"])
    day = times["day"] or f"{times['month']}-01"
    return datetime.fromisoformat(f"{day}T12:00:00+00:00")

"""Days and times of day in what a visitor writes, in English and Russian."""

# ruff: noqa: RUF001  Cyrillic letters are intended

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import NamedTuple

from chalicelib.core.text import fold
from chalicelib.lib.localized import Language

MAX_AHEAD = timedelta(days=366)
"""A day that is further away is not understood."""
NOON = 12
DAY_HOURS = 24
HOUR_MINUTES = 60
DAY_MINUTES = DAY_HOURS * HOUR_MINUTES
FIRST_HOUR = 8
"""Hours before this one, without "am" or minutes, are meant after noon: "at three"."""

WEEKDAYS: dict[Language, tuple[str, ...]] = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "ru": ("понедельник", "вторник", "среда", "четверг", "пятница", "суббота", "воскресенье"),
}
MONTHS: dict[Language, tuple[str, ...]] = {
    "en": (
        *("January", "February", "March", "April", "May", "June", "July"),
        *("August", "September", "October", "November", "December"),
    ),
    "ru": (
        *("января", "февраля", "марта", "апреля", "мая", "июня", "июля"),
        *("августа", "сентября", "октября", "ноября", "декабря"),
    ),
}


class Days(NamedTuple):
    """The local dates from ``first`` to ``last``, both included."""

    first: date
    last: date


class When(NamedTuple):
    """The days and the times of day in a text. Times are in minutes after midnight.

    ``at`` has the possible meanings of one time, the likeliest first: "at three" is 15:00 or 3:00.
    ``earliest`` and ``latest`` bound a part of the day.
    """

    days: Days | None = None
    at: tuple[int, ...] = ()
    earliest: int = 0
    latest: int = DAY_MINUTES

    @property
    def has_time(self) -> bool:
        """Whether the text names a time or a part of the day."""
        return bool(self.at) or (self.earliest, self.latest) != (0, DAY_MINUTES)


def read(text: str, today: date | None) -> When:
    """Return the days and times in a text. Without ``today`` no day is understood."""
    rest = _GREETING.sub(" ", fold(text))
    days = None
    if today is not None:
        for pattern, meaning in _DAYS:
            for match in pattern.finditer(rest):
                days = days or _within_a_year(meaning, match, today)
            if days is not None:
                rest = pattern.sub(" ", rest)
                break
    return _times(rest)._replace(days=days)


def label(start: str, language: Language) -> str:
    """Return a local time such as ``2026-11-27T10:00`` as ``Friday, 27 November, 10:00``."""
    day = date.fromisoformat(start[:10])
    weekday, month = WEEKDAYS[language][day.weekday()], MONTHS[language][day.month - 1]
    return f"{weekday}, {day.day} {month}, {start[11:16]}"


def _within_a_year(
    meaning: Callable[[re.Match[str], date], Days], match: re.Match[str], today: date
) -> Days | None:
    try:
        days = meaning(match, today)
    except (ValueError, OverflowError):
        return None
    return days if today <= days.first <= today + MAX_AHEAD else None


def _one(day: date) -> Days:
    return Days(day, day)


def _iso(match: re.Match[str], _: date) -> Days:
    return _one(date.fromisoformat(match[0]))


def _day_and_month(match: re.Match[str], today: date) -> Days:
    """Return the next date with a day and a month, as number or name, unless a year is given."""
    parts = match.groupdict()
    named = parts["month"]
    month = int(named) if named.isdecimal() else _month_named(named)
    if year := parts.get("year"):
        return _one(date(int(year) % 100 + 2000, month, int(parts["day"])))
    day = date(today.year, month, int(parts["day"]))
    return _one(day if day >= today else day.replace(year=today.year + 1))


def _month_named(name: str) -> int:
    """Return the number of a month by the first letters of its name."""
    for names in MONTHS.values():
        for number, month in enumerate(names, start=1):
            if fold(month)[:2] == name[:2] and fold(month)[:3] in {name[:3], f"{name[:2]}я"}:
                return number
    raise ValueError(name)


def _day_of_month(match: re.Match[str], today: date) -> Days:
    number = int(match["day"])
    days = (today + timedelta(days=ahead) for ahead in range(62))
    return _one(next((day for day in days if day.day == number), date.max))


def _weekday(match: re.Match[str], today: date) -> Days:
    """Return the next such day: today at the earliest, in the next week if the text says so."""
    number = next(index for index, name in enumerate(_WEEKDAY_NAMES, 1) if match[f"d{index}"])
    if match["next"]:
        return _one(_monday(today) + timedelta(days=6 + number))
    return _one(today + timedelta(days=(number - 1 - today.weekday()) % 7))


def _monday(today: date) -> date:
    return today - timedelta(days=today.weekday())


def _weekend(_: re.Match[str], today: date) -> Days:
    monday = _monday(today)
    return Days(max(today, monday + timedelta(days=5)), monday + timedelta(days=6))


def _week(match: re.Match[str], today: date) -> Days:
    monday = _monday(today) + timedelta(days=7 if match["next"] else 0)
    return Days(max(today, monday), monday + timedelta(days=6))


def _ahead(days: int) -> Callable[[re.Match[str], date], Days]:
    return lambda _, today: _one(today + timedelta(days=days))


_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|январ\w+|феврал\w+|март\w*|апрел\w+|ма[йяе]|июн\w+|июл\w+|август\w*"
    r"|сентябр\w+|октябр\w+|ноябр\w+|декабр\w+)\b"
)
_WEEKDAY_NAMES = (
    r"mondays?|понедельник\w*|пн",
    r"tuesdays?|вторник\w*|вт",
    r"wednesdays?|сред[ауы]|ср",
    r"thursdays?|четверг\w*|чт",
    r"fridays?|пятниц\w+|пт",
    r"saturdays?|суббот\w+|сб",
    r"sundays?|воскресень\w+|вс",
)
_NEXT = r"(?P<next>(?:next|следующ\w+)\s+)?"
_DAY = r"(?<![\w.:])(?P<day>\d{1,2})"
_GREETING = re.compile(
    r"\bgood (?:morning|afternoon|evening|day)\b|\bдобр\w+ (?:утр|дн|ден|веч)\w*"
)
_DAYS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Days]], ...] = (
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), _iso),
    (
        re.compile(_DAY + r"\.(?P<month>0?[1-9]|1[012])(?:\.(?P<year>\d{4}|\d\d))?(?![\w:]|\.\d)"),
        _day_and_month,
    ),
    (re.compile(_DAY + r"(?:st|nd|rd|th|-?(?:го|е))?(?: of)? " + _MONTH), _day_and_month),
    (re.compile(r"\b" + _MONTH + r" (?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\w:])"), _day_and_month),
    (re.compile(r"\bday after tomorrow\b|\bпослезавтра\b"), _ahead(2)),
    (re.compile(r"\btomorrow\b|\bзавтра\b"), _ahead(1)),
    (re.compile(r"\btoday\b|\btonight\b|\bсегодня\b"), _ahead(0)),
    (
        re.compile(
            rf"\b{_NEXT}(?:"
            + "|".join(f"(?P<d{number}>{name})" for number, name in enumerate(_WEEKDAY_NAMES, 1))
            + r")\b"
        ),
        _weekday,
    ),
    (re.compile(r"\bweekend\b|\bвыходны[ех]\w?\b"), _weekend),
    (re.compile(rf"\b(?:this |эт\w+ |{_NEXT})(?:week|недел\w+)\b"), _week),
    (
        re.compile(r"\bon the (?P<day>\d{1,2})(?:st|nd|rd|th)\b(?! (?:one|time|slot))"),
        _day_of_month,
    ),
    (re.compile(_DAY + r"(?:-?го\b| числ\w+)"), _day_of_month),
)
"""Patterns of folded texts with their meanings, the most exact first."""

_HOUR_WORDS = {
    **dict.fromkeys(("one", "час"), 1),
    **dict.fromkeys(("two", "два"), 2),
    **dict.fromkeys(("three", "три"), 3),
    **dict.fromkeys(("four", "четыре"), 4),
    **dict.fromkeys(("five", "пять"), 5),
    **dict.fromkeys(("six", "шесть"), 6),
    **dict.fromkeys(("seven", "семь"), 7),
    **dict.fromkeys(("eight", "восемь"), 8),
    **dict.fromkeys(("nine", "девять"), 9),
    **dict.fromkeys(("ten", "десять"), 10),
    **dict.fromkeys(("eleven", "одиннадцать"), 11),
    **dict.fromkeys(("twelve", "двенадцать"), 12),
}
_FROM = "after|from|since|после|с"
_UNTIL = "before|until|till|by|до"
_TIME = re.compile(
    rf"(?:\b(?P<relation>{_FROM}|{_UNTIL}|at|around|about|в|во|к|на|около)\s+)?"
    rf"(?<![\w.,:])(?P<hour>\d{{1,2}}|{'|'.join(_HOUR_WORDS)})(?:(?P<mark>[:.])(?P<minute>\d\d))?"
    r"(?:\s*(?P<hours>час\w{0,3}|o'?clock))?"
    r"(?:\s*(?P<part>a\.?m|p\.?m|утра|дня|вечера|ночи))?(?!\w|[:.,]\d)"
    r"(?!\s*(?:чел|перс|people|persons?\b|guest|мин|min|руб|rub|шт|pc|piece|kg|кг|гр?\b|[%₽$€]))"
)
_PARTS = (
    (re.compile(r"\bnoon\b|\bполдень\b|\bполудн\w+"), When(at=(720,))),
    (re.compile(r"\bafternoon\b|\bднем\b|после обеда"), When(earliest=720, latest=1080)),
    (re.compile(r"\bmornings?\b|\bутр(?:о|ом|ам)\b"), When(latest=720)),
    (re.compile(r"\bevenings?\b|\bвечер(?:ом|ами?|а|у)?\b"), When(earliest=1020)),
)


def _times(text: str) -> When:
    """Return the times of day in a folded text without days."""
    found = When()
    for match in _TIME.finditer(text):
        minutes = tuple(_meanings(match))
        if not minutes:
            continue
        relation = match["relation"]
        if relation in _FROM.split("|"):
            found = found._replace(earliest=minutes[0])
        elif relation in _UNTIL.split("|"):
            found = found._replace(latest=minutes[0])
        elif not found.at:
            found = found._replace(at=minutes)
    if found.has_time:
        return found
    return next((meaning for pattern, meaning in _PARTS if pattern.search(text)), found)


def _meanings(match: re.Match[str]) -> Iterator[int]:
    """Yield the possible minutes after midnight of a time, the likeliest first."""
    written, mark, part = match["hour"], match["mark"], match["part"] or ""
    if not (mark == ":" or part or match["hours"] or match["relation"]):
        return
    hour = int(written) if written.isdecimal() else _HOUR_WORDS[written]
    minute = int(match["minute"] or 0)
    if hour >= DAY_HOURS or minute >= HOUR_MINUTES:
        return
    if part in {"pm", "p.m", "дня", "вечера"}:
        hours = [hour % NOON + NOON]
    elif part in {"am", "a.m", "утра", "ночи"}:
        hours = [hour % NOON]
    elif hour in {0, *range(NOON, DAY_HOURS)} or (mark and len(written) > 1):
        hours = [hour]
    else:
        hours = sorted([hour, hour + NOON], key=lambda each: each < FIRST_HOUR)
    yield from (each * HOUR_MINUTES + minute for each in hours)

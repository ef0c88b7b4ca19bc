"""Offers and booking hours of a business, as the embedded model receives them.

The chat adds a system message with the services and products that the visitor's question may be
about, and with booking hours if it is about those. The message is data: one JSON object a line, in
a fence that nothing within can close. Other models do not receive it.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from chalicelib.gateways.llm.messages import Message, count_input
from chalicelib.lib import extracts

MAX_OFFERS = 20
MAX_TOKENS = 2_000
"""What a message of offers takes at most, counted as input like any other."""
MAX_DESCRIPTION = 300
"""Characters of a description that are told."""
MAX_HOURS = 10
"""Resources whose hours are sent."""
MOST_WORDS = 3

_HEAD = "What the business offers, and when it can be booked, as data:\n<offers>\n"
_FENCED = re.compile(re.escape(_HEAD) + r"(.*)\n</offers>", re.DOTALL)


class Offer(NamedTuple):
    """An active service or product; ``price`` is in kopecks, services take ``duration_min``."""

    kind: Literal["service", "product"]
    name: str
    price: int
    duration_min: int | None = None
    description: str = ""


class Hours(NamedTuple):
    """Weekly booking hours of a resource, Monday first: ``10:00-14:00, 15:00-20:00``, or empty."""

    name: str
    days: tuple[str, ...]


_ABOUT_HOURS = extracts.stems(
    "hours open opens opening opened close closes closed closing schedule book booking appointment"
    " часы график расписание режим работаете открыты закрыты выходные записаться прием принимаете"
)


def asks_for_hours(question: str) -> bool:
    """Return whether a question is about opening hours or about when to come."""
    return bool(extracts.stems(question) & _ABOUT_HOURS)


def search_words(question: str) -> list[str]:
    """Return the beginnings of the words to look for offers by, the most telling first."""
    found = sorted(extracts.words(question), key=len, reverse=True)
    return list(dict.fromkeys(map(extracts.stem, found)))[:MOST_WORDS]


def message(
    question: str, candidates: Iterable[Offer], hours: Sequence[Hours] = ()
) -> Message | None:
    """Return the message with hours and offers for the embedded model, or None without any.

    Of the candidates (those found by ``search_words`` and a few of the first, in the owner's
    order), the nearest to the question come first. Whatever exceeds ``MAX_HOURS``, ``MAX_OFFERS``
    or ``MAX_TOKENS`` is left out.
    """
    offers = list(dict.fromkeys(candidates))
    near = extracts.most_relevant(question, [f"{each.name} {each.description}" for each in offers])
    order = list(dict.fromkeys([*near, *range(len(offers))]))[:MAX_OFFERS]
    facts = [*hours[:MAX_HOURS], *(offers[number] for number in order)]
    lines: list[str] = []
    fitting: Message | None = None
    for fact in facts:
        lines.append(_line(fact))
        more = Message("system", _HEAD + "\n".join(lines) + "\n</offers>")
        if count_input([more]) > MAX_TOKENS:
            break
        fitting = more
    return fitting


def _line(fact: Offer | Hours) -> str:
    data = fact._asdict()
    if isinstance(fact, Offer):
        data["description"] = fact.description[:MAX_DESCRIPTION].strip()
    text = json.dumps({k: v for k, v in data.items() if v not in (None, "")}, ensure_ascii=False)
    # Escaped, nothing in the data can end the fence or the line.
    return text.replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " ")


class Known(NamedTuple):
    """Content of the message that ``message`` made, and the other messages."""

    offers: list[Offer]
    hours: list[Hours]
    rest: list[Message]


def read(messages: Sequence[Message]) -> Known:
    """Return the offers and hours in the messages, and the messages without them."""
    known = Known([], [], [])
    for each in messages:
        match = _FENCED.fullmatch(each.content) if each.role == "system" else None
        if match is None:
            known.rest.append(each)
            continue
        for data in map(json.loads, match[1].split("\n")):
            if "days" in data:
                known.hours.append(Hours(data["name"], tuple(data["days"])))
            else:
                known.offers.append(Offer(**data))
    return known


def shown(offer: Offer, *, in_russian: bool) -> str:
    """Return an offer as a visitor reads it: name, price, how long it takes, what it is."""
    whole, part = divmod(offer.price, 100)
    amount = f"{whole:,}" + (f".{part:02}" if part else "")
    if in_russian:
        amount = amount.replace(",", "\u00a0").replace(".", ",")
    free, minutes = ("бесплатно", "мин") if in_russian else ("free", "min")
    terms = [f"{amount}\u00a0₽" if offer.price else free]
    if offer.duration_min:
        terms.append(f"{offer.duration_min}\u00a0{minutes}")
    return f"{offer.name}: {', '.join(terms)}. {offer.description}".rstrip()


_HOURS = {True: "Обычные часы записи:", False: "Usual booking hours:"}
_DAYS = {
    True: ("пн", "вт", "ср", "чт", "пт", "сб", "вс"),  # noqa: RUF001  Cyrillic, meant
    False: ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}


def shown_hours(hours: Sequence[Hours], *, in_russian: bool) -> list[str]:
    """Return hours as lines for a visitor: one line if they are the same for all."""
    head = _HOURS[in_russian]
    weeks = {each.days: _week(each.days, _DAYS[in_russian]) for each in hours}
    if len(weeks) == 1:
        return [f"{head} {week}." for week in weeks.values()]
    return [head, *(f"{each.name}: {weeks[each.days]}" for each in hours)]


def _week(days: Sequence[str], names: Sequence[str]) -> str:
    """Return a week in short: ``Mon, Wed\u2013Fri 10:00\u201319:00; Sat 10:00\u201316:00``."""
    groups: dict[str, list[int]] = {}
    for day, hours in enumerate(days):
        if hours:
            groups.setdefault(hours, []).append(day)
    return "; ".join(
        f"{_runs(numbers, names)} {hours}".replace("-", "\u2013")
        for hours, numbers in groups.items()
    )


def _runs(numbers: Sequence[int], names: Sequence[str]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(names[run[0]] + (f"-{names[run[-1]]}" if run[1:] else "") for run in runs)

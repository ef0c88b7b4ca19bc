"""Offers and booking hours of a business, in the message format of the embedded demo model.

For the demo model, the chat adds a system message with services and products that match the
visitor's question. It includes booking hours if the question is about them. The message is data:
one JSON object on each line, between tags that the data cannot close. Other models do not receive
this message.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from chalicelib.gateways.llm.messages import Message, count_input
from chalicelib.lib import extracts

MAX_OFFERS = 20
MAX_TOKENS = 2_000
"""Largest message of offers. Its tokens are charged as input like those of any message."""
MAX_DESCRIPTION = 300
"""Characters of a description that are sent."""
MAX_HOURS = 10
"""Resources whose hours are sent."""
MAX_SEARCH_WORDS = 3

_HEAD = "What the business offers, and when it can be booked, as data:\n<offers>\n"
_FENCED = re.compile(re.escape(_HEAD) + r"(.*)\n</offers>", re.DOTALL)


class Offer(NamedTuple):
    """An active service or product. ``price`` is in kopecks, ``duration_min`` in minutes."""

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


def is_about_hours(question: str) -> bool:
    """Return whether a question is about opening hours or appointment times."""
    return bool(extracts.stems(question) & _ABOUT_HOURS)


def search_words(question: str) -> list[str]:
    """Return the stems of the longest words, to search offers by. The longest comes first."""
    longest_first = sorted(extracts.words(question), key=len, reverse=True)
    return list(dict.fromkeys(map(extracts.stem, longest_first)))[:MAX_SEARCH_WORDS]


def to_message(
    question: str, candidates: Iterable[Offer], hours: Sequence[Hours] = ()
) -> Message | None:
    """Return the message with hours and offers for the demo model, or None if there are none.

    The candidates are those found by ``search_words`` and the first few in the owner's order. The
    most relevant ones come first. Anything beyond ``MAX_HOURS``, ``MAX_OFFERS`` or ``MAX_TOKENS``
    is left out.
    """
    offers = list(dict.fromkeys(candidates))
    texts = [f"{each.name} {each.description}" for each in offers]
    relevant = extracts.most_relevant(question, texts)
    indexes = list(dict.fromkeys([*relevant, *range(len(offers))]))[:MAX_OFFERS]
    facts = [*hours[:MAX_HOURS], *(offers[index] for index in indexes)]
    lines: list[str] = []
    largest: Message | None = None
    for fact in facts:
        lines.append(_line(fact))
        candidate = Message("system", _HEAD + "\n".join(lines) + "\n</offers>")
        if count_input([candidate]) > MAX_TOKENS:
            break
        largest = candidate
    return largest


def _line(fact: Offer | Hours) -> str:
    data = fact._asdict()
    if isinstance(fact, Offer):
        data["description"] = fact.description[:MAX_DESCRIPTION].strip()
    text = json.dumps({k: v for k, v in data.items() if v not in (None, "")}, ensure_ascii=False)
    # These escapes prevent the data from closing the tag or ending the line.
    return text.replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " ")


class ParsedMessages(NamedTuple):
    """Content of the message that ``to_message`` created, and the other messages."""

    offers: list[Offer]
    hours: list[Hours]
    rest: list[Message]


def parse(messages: Sequence[Message]) -> ParsedMessages:
    """Return the offers and hours in the messages, and the messages without them."""
    parsed = ParsedMessages([], [], [])
    for each in messages:
        match = _FENCED.fullmatch(each.content) if each.role == "system" else None
        if match is None:
            parsed.rest.append(each)
            continue
        for data in map(json.loads, match[1].split("\n")):
            if "days" in data:
                parsed.hours.append(Hours(data["name"], tuple(data["days"])))
            else:
                parsed.offers.append(Offer(**data))
    return parsed


def format_offer(offer: Offer, *, in_russian: bool) -> str:
    """Return an offer as text for a visitor: name, price, duration and description."""
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


def format_hours(hours: Sequence[Hours], *, in_russian: bool) -> list[str]:
    """Return hours as lines for a visitor, or one line if all resources have the same hours."""
    head = _HOURS[in_russian]
    weeks = {each.days: _week(each.days, _DAYS[in_russian]) for each in hours}
    if len(weeks) == 1:
        return [f"{head} {week}." for week in weeks.values()]
    return [head, *(f"{each.name}: {weeks[each.days]}" for each in hours)]


def _week(days: Sequence[str], names: Sequence[str]) -> str:
    """Return a week in short form: ``Mon, Wed\u2013Fri 10:00\u201319:00; Sat 10:00\u201316:00``."""
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

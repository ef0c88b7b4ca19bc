"""Facts about a business, in the message that asks a model a visitor's question.

They are data: one JSON object on each line, between tags that the data cannot close. A message has
this block even without any facts, so that a block in the visitor's own message is never the first
one.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from chalicelib.gateways.llm.messages import Message, count_tokens
from chalicelib.lib import currencies, extracts
from chalicelib.lib.currencies import RUB

MAX_OFFERS = 20
MAX_TOKENS = 2_000  # of a block of facts, charged as input like other tokens of a message
MAX_DESCRIPTION = 300  # characters that are sent of a matching offer's description
MAX_HOURS = 10  # resources whose hours are sent
MAX_SEARCH_WORDS = 3
LEFT_OUT = "not listed here"
"""Source of the line with the numbers of records that the facts lack."""
LEFT_OUT_TOKENS = 40

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PRICE = "price_"
_OPEN, _CLOSE = "<facts>\n", "</facts>\n\n"
_MESSAGE = re.compile(f"{_OPEN}((?:[^\n]+\n)*?){_CLOSE}(.*)", re.DOTALL)


class Offer(NamedTuple):
    """An active service or product."""

    kind: Literal["service", "product"]
    name: str
    price: int  # minor units of the currency
    duration_min: int | None = None
    description: str = ""
    in_stock: bool | None = None  # None if the owner does not count the stock
    currency: str = RUB
    # Which of ``price`` and ``minutes`` depend on the staff. The values are the lowest ones.
    lowest_of_staff: tuple[str, ...] = ()


class Hours(NamedTuple):
    """Opening hours of a resource."""

    name: str
    days: tuple[str, ...]  # Monday first: ``10:00-14:00, 15:00-20:00``, or empty
    changes: tuple[str, ...] = ()  # what differs in the next days: ``2026-11-25 closed``


class Passage(NamedTuple):
    """A part of a source that the owner gave the bot, or of a published page."""

    title: str
    text: str
    url: str | None = None


class OfferedTimes(NamedTuple):
    """Free times of a service that the bot has named in the dialog, by their ids."""

    service: str
    times: Mapping[str, str]


class Proposal(NamedTuple):
    """An action that the bot has proposed in the dialog, and its state."""

    title: str
    state: str


class Facts(NamedTuple):
    """Facts that may answer a question.

    The most important ones of each kind come first. ``totals`` are the numbers of ``services``,
    ``products`` and ``hours`` that there are.
    """

    offers: Sequence[Offer] = ()
    hours: Sequence[Hours] = ()
    passages: Sequence[Passage] = ()
    dialog: Sequence[OfferedTimes | Proposal] = ()
    totals: Mapping[str, int] = {}


Fact = Offer | Hours | Passage | OfferedTimes | Proposal


_ABOUT_HOURS = extracts.stems(
    "hours open opens opening opened close closes closed closing schedule book booking appointment"
    " today tomorrow weekend monday tuesday wednesday thursday friday saturday sunday holiday"
    " часы график расписание режим работаете открыты закрыты выходные записаться прием принимаете"
    " сегодня завтра послезавтра понедельник вторник среда среду четверг пятница пятницу суббота"
    " субботу воскресенье праздник время свободно"
)


def is_about_hours(question: str) -> bool:
    """Return whether a question is about opening hours or appointment times."""
    return bool(extracts.stems(question) & _ABOUT_HOURS)


def search_words(question: str) -> list[str]:
    """Return the stems of the longest words, to search offers by. The longest comes first."""
    longest_first = sorted(extracts.words(question), key=len, reverse=True)
    return list(dict.fromkeys(map(extracts.stem, longest_first)))[:MAX_SEARCH_WORDS]


def to_message(question: str, known_facts: Facts) -> Message:
    """Return the visitor's message with the facts before the question.

    Facts of the dialog come first, then hours, the offers that match the question, passages, and
    the other offers without their descriptions. Anything beyond ``MAX_HOURS``, ``MAX_OFFERS`` or
    ``MAX_TOKENS`` is left out. The last line has the numbers of offers and hours that are.
    """
    # The same offer can be found by several words of the question.
    offers = list(dict.fromkeys(known_facts.offers))
    texts = [f"{offer.name} {offer.description}" for offer in offers]
    matching = extracts.most_relevant(question, texts)
    others = [index for index in range(len(offers)) if index not in matching]
    matching_offers = [offers[index] for index in matching[:MAX_OFFERS]]
    brief = [offers[index]._replace(description="") for index in others]
    facts: Iterable[Fact] = chain(
        known_facts.dialog,
        known_facts.hours[:MAX_HOURS],
        matching_offers,
        known_facts.passages,
        brief[: MAX_OFFERS - len(matching_offers)],
    )
    lines: list[str] = []
    listed = Counter[str]()
    room = MAX_TOKENS - LEFT_OUT_TOKENS * bool(known_facts.totals)
    for fact in facts:
        line = _line(to_data(fact))
        room -= count_tokens(line)
        # A shorter fact further down is left out as well, because the most important ones come
        # first.
        if room < 0:
            break
        lines.append(line)
        listed[f"{fact.kind}s" if isinstance(fact, Offer) else "hours"] += isinstance(
            fact, Offer | Hours
        )
    left_out = {
        name: total - listed[name]
        for name, total in known_facts.totals.items()
        if total > listed[name]
    }
    if left_out:
        lines.append(_line({"source": LEFT_OUT, **left_out}))
    return Message("user", _OPEN + "".join(lines) + _CLOSE + question)


def to_data(fact: Fact) -> dict[str, Any]:
    """Return a fact as JSON data for a model, without what is unknown.

    Prices are in units of the currency, which their names have: ``price_rub``.
    """
    data: dict[str, Any]
    match fact:
        case Hours(name, days, changes):
            weekly = dict(zip(DAYS, days, strict=True))
            data = {"source": "opening hours", "of": name, **weekly, "changes": changes}
        case Passage(title, text, url):
            data = {"source": title, "text": text, "url": url}
        case OfferedTimes(service, times):
            data = {"source": "offered times", "service": service, "times": dict(times)}
        case Proposal(title, state):
            data = {"source": "proposal", "title": title, "state": state}
        case Offer(kind, name, price, duration_min, description, in_stock, currency, lowest):
            data = {
                "source": kind,
                "name": name,
                price_name(currency): currencies.major_units(price, currency),
                "minutes": duration_min,
                "lowest_of_staff": lowest,
                "in_stock": in_stock,
                "about": description[:MAX_DESCRIPTION].strip(),
            }
    return {name: value for name, value in data.items() if value not in (None, "", ())}


def price_name(currency: str) -> str:
    """Return the name of a price in a fact or a tool's result.

    >>> price_name("GBP")
    'price_gbp'
    """
    return f"{_PRICE}{currency.lower()}"


def price_in(data: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return the price in a fact or a tool's result, in minor units, and its currency, or None."""
    for name, value in data.items():
        if name.startswith(_PRICE):
            currency = name.removeprefix(_PRICE).upper()
            return round(value * currencies.step(currency)), currency
    return None


def _line(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False)
    # These escapes prevent the data from closing the tag or ending the line.
    return re.sub("[\u0085\u2028\u2029]", " ", text.replace("<", "\\u003c")) + "\n"


def split(message: Message) -> tuple[list[dict[str, Any]], str]:
    """Return the facts in a message of ``to_message`` as data, and the question."""
    match = _MESSAGE.fullmatch(message.content)
    if match is None:
        return [], message.content
    return [json.loads(line) for line in match[1].split("\n")[:-1]], match[2]


def passages_in(message: Message) -> list[Passage]:
    """Return the passages among the facts in a visitor's message."""
    return [
        Passage(data.get("source", ""), data["text"], data.get("url"))
        for data in split(message)[0]
        if "text" in data
    ]

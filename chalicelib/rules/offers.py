"""What a business sells, as the embedded model is told it.

The embedded model knows nothing of itself, so the chat adds a system message with the services and
products that the visitor's question may be about. It is data: one JSON object a line, in a fence
that nothing within can close. Other models are not told (their owners write system prompts).
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from chalicelib.rules import extracts
from chalicelib.rules.chat import Message, count_input

MAX_OFFERS = 20
MAX_TOKENS = 2_000
"""What a message of offers takes at most, counted as input like any other."""
MAX_DESCRIPTION = 300
"""Characters of a description that are told."""
MOST_WORDS = 3

_HEAD = "The services and products of the business that may be asked about, as data:\n<offers>\n"
_FENCED = re.compile(re.escape(_HEAD) + r"(.*)\n</offers>", re.DOTALL)


class Offer(NamedTuple):
    """An active service or product; ``price`` is in kopecks, services take ``duration_min``."""

    kind: Literal["service", "product"]
    name: str
    price: int
    duration_min: int | None = None
    description: str = ""


def search_words(question: str) -> list[str]:
    """Return the beginnings of the words to look for offers by, the most telling first."""
    found = sorted(extracts.words(question), key=len, reverse=True)
    return list(dict.fromkeys(map(extracts.stem, found)))[:MOST_WORDS]


def message(question: str, candidates: Iterable[Offer]) -> Message | None:
    """Return the message that tells the embedded model of offers, or None without any.

    Of the candidates (those found by ``search_words`` and a few of the first, in the owner's
    order), the nearest to the question come first; what passes ``MAX_OFFERS`` or ``MAX_TOKENS`` is
    left out.
    """
    offers = list(dict.fromkeys(candidates))
    near = extracts.nearest(question, [f"{each.name} {each.description}" for each in offers])
    order = dict.fromkeys([*near, *range(len(offers))])
    lines: list[str] = []
    told: Message | None = None
    for number in list(order)[:MAX_OFFERS]:
        lines.append(_line(offers[number]))
        more = Message("system", _HEAD + "\n".join(lines) + "\n</offers>")
        if count_input([more]) > MAX_TOKENS:
            break
        told = more
    return told


def _line(offer: Offer) -> str:
    data = offer._asdict() | {"description": offer.description[:MAX_DESCRIPTION].strip()}
    text = json.dumps({k: v for k, v in data.items() if v not in {None, ""}}, ensure_ascii=False)
    # Escaped, nothing in the data can end the fence or the line.
    return text.replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " ")


def offers_in(messages: Sequence[Message]) -> tuple[list[Offer], list[Message]]:
    """Return the offers that ``message`` told of, and the messages without it."""
    offers: list[Offer] = []
    rest: list[Message] = []
    for each in messages:
        match = _FENCED.fullmatch(each.content) if each.role == "system" else None
        if match is None:
            rest.append(each)
        else:
            offers += [Offer(**json.loads(line)) for line in match[1].split("\n")]
    return offers, rest


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

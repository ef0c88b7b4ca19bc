"""Names of services and products in what a visitor writes, with quantities."""

# ruff: noqa: RUF001  Cyrillic letters are intended

import re
from collections.abc import Sequence
from typing import NamedTuple

from chalicelib.core.text import fold
from chalicelib.lib import extracts

MAX_QUANTITY = 1_000
MAX_ITEMS = 20
RUSSIAN_STEM = 4
"""Letters of a Russian word that its inflected forms share: "ржаной", "ржаных"."""

_CYRILLIC = re.compile("[а-я]")

_NUMBERS = {
    **dict.fromkeys(("one", "один", "одну", "одно", "одного"), 1),
    **dict.fromkeys(("two", "couple", "pair", "два", "две", "двух", "пару", "пара"), 2),
    **dict.fromkeys(("three", "три", "трех"), 3),
    **dict.fromkeys(("four", "четыре", "четырех"), 4),
    **dict.fromkeys(("five", "пять"), 5),
    **dict.fromkeys(("six", "шесть"), 6),
    **dict.fromkeys(("seven", "семь"), 7),
    **dict.fromkeys(("eight", "восемь"), 8),
    **dict.fromkeys(("nine", "девять"), 9),
    **dict.fromkeys(("ten", "десять"), 10),
    **dict.fromkeys(("dozen", "twelve", "дюжину", "дюжина", "двенадцать"), 12),
}
_QUANTITY = re.compile(
    rf"(?<![\w.,:-])(?:[xх]\s?)?(\d{{1,9}}|{'|'.join(_NUMBERS)})(?:\s?[xх])?(?![\w:%]|[.,-]\d)"
)
_UNIT = re.compile(
    r"\s*(?:г|гр|грамм\w*|кг|мл|л|см|мин\w*|час\w*|руб\w*|g|grams?|kg|ml|l|cm|min\w*|hours?|rub\w*)\b"
    r"|\s*[₽$€]"
)
"""Units after a number that is no quantity of pieces."""
_SEPARATOR = re.compile(r"[,;.!?]\s|[;\n]|\s(?:and|plus|и|плюс)\s|\+")


class Item(NamedTuple):
    """A product of an order, and the number of pieces."""

    product: str
    quantity: int

    @property
    def is_possible(self) -> bool:
        """Whether an order can have as many pieces."""
        return 1 <= self.quantity <= MAX_QUANTITY


class Items(NamedTuple):
    """The products in a text. ``unclear`` are names between which the text does not decide."""

    items: Sequence[Item]
    unclear: Sequence[str] = ()


def best(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that share the most telling words with a text: none, one, or several equal.

    A word counts for more if fewer names have it. Words match if one begins with the other's stem.
    Among names that match equally, those win whose words are all in the text.
    """
    stems = _stems(text)
    of_names = [_stems(name) for name in names]
    shared = [{each for each in of_name if _has(stems, each)} for of_name in of_names]
    counts = [
        sum(1 / sum(_has(others, each) for others in of_names) for each in sorted(found))
        for found in shared
    ]
    most = max(counts, default=0)
    if not most:
        return []
    indexes = [index for index, count in enumerate(counts) if count == most]
    whole = [index for index in indexes if len(shared[index]) == len(of_names[index])]
    return list(dict.fromkeys(names[index] for index in whole or indexes))


def _stems(text: str) -> set[str]:
    """Return the stems of a text. Russian ones are shorter, because endings are longer."""
    return {each[:RUSSIAN_STEM] if _CYRILLIC.match(each) else each for each in extracts.stems(text)}


def _has(stems: set[str], stem: str) -> bool:
    return any(each.startswith(stem) or stem.startswith(each) for each in stems)


def items(text: str, names: Sequence[str]) -> Items:
    """Return the products that a text names, with their quantities. One piece is the default."""
    found: dict[str, int] = {}
    for part in _SEPARATOR.split(text):
        matching = best(part, names)
        if len(matching) > 1:
            return Items((), matching)
        for name in matching:
            found[name] = max(found.get(name, 0), quantity(part, name) or 1)
    return Items([Item(*each) for each in found.items()][:MAX_ITEMS])


def quantity(text: str, name: str = "") -> int | None:
    """Return the number of pieces in a text. A number in the product's name is none."""
    folded = fold(text)
    for match in _QUANTITY.finditer(folded):
        number = match[1]
        if not _UNIT.match(folded, match.end()) and not re.search(rf"\b{number}\b", fold(name)):
            return _NUMBERS.get(number) or int(number)
    return None

"""The purpose of a visitor's message, by its words in English or Russian."""

# ruff: noqa: RUF001  Cyrillic letters are intended

import re
from collections.abc import Sequence
from typing import Literal

from chalicelib.core.text import fold
from chalicelib.gateways.llm.reception import matching
from chalicelib.gateways.llm.reception.dates import When

Intent = Literal["person", "change", "price", "hours", "book", "times", "order"]
"""The purpose of a message:

- ``person``: talk to a person
- ``change``: change or cancel a booking or an order
- ``price``, ``hours``: a question about these
- ``book``: book a service
- ``times``: a question about free times
- ``order``: order products
"""

_PERSON = re.compile(
    r"\b(?:(?:talk|speak|chat|connect me|transfer me|put me through|get me|pass me)"
    r"\s+(?:\w+\s+){0,3}(?:person|human|operator|manager|someone|somebody|staff|employee|administrator)"
    r"|(?:need|want|is there)\s+(?:an?\s+|the\s+|some\s+|your\s+)?(?:real\s+|live\s+)?"
    r"(?:person|human|operator|manager)"
    r"|(?:real|live) (?:person|human)|human being|call me back|callback|operator)\b"
    r"|\b(?:оператор\w*|жив\w+ человек\w*|(?:с|со) (?:\w+ )?(?:человеком|сотрудник\w+|кем-?нибудь)"
    r"|(?:позов|соедин|свяж|переключ|позвать|соединить|связать|переключить)\w*"
    r"|перезвон\w*"
    r"|(?:можно|дайте|нужен|нужна|хочу|с|со|к) (?:\w+ )?(?:человек|менеджер|администратор)\w*)"
)
_CHANGE = re.compile(
    r"\b(?:cancel\w*|reschedul\w*|my (?:order|booking|appointment)"
    r"|отмен\w+|перенес\w+|перенос\w*|мо(?:й|его|ем|им|я|ю|ей) (?:заказ|запис|брон)\w*)"
)
_PRICE = re.compile(
    r"\b(?:how much|prices?|costs?|fee|сколько (?:это |он\w? )?сто\w+|цен[аыуе]\w*|почем"
    r"|стоимост\w*|прайс\w*)\b"
)
_HOURS = re.compile(
    r"\b(?:open|opens|opened|opening|closes?|closed|closing|hours|откры\w+|закры\w+|работае\w+|график\w*"
    r"|режим\w*|расписани\w*|часы|до скольки|во сколько)\b"
)
_NOT_TIMES = re.compile(
    r"\b(?:how long|how many|what time is it|free of charge|for free|deliver\w*|сколько|достав\w*"
    r"|занимает|длит\w+)\b"
)
_TIMES = re.compile(
    r"\b(?:availab(?:le|ility)|slots?|(?:any|have|is there|got|free) (?:\w+ )?times?|free times?"
    r"|when (?:can|could|may) (?:i|we)|when is there|times? (?:on|for|today|tomorrow|this|next)"
    r"|свободн\w+ (?:врем|мест|окн|окош|слот|час|дн|дат)\w*|окошк\w+|окошеч\w+|слот\w*|свободно"
    r"|(?:есть|будет|найдется) (?:ли )?(?:\w+ )?врем\w+"
    r"|когда (?:можно|есть|могу|свободн\w+|к вам)|ближайш\w+ (?:врем|запис|дат|окн|окош)\w*)\b"
)
_TIMES_OF_A_DAY = re.compile(
    r"\b(?:free|times?|openings?|come|visit|fit me in|fit us in|врем\w+|свободн\w+|мест[ао]?|прийти"
    r"|подойти|попасть|успе\w+)\b"
)
_BOOK = re.compile(
    r"\b(?:(?<!a )(?<!the )(?<!this )(?<!your )book(?:ing)?|appointment|reserv\w+|sign me up"
    r"|schedule (?:me|a|an)|запиш\w*|записат\w*|записыва\w*|запись|заброниров\w+|брон\w+)\b"
)
_HOW = re.compile(
    r"\b(?:do i (?:need|have) to|how (?:do|can|to)|is it necessary|как"
    r"|(?:нужн\w|надо|обязательно) ли)\b"
)
_ORDER = re.compile(
    r"\b(?:order|buy|purchase|i ?['’]?(?:will|ll) (?:take|have)|закаж\w+|заказат\w*|заказыва\w*"
    r"|(?<!на )заказ|куп(?:ить|лю|им|ите)|возьм\w+|беру|оформ\w+)\b"
)
_WANT = re.compile(
    r"\b(?:want|need|would like|['’]d like|give me|can i (?:get|have)|send me|please|хоч\w+"
    r"|хотел\w*|нужн?\w{0,2}|надо|дайте|можно|пожалуйста|отлож\w+|привез\w+|добав\w+|add)\b"
)
_QUESTION = re.compile(
    r"\b(?:do you|are you|is it|are there|is there|what|which|why|есть ли|какие|какой|какая|что"
    r"|почему|как)\b"
)
_YES = re.compile(
    r"\W*(?:yes|yeah|yep|ok|okay|sure|fine|great|please do|book it|confirm|that works|this one"
    r"|да|ага|хорошо|ок|подходит|давайте|конечно|подтверждаю|записывайте|отлично)\b"
)
_ORDINALS = tuple(
    re.compile(rf"\b(?:{words})\b")
    for words in (
        r"first|1st|перв\w+",
        r"second|2nd|втор(?!ник)\w+",
        r"third|3rd|трет\w+",
    )
)
_LAST = re.compile(r"\b(?:last one|the last|последн\w+)\b")
_NUMBER = re.compile(
    r"(?:^\W*|\b(?:number|no|option|номер|вариант)\W{0,3}|№\s?)([123])(?=\W*(?:$|[,.!;]\s))"
)


def of_text(
    text: str, when: When, services: Sequence[str], products: Sequence[str]
) -> Intent | None:
    """Return the purpose of a message without name and contacts, if it states one.

    ``when`` is in the message. ``services`` and ``products`` are names that it may contain.
    """
    folded = fold(text)
    for intent, pattern in _FIRST:
        if pattern.search(folded):
            return intent
    if _TIMES.search(folded) and not _NOT_TIMES.search(folded):
        return "times"
    if _BOOK.search(folded) and not (_HOW.search(folded) and when == When()):
        return "book"
    if _HOURS.search(folded) or _NOT_TIMES.search(folded):
        return "hours" if _HOURS.search(folded) else None
    return _by_names(folded, when, services, products)


_FIRST: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("person", _PERSON),
    ("change", _CHANGE),
    ("price", _PRICE),
)


def _by_names(
    folded: str, when: When, services: Sequence[str], products: Sequence[str]
) -> Intent | None:
    """Return the purpose of a message that names what the visitor wants, and not what for."""
    named = matching.best(folded, [*services, *products])
    is_service, is_product = (
        any(name in known for name in named) for known in (services, products)
    )
    if _ORDER.search(folded) and not _QUESTION.search(folded):
        return "order" if is_product or not is_service else "book"
    if when.days and _TIMES_OF_A_DAY.search(folded):
        return "times"
    wants = bool(_WANT.search(folded))
    if is_service and (when.days or when.has_time):
        return "book" if wants else "times"
    if is_product and not _QUESTION.search(folded) and (wants or matching.quantity(folded)):
        return "order"
    return None


def is_yes(text: str) -> bool:
    """Return whether a message agrees."""
    return bool(_YES.match(fold(text)))


def choice(text: str, count: int) -> int | None:
    """Return the index of the one of ``count`` listed times that a message chooses."""
    folded = fold(text)
    if count == 1 and is_yes(text):
        return 0
    if _LAST.search(folded) and count:
        return count - 1
    for index, pattern in enumerate(_ORDINALS[:count]):
        if pattern.search(folded):
            return index
    number = _NUMBER.search(folded)
    return int(number[1]) - 1 if number and int(number[1]) <= count else None

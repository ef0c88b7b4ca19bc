"""A visitor's name, phone number and e-mail address in what the visitor writes."""

# ruff: noqa: RUF001  Cyrillic letters are intended

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from chalicelib.core.text import fold

MAX_NAME_WORDS = 3
MAX_NAME = 60
"""Characters of a name."""
PHONE_DIGITS = range(10, 16)

_EMAIL = re.compile(r"[^\s@<>()\[\],;:\"']{1,64}@[^\s@<>()\[\],;:\"']{3,200}")
_PHONE = re.compile(
    r"(?<![\w+])\+?\d{10,15}(?!\w)"
    r"|(?<![\w+])(?<!\d\.)(?!\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d\d)[+(]?\d[\d\s().\u2013-]{8,24}\d(?!\w)"
)
_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_WORDS = rf"({_WORD}(?:[ ]{_WORD}){{0,2}})"
_NAMED = re.compile(
    rf"\b(?:my name(?: is|['’]s)|name:|меня зовут|зовут|мо[её] имя|имя:)[\s:–—-]*{_WORDS}",
    re.IGNORECASE,
)
_I_AM = re.compile(rf"\b(?:i am|i['’]m|this is|я|это)[\s,–—-]+{_WORDS}", re.IGNORECASE)
_NO_NAMES = frozenset(
    fold(
        """i you we me my it the a an yes no ok okay thanks please hello hi hey good book order buy
        phone tel mobile email mail number first second third last monday tuesday wednesday thursday
        friday saturday sunday today tomorrow call at on and
        я ты мы вы мне мой моя да нет ок спасибо пожалуйста здравствуйте привет добрый доброе
        запишите запиши запись заказ телефон тел почта номер первый первое второй второе третий
        третье понедельник вторник среда среду четверг пятница пятницу суббота субботу воскресенье
        сегодня завтра это и на в"""
    ).split()
)
"""Folded words that are no names although they begin with a capital letter."""


class Person(NamedTuple):
    """The visitor, as far as known."""

    name: str | None = None
    phone: str | None = None
    email: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the name and a contact are known."""
        return bool(self.name and (self.phone or self.email))


def read(text: str) -> tuple[Person, str]:
    """Return the visitor as named in a text, and the text without name and contacts."""
    email = _EMAIL.search(text)
    rest = _EMAIL.sub(_blank, text)
    phone = next(filter(_is_phone, _PHONE.finditer(rest)), None)
    if phone:
        rest = rest[: phone.start()] + _blank(phone) + rest[phone.end() :]
    name, rest = _name(rest, [each.start() for each in (email, phone) if each])
    return Person(name, phone and phone[0], email and email[0].strip(".!?*_`")), rest


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _is_phone(match: re.Match[str]) -> bool:
    return sum(each.isdecimal() for each in match[0]) in PHONE_DIGITS


def _name(text: str, contacts: Sequence[int]) -> tuple[str | None, str]:
    """Return the name in a text, and the text without it. ``contacts`` are their positions."""
    for pattern, needs_capital in ((_NAMED, False), (_I_AM, True)):
        for match in pattern.finditer(text):
            words = match[1].split(" ")
            if needs_capital or words[0][0].isupper():
                words = list(takewhile(_is_capitalized, words))
            else:
                words = words[:1]
            name = " ".join(words)
            if words and len(name) <= MAX_NAME and fold(words[0]) not in _NO_NAMES:
                return name, text[: match.start()] + " " + text[match.start(1) + len(name) :]
    for position in sorted(contacts)[:1]:
        before = text[:position].rstrip(" ,;:–—-")
        start = max(map(before.rfind, ".!?,;:\n")) + 1
        words = before[start:].split()
        name = " ".join(words)
        if (
            0 < len(words) <= MAX_NAME_WORDS
            and len(name) <= MAX_NAME
            and all(re.fullmatch(_WORD, each) and _is_capitalized(each) for each in words)
        ):
            return name, text[:start] + " " + text[len(before) :]
    return None, text


def _is_capitalized(word: str) -> bool:
    return word[0].isupper() and fold(word) not in _NO_NAMES

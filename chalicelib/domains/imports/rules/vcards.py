"""Read vCards of the versions 2.1, 3.0 and 4.0 as a table with a row for each card.

A card is read by RFC 6350, RFC 2426 and the specification of vCard 2.1, and as phones write it:
folded lines, quoted-printable, parameters without names, and groups such as ``item1.TEL``.
"""

import quopri
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from chalicelib.domains.imports.rules.tables.table_errors import TableError
from chalicelib.domains.imports.rules.tables.text_tables import TextTable

MAX_CARDS = 50_000
_BEGIN = re.compile(rb"\s*BEGIN:VCARD\s", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")
_UNESCAPED_SEMICOLON = re.compile(r"(?<!\\);")
_GROUPS = {"group", "org"}
# Columns of the table, by the property that fills them.
_COLUMNS = {
    "FN": "name",
    "TEL": "phone",
    "EMAIL": "email",
    "NOTE": "notes",
    "CATEGORIES": "tags",
    "ORG": "company",
    "BDAY": "birthday",
    "UID": "uid",
}
# What is about the card and not about the person.
_OF_CARDS = {"VERSION", "REV", "PRODID", "N", "KIND", "X-ADDRESSBOOKSERVER-KIND", "SOURCE"}
SEPARATOR = "\n"
"""Stands between the values of a property that a card has several times."""


class _Property(NamedTuple):
    name: str
    parameters: Mapping[str, str]
    value: str

    @property
    def preference(self) -> int:
        # 1 is the most preferred, and a mobile phone comes before others.
        kinds = self.parameters.get("TYPE", "").lower()
        if "pref" in kinds:
            return 0
        stated = self.parameters.get("PREF", "")
        if stated.isdecimal():
            return int(stated)
        return 200 if "cell" in kinds or "mobile" in kinds else 300


def is_vcard(raw: bytes) -> bool:
    """Whether a file has vCards."""
    return _BEGIN.match(raw.removeprefix(b"\xef\xbb\xbf")[:100]) is not None


def vcard_table(raw: bytes) -> TextTable:
    """Return the cards of a file as a table. The number of a row is that of its card.

    Raises:
        TableError: the file has too many cards.
    """
    cards: list[dict[str, str]] = []
    for card in _cards(_decoded(raw)):
        if len(cards) == MAX_CARDS:
            most = f"{MAX_CARDS:,}"
            raise TableError.of(
                "too_many_cards", f"The file has more than {most} cards. Divide it.", most=most
            )
        cards.append(_values(card))
    names = ["name", *dict.fromkeys(name for card in cards for name in card if name != "name")]
    lines = [
        (number, [card.get(name, "") for name in names]) for number, card in enumerate(cards, 1)
    ]
    return TextTable(names, lines, ",")


def _decoded(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1251", errors="replace")


def _cards(text: str) -> Iterator[list[_Property]]:
    card: list[_Property] | None = None
    for line in _unfolded(text):
        found = _property(line)
        if found is None:
            continue
        mark = found.value.strip().upper()
        if found.name == "BEGIN" and mark == "VCARD":
            card = []
        elif found.name == "END" and mark == "VCARD":
            if card:
                yield card
            card = None
        elif card is not None:
            card.append(found)
    if card:  # A file that was cut off.
        yield card


def _unfolded(text: str) -> Iterator[str]:
    pieces: list[str] = []
    is_quoted = False
    for line in _LINE_END.split(text):
        if is_quoted and pieces and pieces[-1].endswith("="):
            # A line of quoted-printable goes on after a sign at its end.
            pieces[-1] = pieces[-1][:-1]
            pieces.append(line.removeprefix(" ") if line.startswith(" =") else line)
            continue
        if line[:1] in {" ", "\t"} and pieces:
            pieces.append(line[1:])
            continue
        if pieces:
            yield "".join(pieces)
        pieces = [line]
        is_quoted = "QUOTED-PRINTABLE" in line.partition(":")[0].upper()
    yield "".join(pieces)


def _property(line: str) -> _Property | None:
    head, colon, value = _divided(line)
    if not colon:
        return None
    name, *parameters = head.split(";")
    values: dict[str, str] = {}
    for parameter in parameters:
        key, equals, text = parameter.partition("=")
        # Version 2.1 has values without names, such as ``TEL;CELL;PREF``.
        key, text = (key.upper(), text) if equals else _nameless(key)
        values[key] = f"{values[key]},{text}" if key in values else text
    bare = name.rpartition(".")[2].strip().upper()
    encoding = values.get("ENCODING", "").upper()
    if encoding == "QUOTED-PRINTABLE":
        value = _unquoted(value, values.get("CHARSET", "utf-8").strip('"'))
    elif encoding in {"B", "BASE64"}:
        value = "…"  # a picture or a sound
    return _Property(bare, values, value)


def _divided(line: str) -> tuple[str, str, str]:
    # A colon in quotes belongs to a parameter.
    is_quoted = False
    for place, letter in enumerate(line):
        if letter == '"':
            is_quoted = not is_quoted
        elif letter == ":" and not is_quoted:
            return line[:place], letter, line[place + 1 :]
    return line, "", ""


def _nameless(text: str) -> tuple[str, str]:
    word = text.strip().upper()
    is_encoding = word in {"QUOTED-PRINTABLE", "BASE64", "8BIT", "7BIT"}
    return ("ENCODING" if is_encoding else "TYPE"), word


def _unquoted(value: str, charset: str) -> str:
    raw = quopri.decodestring(value.encode("ascii", errors="ignore"))
    try:
        return raw.decode(charset)
    except (LookupError, UnicodeDecodeError):
        return raw.decode("cp1251", errors="replace")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], text).strip()


def _values(card: list[_Property]) -> dict[str, str]:
    """Return the texts of a card by column."""
    texts: dict[str, list[str]] = {}
    for each in sorted(card, key=lambda each: each.preference):
        if each.name in _OF_CARDS or not each.value.strip():
            continue
        column = _COLUMNS.get(each.name, each.name.lower())
        texts.setdefault(column, []).extend(_parts(each))
    values = {name: SEPARATOR.join(dict.fromkeys(parts)) for name, parts in texts.items()}
    company = values.get("company", "")
    name = values.get("name", "").partition(SEPARATOR)[0] or _name_of(card) or company
    kinds = {each.value.strip().lower() for each in card if each.name.endswith("KIND")}
    if kinds & _GROUPS:
        values["kind"] = next(iter(kinds & _GROUPS))
    return {**values, "name": name}


def _parts(each: _Property) -> list[str]:
    match each.name:
        case "CATEGORIES":
            return [_unescaped(part) for part in _UNESCAPED_COMMA.split(each.value)]
        case "ORG" | "ADR":
            parts = map(_unescaped, _UNESCAPED_SEMICOLON.split(each.value))
            return [", ".join(filter(None, parts))]
        case "TEL":
            number = re.sub("^tel:", "", _unescaped(each.value), flags=re.IGNORECASE)
            return [number]
        case "EMAIL":
            return [re.sub("^mailto:", "", _unescaped(each.value), flags=re.IGNORECASE)]
        case "BDAY":
            # Apple writes a year that stands for none into cards of version 3.0, mostly 1604.
            absent = each.parameters.get("X-APPLE-OMIT-YEAR", "1604")
            return [re.sub(f"^{re.escape(absent)}-?", "--", _unescaped(each.value))]
        case _:
            return [_unescaped(each.value)]


def _name_of(card: list[_Property]) -> str:
    for each in card:
        if each.name == "N":
            parts = [*map(_unescaped, _UNESCAPED_SEMICOLON.split(each.value)), "", "", "", ""]
            family, given, middle = parts[:3]
            return " ".join(filter(None, (given, middle, family)))
    return ""

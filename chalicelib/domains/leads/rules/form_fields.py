"""Fields of a capture form.

Submitted values are validated and cleaned by field type.
"""

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from datetime import date
from itertools import chain, count
from typing import Any, NamedTuple

from chalicelib.core.errors import FieldError, ValidationError
from chalicelib.core.text import (
    BIDI_CONTROL,
    CONTROL,
    clean_typed,
    cut_bytes,
    is_visible,
    lazy_pattern,
)
from chalicelib.domains.leads.rules.form_texts import form_text
from chalicelib.lib import emails, phones, slugs

CART = "items"
"""Name of the lines of an order among the values. No field can have this name."""
MAX_TEXT = 1_000
MAX_TEXTAREA = 10_000
MAX_EMAIL = 254
"""Maximum length, in characters, of an e-mail address (RFC 5321, section 4.5.3.1.3).

The RFC's limit includes two angle brackets.
"""
MAX_PHONE = 80
MAX_NUMBER = 10**15
"""Maximum absolute value. A float in JavaScript represents every integer up to this one exactly."""
_MAX_MADE_NAME = 36
"""A name has at most 40 characters, and may need an ending."""
_CYRILLIC = lazy_pattern("[\u0400-\u04ff]")
_CONTROL_BUT_LINES = lazy_pattern(f"(?![\n\t]){CONTROL.pattern}")
_UNTICKED = frozenset({"off", "false", "0", "no", "нет"})
_NUMBER = lazy_pattern(r"[+-]?[0-9]{1,16}(\.[0-9]{1,16})?")
_THOUSANDS = lazy_pattern(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_DATES = (
    lazy_pattern(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})", re.ASCII),
    lazy_pattern(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})", re.ASCII),
)
_PHONE = lazy_pattern(r"[\w\s+().,;:/#*=–—-]+")  # noqa: RUF001  dashes on purpose
_MARKUP = lazy_pattern("[<>]")
_LEAST_DIGITS, _MOST_DIGITS = 5, 40
_MISSING = {"checkbox": "unticked", "consent": "unticked", "select": "unchosen"}
"""Keys of the messages for an empty required field, by type. Other types use ``required``."""
_MAX_OPTIONS_BYTES = 300
_MAX_LABELS = 5


class FieldSpec(NamedTuple):
    """A declared field, with the choices of a select in ``options``."""

    name: str
    label: str
    type: str
    required: bool = False
    options: tuple[str, ...] = ()


def name_for(label: str, taken_names: Container[str]) -> str:
    """Return a name for a new field, made from its label in Latin letters, that no other has."""
    words = slugs.slugify(label, fallback="field").replace("-", "_")
    base = (words if words[0].isalpha() else f"field_{words}")[:_MAX_MADE_NAME].rstrip("_")
    endings = chain([""], (f"_{number}" for number in count(2)))
    names = (f"{base}{ending}" for ending in endings)
    return next(name for name in names if name not in taken_names and name != CART)


def language(title: str, labels: Sequence[str]) -> str:
    """Return ``ru`` if any label of a form has a Cyrillic letter, else ``en``."""
    return "ru" if any(_CYRILLIC.search(text) for text in (title, *labels)) else "en"


def validate(
    fields: Sequence[FieldSpec], values: Mapping[str, object], language: str
) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the cleaned values of the declared fields, and the errors.

    Values are strings from an HTML form, or JSON values. Empty values and boxes that are not ticked
    are omitted. Error messages are for the visitor, in the form's language.
    """
    data: dict[str, Any] = {}
    errors: list[FieldError] = []
    for field in fields:
        try:
            value = _clean(field, values.get(field.name), language)
        except _InvalidValueError as error:
            message = form_text(language, error.key, **error.values)
            errors.append(FieldError(field.name, message))
            continue
        if value is not None:
            data[field.name] = value
        elif field.required:
            key = _MISSING.get(field.type, "required")
            message = form_text(language, key, options=_format_options(field.options))
            errors.append(FieldError(field.name, message))
    return data, errors


def rejection(
    fields: Sequence[FieldSpec], errors: Sequence[FieldError], language: str
) -> ValidationError:
    """Return the error that lists the invalid fields by their labels.

    An error elsewhere, such as in the cart, appears with its full message, because no form field
    can show it.
    """
    labels = {field.name: field.label for field in fields}
    looks = [
        labels.get(e.field) or f"{e.field}: {e.message}".rstrip(".") for e in errors[:_MAX_LABELS]
    ]
    return ValidationError(form_text(language, "check", labels=", ".join(looks)), errors=errors)


def contact(
    fields: Sequence[FieldSpec], data: Mapping[str, Any]
) -> tuple[str | None, str | None, str | None]:
    """Return the name, e-mail address and phone number in cleaned values, as entered.

    The e-mail address and phone number come from the first non-empty field of their type. The name
    comes from the field ``name``, or else from the first field of type text.
    """

    def first(kind: str) -> str | None:
        return next((data[f.name] for f in fields if f.type == kind and data.get(f.name)), None)

    name = data.get("name")
    return (
        (name if isinstance(name, str) else None) or first("text"),
        first("email"),
        first("phone"),
    )


class _InvalidValueError(Exception):
    """A value does not fit its field.

    ``key`` is the key of the error message.
    """

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def _clean(field: FieldSpec, value: object, language: str) -> Any:  # noqa: ANN401  JSON
    """Return the cleaned value of a field, or None if it is empty."""
    if field.type in {"checkbox", "consent"}:
        return _parse_checkbox(value)
    if field.type == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded(value)
    entered = _entered_text(value, field.type)
    if not is_visible(entered):
        return None
    if field.type == "number":
        return _number(entered, language=language)
    if field.type == "select" and entered not in field.options:
        raise _InvalidValueError("unchosen", options=_format_options(field.options))
    parse = _PARSERS.get(field.type)
    return parse(entered) if parse else entered


def _entered_text(value: object, kind: str) -> str:
    """Return the entered value, trimmed.

    A JSON number is converted to text.
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _InvalidValueError(kind if kind in {"email", "phone", "number", "date"} else "text")
    if isinstance(value, int) and abs(value) >= 10**30:
        raise _InvalidValueError("too_long", limit=30, length="31+")
    entered = str(value)
    if kind == "textarea":
        lines = entered.replace("\r\n", "\n").replace("\r", "\n")
        entered, limit = _CONTROL_BUT_LINES.sub("", lines).strip(), MAX_TEXTAREA
    else:
        line = " ".join(entered.split())
        if kind in {"email", "phone"}:
            line = clean_typed(line)
        entered, limit = BIDI_CONTROL.sub("", CONTROL.sub("", line)).strip(), MAX_TEXT
    if len(entered) > limit:
        raise _InvalidValueError("too_long", limit=limit, length=len(entered))
    return entered


def _parse_checkbox(value: object) -> bool | None:
    """Return True for a ticked box.

    As in HTML, any value that does not mean "no" counts as ticked.
    """
    if isinstance(value, str):
        word = value.strip().casefold()
        return None if not word or word in _UNTICKED else True
    if value is None or value == 0:
        return None
    if value == 1:
        return True
    raise _InvalidValueError("tick")


def _email(entered: str) -> str:
    address = emails.find_email(entered)
    if address is None:
        raise _InvalidValueError("email")
    return address


def _phone(entered: str) -> str:
    """Return a phone number as it was entered.

    The check is lenient, so that no lead is lost. Words may surround the digits of a whole number.
    """
    digits = sum(character.isdecimal() for character in entered)
    letters = sum(character.isalpha() for character in entered)
    is_plain = _PHONE.fullmatch(entered) and digits >= max(_LEAST_DIGITS, letters)
    if (
        len(entered) > MAX_PHONE
        or digits > _MOST_DIGITS
        or _MARKUP.search(entered)
        or not (is_plain or phones.may_contain_phone(entered))
    ):
        raise _InvalidValueError("phone")
    return entered


def _number(entered: str, *, language: str) -> int | float:
    """Return a number entered with a decimal point or comma, with or without thousands separators.

    A comma before three digits separates thousands in English, and decimals in Russian.
    """
    compact = "".join(entered.split()).replace("\u2212", "-")
    if _THOUSANDS.fullmatch(compact) and (language == "en" or compact.count(",") > 1):
        compact = compact.replace(",", "")
    compact = compact.replace(",", ".")
    if not _NUMBER.fullmatch(compact):
        raise _InvalidValueError("number")
    return _bounded(float(compact))


def _bounded(number: float) -> int | float:
    if not abs(number) <= MAX_NUMBER:
        raise _InvalidValueError("number")
    return int(number) if number == int(number) else number


def _date(entered: str) -> str:
    for pattern in _DATES:
        if match := pattern.fullmatch(entered):
            with suppress(ValueError):
                return date(
                    **{name: int(part) for name, part in match.groupdict().items()}
                ).isoformat()
    raise _InvalidValueError("date")


_PARSERS = {"email": _email, "phone": _phone, "date": _date}


def _format_options(options: Sequence[str]) -> str:
    """Return the options as one line that is short enough to show next to a field."""
    line = ", ".join(options)
    short_line = cut_bytes(line, _MAX_OPTIONS_BYTES)
    return short_line if short_line == line else f"{short_line}…"

"""Fields of a capture form. Submitted values are validated and cleaned by field type."""

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from itertools import chain, count
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from pydantic_core import to_json

from chalicelib.core.errors import FieldError, ValidationError
from chalicelib.core.text import BIDI_CONTROL, CONTROL, clean_typed, cut_bytes, is_visible
from chalicelib.domains.leads.rules import field_roles
from chalicelib.domains.leads.rules.form_texts import form_text
from chalicelib.lib import emails, phones, slugs

CART = "items"  # Name of the lines of an order among the values. No field can have this name.
_CONTACTS = frozenset({"email", "phone"})
MAX_TEXT = 1_000
MAX_TEXTAREA = 10_000
# Maximum length, in characters, of an e-mail address (RFC 5321, section 4.5.3.1.3). The RFC's limit
# includes two angle brackets.
MAX_EMAIL = 254
MAX_PHONE = 80
# Maximum absolute value. A float in JavaScript represents every integer up to this one exactly.
MAX_NUMBER = 10**15
_MAX_MADE_NAME = 36  # A name has at most 40 characters, and may need an ending.
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_CONTROL_BUT_LINES = re.compile(f"(?![\n\t]){CONTROL.pattern}")
_UNTICKED = frozenset(
    {
        *(
            "off",
            "false",
            "0",
            "no",
            "n",
            "none",
            "null",
            "undefined",
            "disagree",
            "unchecked",
            "-",
        ),
        *("нет", "н", "не согласен", "не согласна", "не согласны"),
    }
)
# Words by which programs say that a visitor has consented. Any other word is no consent.
_YES = frozenset(
    {
        *("on", "true", "1", "yes", "y", "ok", "checked"),
        *("agree", "agreed", "accept", "accepted", "i agree", "i accept"),
        *("да", "согласен", "согласна", "согласны", "я согласен", "я согласна"),
        *("принимаю", "подтверждаю"),
    }
)
# A mask of a control that nothing was typed into, such as ``+7 (___) ___-__-__``.
_MASK = re.compile(
    r"(?=[^_+(#*•]*[_+(#*•])[+]?[0-9]{0,4}[\s().:/_x#*•–—-]*",  # noqa: RUF001  dashes on purpose
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,16}(\.[0-9]{1,16})?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_DATES = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})", re.ASCII),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})", re.ASCII),
)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}.*", re.ASCII)
_MARKUP = re.compile("[<>]")
_MOST_DIGITS = 40
_MAX_OTHERS = 100
_MAX_OTHER_NAME = 100
_UNNAMED = "unnamed"  # Name under which a value without a name is kept.
# Keys of the messages for an empty required field, by type. Other types use ``required``.
_MISSING = {"checkbox": "unticked", "consent": "unticked", "select": "unchosen"}
_MAX_OPTIONS_BYTES = 300
_MAX_LABELS = 5


class FieldSpec(NamedTuple):
    name: str
    label: str
    type: str
    required: bool = False
    options: tuple[str, ...] = ()  # choices of a select


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


class Place(NamedTuple):
    """Where a form's visitors are: an ISO 3166 code for phones, and the IANA name of a zone."""

    country: str
    timezone: str


def validate(
    fields: Sequence[FieldSpec], values: Mapping[str, object], language: str, place: Place
) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the cleaned values of the declared fields, and the errors.

    Values are strings from an HTML form, or JSON values, or lists of them if a field was sent
    several times. Empty values and boxes that are not ticked are omitted. Error messages are for
    the visitor, in the form's language.
    """
    data: dict[str, Any] = {}
    errors: list[FieldError] = []
    for field in fields:
        try:
            value = _clean(field, values.get(field.name), language, place)
        except _InvalidValueError as error:
            message = form_text(language, error.key, **error.values)
            errors.append(FieldError(field.name, message, error.key))
            continue
        if value is not None:
            data[field.name] = value
        elif field.required:
            key = _MISSING.get(field.type, "required")
            message = form_text(language, key, options=_format_options(field.options))
            errors.append(FieldError(field.name, message, key))
    return data, errors


def clean_others(
    others: Mapping[str, object], language: str
) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the cleaned values of fields that the form does not have, and the errors."""
    data: dict[str, Any] = {}
    errors: list[FieldError] = []
    for sent_name, value in others.items():
        name = BIDI_CONTROL.sub("", CONTROL.sub("", " ".join(sent_name.split()))) or _UNNAMED
        try:
            _require_length(name, _MAX_OTHER_NAME)
            cleaned = _kept(value, field_roles.role_of(name) or "text")
        except _InvalidValueError as error:
            message = form_text(language, error.key, **error.values)
            errors.append(FieldError(name[:_MAX_OTHER_NAME], message, error.key))
            continue
        if cleaned not in (None, []):
            data[name] = _both(data[name], cleaned) if name in data else cleaned
    if len(data) > _MAX_OTHERS:
        message = form_text(language, "too_many", limit=_MAX_OTHERS, count=len(data))
        errors.append(FieldError(list(data)[_MAX_OTHERS], message, "too_many"))
    return data, errors


def _both(one: Any, other: Any) -> list[Any]:  # noqa: ANN401  JSON
    lists = (each if isinstance(each, list) else [each] for each in (one, other))
    return list(chain.from_iterable(lists))


def _kept(value: object, kind: str) -> Any:  # noqa: ANN401  JSON
    # Returns None for an empty value.
    if isinstance(value, list):
        values = [kept for each in value if (kept := _kept(each, kind)) is not None]
        return values[0] if len(values) == 1 else values
    if isinstance(value, dict):
        # As an object it could look like a consent.
        return _entered_text(to_json(value).decode(), "textarea")
    if isinstance(value, bool | None) or (isinstance(value, int | float) and _is_exact(value)):
        return value
    entered = _entered_text(str(value), "textarea")
    return entered if is_visible(entered) and not _is_mask(entered, kind) else None


def is_no_consent(field: FieldSpec, value: object) -> bool:
    """Whether a value of a consent is neither a word for yes nor one for no."""
    words = {
        str(each).strip().casefold() for each in (value if isinstance(value, list) else [value])
    }
    return field.type == "consent" and not words <= _YES | _UNTICKED | {"", "none"}


def is_consent(value: object) -> bool:
    """Whether a value is one of the words for yes, by which alone a consent is given."""
    return _parse_consent(value) is True


def lacks_consent(fields: Sequence[FieldSpec]) -> bool:
    """Whether a form takes contacts, but has no field for the consent to their processing."""
    kinds = {field.type for field in fields}
    return "consent" not in kinds and not kinds.isdisjoint(_CONTACTS)


def rejection(
    fields: Sequence[FieldSpec], errors: Sequence[FieldError], language: str
) -> ValidationError:
    """Return the error that lists the invalid fields by their labels."""
    # An error elsewhere, such as in the cart, appears with its full message, because no form field
    # can show it.
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
    comes from the field ``name``, or else from the first field of type text. A field that the form
    does not have counts by its name, such as ``Phone``, if no field of the form has the contact.
    """
    declared = {field.name for field in fields}

    def first(kind: str) -> str | None:
        values = (data[f.name] for f in fields if f.type == kind and data.get(f.name))
        return next(map(_first_text, values), None)

    def other(role: str) -> str | None:
        names = (
            name for name in data if name not in declared and field_roles.role_of(name) == role
        )
        return next(filter(None, (_first_text(data[name]) for name in names)), None)

    return (
        _first_text(data.get("name")) or other(field_roles.NAME) or first("text"),
        first("email") or other(field_roles.EMAIL),
        first("phone") or other(field_roles.PHONE),
    )


def _first_text(value: object) -> str | None:
    values = value if isinstance(value, list) else [value]
    return next((each for each in values if isinstance(each, str)), None)


class _InvalidValueError(Exception):
    # ``key`` is the key of the error message.
    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def _clean(field: FieldSpec, value: object, language: str, place: Place) -> Any:  # noqa: ANN401  JSON
    # Returns None for an empty value.
    is_box = field.type in {"checkbox", "consent"}
    if not isinstance(value, list):
        return _box(field, value) if is_box else _clean_one(field, value, language, place)
    if is_box:
        # A hidden field before a checkbox has the value of the box that is not ticked.
        return _box(field, value[-1] if value else None)
    cleaned = [_clean_one(field, each, language, place) for each in value]
    values = [each for each in cleaned if each is not None]
    values = [each for number, each in enumerate(values) if each not in values[:number]]
    return values if len(values) > 1 else next(iter(values), None)


def _box(field: FieldSpec, value: object) -> bool | None:
    return _parse_consent(value) if field.type == "consent" else _parse_checkbox(value)


def _clean_one(field: FieldSpec, value: object, language: str, place: Place) -> Any:  # noqa: ANN401  JSON
    if field.type == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded(value)
    entered = _entered_text(value, field.type)
    if not is_visible(entered) or (field.type in _MASKED and _is_mask(entered, field.type)):
        return None
    match field.type:
        case "number":
            return _number(entered, language=language)
        case "phone":
            return _phone(entered, place.country, is_required=field.required)
        case "date":
            return _date(entered, place.timezone)
    if field.type == "select" and entered not in field.options:
        raise _InvalidValueError("unchosen", options=_format_options(field.options))
    return _email(entered) if field.type == "email" else entered


# Types whose controls may show a mask until something is typed.
_MASKED = frozenset({"phone", "date", "number", "email"})


def _is_mask(entered: str, kind: str) -> bool:
    # A mask of a phone may show a country code.
    if kind == "phone":
        return _MASK.fullmatch(entered) is not None
    return "_" in entered and not any(character.isalnum() for character in entered)


def _parse_consent(value: object) -> bool | None:
    # Only the words for yes give a consent.
    if isinstance(value, str):
        return True if value.strip().casefold().rstrip(".!") in _YES else None
    return True if value in (True, 1) and isinstance(value, int | float) else None


def _entered_text(value: object, kind: str) -> str:
    # A JSON number is converted to text.
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _InvalidValueError(kind if kind in {"email", "number", "date"} else "text")
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
    _require_length(entered, limit)
    return entered


def _require_length(text: str, limit: int) -> None:
    if len(text) > limit:
        raise _InvalidValueError("too_long", limit=limit, length=len(text))


def _parse_checkbox(value: object) -> bool | None:
    # As in HTML, any value that does not mean "no" counts as ticked.
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


def _phone(entered: str, country: str, *, is_required: bool) -> str:
    # Words may surround the number. A required phone must be one that can be called. Any other text
    # is kept, so that no lead is lost.
    digits = sum(character.isdecimal() for character in entered)
    if (
        len(entered) > MAX_PHONE
        or digits > _MOST_DIGITS
        or _MARKUP.search(entered)
        or (is_required and phones.find_phone(entered, country=country) is None)
    ):
        raise _InvalidValueError("phone", example=phones.example(country).replace(" ", "\u00a0"))
    return entered


def _number(entered: str, *, language: str) -> int | float:
    # A comma before three digits separates thousands in English, and decimals in Russian.
    compact = "".join(entered.split()).replace("\u2212", "-")
    if _THOUSANDS.fullmatch(compact) and (language == "en" or compact.count(",") > 1):
        compact = compact.replace(",", "")
    compact = compact.replace(",", ".")
    if not _NUMBER.fullmatch(compact):
        raise _InvalidValueError("number")
    return _bounded(float(compact))


def _is_exact(number: float) -> bool:
    return abs(number) <= MAX_NUMBER


def _bounded(number: float) -> int | float:
    if not _is_exact(number):
        raise _InvalidValueError("number")
    return int(number) if number == int(number) else number


def _date(entered: str, timezone: str) -> str:
    # A time stamp is its written date. But a date picker sends midnight of its zone in UTC, so a
    # moment that is midnight in the zone of the form is that day.
    if _TIMESTAMP.fullmatch(entered):
        with suppress(ValueError, OverflowError):
            when = datetime.fromisoformat(entered)
            local = when.astimezone(ZoneInfo(timezone)) if when.tzinfo else when
            is_midnight = when.time() != time() and local.time() == time()
            return (local if is_midnight else when).date().isoformat()
    for pattern in _DATES:
        if match := pattern.fullmatch(entered):
            with suppress(ValueError):
                return date(
                    **{name: int(part) for name, part in match.groupdict().items()}
                ).isoformat()
    raise _InvalidValueError("date")


def _format_options(options: Sequence[str]) -> str:
    line = ", ".join(options)
    short_line = cut_bytes(line, _MAX_OPTIONS_BYTES)
    return short_line if short_line == line else f"{short_line}…"

"""The fields of a capture form: what a visitor sent is checked and cleaned by their types."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from chalicelib.core.errors import FieldError
from chalicelib.rules import emails

_CYRILLIC = re.compile("[\u0400-\u04ff]")


class FieldSpec(NamedTuple):
    """A declared field; ``options`` are those of a select."""

    name: str
    label: str
    type: str
    required: bool = False
    options: tuple[str, ...] = ()


def language(title: str, labels: Sequence[str]) -> str:
    """Return the language of a form by its texts: ``ru`` if any is Cyrillic, else ``en``."""
    return "ru" if any(_CYRILLIC.search(text) for text in (title, *labels)) else "en"


def validate(
    fields: Sequence[FieldSpec], values: Mapping[str, object], language: str
) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the cleaned values of the declared fields, and what is wrong with them.

    Values are texts, as a form sends them, or JSON values. What is empty is left out.
    """
    data: dict[str, Any] = {}
    errors: list[FieldError] = []
    for field in fields:
        value = values.get(field.name)
        value = value.strip() if isinstance(value, str) else value
        if value in (None, "", False):
            if field.required:
                text = "Заполните это поле." if language == "ru" else "Fill in this field."
                errors.append(FieldError(field.name, text))
            continue
        try:
            data[field.name] = _clean(field, value)
        except ValueError:
            text = "Проверьте это поле." if language == "ru" else "Check this field."
            errors.append(FieldError(field.name, text))
    return data, errors


def contact(
    fields: Sequence[FieldSpec], data: Mapping[str, Any]
) -> tuple[str | None, str | None, str | None]:
    """Return the name, e-mail address and phone number that cleaned values hold, as written.

    The first non-empty field of type email, and of phone; the field ``name``, else the first text.
    """

    def first(kind: str) -> str | None:
        return next((data[f.name] for f in fields if f.type == kind and data.get(f.name)), None)

    name = data.get("name")
    return (
        (name if isinstance(name, str) else None) or first("text"),
        first("email"),
        first("phone"),
    )


def _clean(field: FieldSpec, value: Any) -> Any:  # noqa: ANN401  JSON
    match field.type:
        case "number":
            number = float(value)
            return int(number) if number.is_integer() else number
        case "checkbox" | "consent":
            return value in (True, "true", "on", "1", "yes")
        case "email":
            return emails.normal_email(str(value))
        case "date":
            return date.fromisoformat(str(value)).isoformat()
        case "select":
            if value not in field.options:
                raise ValueError
            return value
        case _:
            return str(value)

"""From raw input to a validated model, with errors that let a caller fix the call by itself.

Input is validated strictly (a JSON number must be a number), because silently coerced money is how
mistakes are paid for; what arrives as a query string is first read by type (``from_query``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeVar

from pydantic import ValidationError as PydanticValidationError
from pydantic_core import ErrorDetails

from chalicelib.core.errors import FieldError, ValidationError
from chalicelib.core.json_schema import json_schema
from chalicelib.core.schema import Wire, wire_name

W = TypeVar("W", bound=Wire)


def parse(model: type[W], raw: Mapping[str, Any]) -> W:
    """Validate raw input.

    Raises:
        ValidationError: naming each field, what was expected and what came.
    """
    for name, instead in model.REJECTED_FIELDS.items():
        if name in raw:
            raise ValidationError.of(name, instead)
    try:
        return model.model_validate(raw, strict=True, by_alias=True, by_name=False)
    except PydanticValidationError as failure:
        errors = [_explain(e) for e in failure.errors(include_url=False)[:MOST_NAMED]]
        summary = "; ".join(f"{e.field}: {e.message}" for e in errors[:5])
        raise ValidationError(summary, errors=errors) from None


_EXPECTED = {
    "missing": "is required",
    "string_type": "expected text",
    "string_unicode": "expected valid Unicode text",
    "string_too_short": "expected at least {min_length} character(s)",
    "string_too_long": "expected at most {max_length} characters",
    "string_pattern_mismatch": "expected text matching {pattern}",
    "int_type": "expected an integer",
    "bool_type": "expected true or false",
    "dict_type": "expected an object",
    "list_type": "expected an array",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "greater_than_equal": "expected at least {ge}",
    "less_than_equal": "expected at most {le}",
    "too_short": "expected at least {min_length} item(s)",
    "too_long": "expected at most {max_length} items",
    "literal_error": "expected {expected}",
}
"""What pydantic's errors mean in JSON's terms; the rest are worded where they are raised."""


def _explain(error: ErrorDetails) -> FieldError:
    # A validator of a whole model names the field itself, if it is about one.
    field = ".".join(map(str, error["loc"])) or error.get("ctx", {}).get("field", "input")
    kind = error["type"]
    if kind in {"too_short", "too_long"} and isinstance(error["input"], str):
        kind = f"string_{kind}"  # pydantic words a bound behind a validator as that of a list
    expected = _EXPECTED.get(kind)
    message = expected.format(**error.get("ctx", {})) if expected else error["msg"]
    if not error["loc"] or error["type"] == "missing" or "received" in message:
        return FieldError(field, message)
    return FieldError(field, f"{message}, received {_describe(error['input'])}")


_SHOWN = 60


def _describe(value: object) -> str:  # noqa: PLR0911  one return a JSON type
    """Name what came, briefly.

    Enough to recognise, too little to echo a document or flood a log.
    """
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean {str(value).lower()}"
        case int() | float():
            text = str(value) if abs(value) < 10**_SHOWN else "a very large one"
            return f"number {text}"
        case str():
            shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
            return f'text "{shown}"' + (
                f" ({len(value)} characters)" if len(value) > _SHOWN else ""
            )
        case Mapping():
            return "an object"
        case Sequence():
            return f"an array of {len(value)}"
        case _:
            return "something else"


MOST_NAMED = 20
"""Errors or warnings named one by one; a body of junk must not cost, or echo, without end."""


def unknown_fields(given: Wire, raw: Mapping[str, Any]) -> list[str]:
    """Return a warning for each key of ``raw`` that the model ignored, with the nearest name."""
    found = list(islice(_unknown(given, raw, ""), MOST_NAMED + 1))
    if len(found) > MOST_NAMED:
        found[MOST_NAMED] = "More unknown fields were ignored, too."
    return found


def _unknown(given: Wire, raw: Mapping[str, Any], path: str) -> Iterator[str]:
    fields = {wire_name(type(given), name): name for name in type(given).model_fields}
    for key, value in raw.items():
        if key not in fields:
            near = get_close_matches(key[:_SHOWN], fields, n=1, cutoff=0.6)
            hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(fields)}."
            yield f'Unknown field "{path}{key[:_SHOWN]}" was ignored; {hint}'
            continue
        parsed = getattr(given, fields[key])
        if isinstance(parsed, Wire) and isinstance(value, Mapping):
            yield from _unknown(parsed, value, f"{path}{key}.")
        elif isinstance(parsed, list | tuple) and isinstance(value, Sequence):
            for i, (item, raw_item) in enumerate(zip(parsed, value, strict=False)):
                if isinstance(item, Wire) and isinstance(raw_item, Mapping):
                    yield from _unknown(item, raw_item, f"{path}{key}.{i}.")


_INTEGER = re.compile(r"-?[0-9]{1,18}")


def from_query(model: type[Wire], query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Read a query string by the types that the model declares; unknown parameters are dropped.

    A value that does not read as its type is passed on as text, so that validation can name it.
    """
    raw: dict[str, Any] = {}
    for name, declared in json_schema(model)["properties"].items():
        if values := query.get(name):
            kinds = declared.get("type", "string")
            if "array" in kinds:
                raw[name] = [
                    _read(value, declared["items"].get("type", "string")) for value in values
                ]
            else:
                raw[name] = _read(values[-1], kinds)
    return raw


def _read(text: str, kinds: str | Sequence[str]) -> object:
    if "integer" in kinds and _INTEGER.fullmatch(text):
        return int(text)
    if "boolean" in kinds and text in {"true", "false"}:
        return text == "true"
    return text

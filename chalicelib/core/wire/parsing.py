"""Parsing of raw input into validated models, with errors that a caller can act on.

Validation is strict (a JSON number must be a number), because silent coercion of amounts causes
costly mistakes. ``from_query`` first converts a query string to the declared types.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import ValidationError as PydanticValidationError
from pydantic_core import ErrorDetails, core_schema

from chalicelib.core.errors import HOW_TO_CLEAR, FieldError, ValidationError
from chalicelib.core.text import nearest
from chalicelib.core.wire.fields import fields_of, normalize
from chalicelib.core.wire.schema import Partial, Wire

W = TypeVar("W", bound=Wire)


def parse(model: type[W], raw: Mapping[str, Any], *, drop_empty: bool = False) -> W:
    """Validate raw input. A ``null`` that means an omission is removed first.

    With ``drop_empty``, an empty string also counts as an omission in an optional string field that
    refuses it. Clients in OpenAI's strict mode fill every field, and HTML forms send every filter.

    Raises:
        ValidationError: names each invalid field, what was expected and what was received.
    """
    for name, advice in model.REJECTED_FIELDS.items():
        if name in raw:
            raise ValidationError.of(name, message=advice)
    data = normalize(model, raw)
    try:
        return model.model_validate(data, strict=True, by_alias=True, by_name=False)
    except PydanticValidationError as failure:
        if drop_empty and (without_empty := _drop_rejected_empty(model, data, failure)) != data:
            return parse(model, without_empty)
        raise to_validation_error(model, data, failure) from None


def to_validation_error(
    kind: Any,  # noqa: ANN401  a model or another type
    data: object,
    failure: PydanticValidationError,
    *,
    name: str = "",
) -> ValidationError:
    """Return the error for input that pydantic refused as a model or as another type.

    ``name`` is the name of the whole input in errors.
    """
    unknown: list[_UnknownKey] = []
    if isinstance(data, Mapping) and isinstance(kind, type) and issubclass(kind, Wire):
        unknown = list(islice(_unknown_keys(kind, data), MAX_REPORTED))
    details = failure.errors(include_url=False)[:MAX_REPORTED]
    if name:
        details = [{**detail, "loc": detail["loc"] or (name,)} for detail in details]
    errors = [
        FieldError(_field(error), _error_text(error, unknown) + _clearing_advice(kind, error))
        for error in details
    ]
    return ValidationError(
        "; ".join(map(_summary, errors[:5])), errors=[error for error in errors if error.field]
    )


def _drop_rejected_empty(
    model: type[Wire], data: Mapping[str, Any], failure: PydanticValidationError
) -> dict[str, Any]:
    errors = failure.errors(include_url=False)
    return _remove_rejected(model, data, [error["loc"] for error in errors if error["input"] == ""])


_Location = Sequence[int | str]


def _remove_rejected(
    model: type[Wire], data: Mapping[str, Any], rejected: Sequence[_Location]
) -> dict[str, Any]:
    fields, result = fields_of(model), dict(data)
    for name, value in data.items():
        rejected_inside = _inside(rejected, name)
        if not rejected_inside or name not in fields:
            continue
        field = fields[name]
        if value == "" and field.is_text and not field.null_is_value:
            del result[name]
        elif field.nested is not None and isinstance(value, Mapping):
            result[name] = _remove_rejected(field.nested, value, rejected_inside)
        elif field.nested is not None and isinstance(value, list):
            result[name] = [
                _remove_rejected(field.nested, item, _inside(rejected_inside, number))
                if isinstance(item, Mapping)
                else item
                for number, item in enumerate(value)
            ]
    return result


def _inside(locations: Iterable[_Location], step: int | str) -> list[_Location]:
    return [location[1:] for location in locations if location and location[0] == step]


_EXPECTED = {
    "missing": "is required",
    "string_type": "expected a string",
    "string_unicode": "expected a string of valid Unicode",
    "string_too_short": "expected at least {min_length} character(s)",
    "string_too_long": "expected at most {max_length} characters",
    "int_type": "expected an integer",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "datetime_type": "expected ISO 8601, such as 2030-01-31T12:00:00Z",
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
"""Pydantic's errors in terms of JSON. Errors that are not listed have their text already."""
_EXPECTED_OTHER = "expected another value"
_PYDANTIC_ERRORS = frozenset(get_args(core_schema.ErrorType))


def _error_text(error: ErrorDetails, unknown: Iterable["_UnknownKey"]) -> str:
    kind, about = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "is required" + _misnamed_hint(error["loc"], unknown)
    if kind in {"too_short", "too_long"} and isinstance(error["input"], str):
        # Behind a validator, pydantic describes a bound as the bound of a list.
        kind = f"string_{kind}"
    if kind in _PYDANTIC_ERRORS:
        message = _EXPECTED.get(kind, _EXPECTED_OTHER).format(**about)
    else:
        message = error["msg"]
    if error["loc"] and "field" not in about and "received" not in message:
        message += f", received {_describe(error['input'])}"
    return f"{message}; {about['advice']}" if "advice" in about else message


def _clearing_advice(kind: Any, error: ErrorDetails) -> str:  # noqa: ANN401  as in refusal
    if error["input"] != "" or not (isinstance(kind, type) and issubclass(kind, Partial)):
        return ""
    field = fields_of(kind).get(str(error["loc"][0])) if len(error["loc"]) == 1 else None
    return f"; to clear the field, {HOW_TO_CLEAR}" if field and field.null_is_value else ""


def _field(error: ErrorDetails) -> str:
    own_field = error.get("ctx", {}).get("field")
    return _path(error["loc"] if own_field is None else (*error["loc"], own_field))


def _path(location: Sequence[int | str]) -> str:
    return ".".join(map(str, location))


def _summary(error: FieldError) -> str:
    if error.field:
        return f"{error.field}: {error.message}"
    return error.message[:1].upper() + error.message[1:]


_MAX_SHOWN = 60


def _describe(value: object) -> str:  # noqa: PLR0911  one return a JSON type
    # The description is enough to recognize the value, but too short to echo a document or flood a
    # log.
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean {str(value).lower()}"
        case int() | float():
            # Python refuses to write integers of more than 4,300 digits.
            text = str(value) if abs(value) < 10**_MAX_SHOWN else "(very large)"
            return f"number {text}"
        case str():
            excerpt = value if len(value) <= _MAX_SHOWN else value[:_MAX_SHOWN] + "…"
            return f'string "{excerpt}"' + (
                f" ({len(value)} characters)" if len(value) > _MAX_SHOWN else ""
            )
        case Mapping():
            return "an object"
        case Sequence():
            return f"an array with {len(value)} item(s)"
        case _:
            return "a value of another type"


MAX_REPORTED = 20
"""Maximum errors or warnings in one response, so that invalid bodies cannot make it large."""


class _UnknownKey(NamedTuple):
    """A key that a model does not have, its path, and the known names at that path."""

    path: tuple[str | int, ...]
    key: str
    known: Iterable[str]

    @property
    def nearest_name(self) -> str | None:
        return nearest(self.key, self.known)

    def warning(self, filtered_list: Callable[[], str] | None) -> str:
        hint = f'did you mean "{nearest_name}"?' if (nearest_name := self.nearest_name) else None
        names = ", ".join(self.known)
        hint = hint or (f"known fields: {names}." if names else "no fields are expected.")
        if filtered_list is None or self.path:
            return f'Unknown field "{_path((*self.path, self.key))}" was ignored; {hint}'
        hint = hint[0].upper() + hint[1:]
        ignored = f'"{self.key}" is not an argument of {filtered_list()}'
        return f"{ignored}; this list is NOT filtered by it. {hint}"


def unknown_fields(
    model: type[Wire],
    raw: Mapping[str, Any],
    *,
    filtered_list: Callable[[], str] | None = None,
) -> list[str]:
    """Return a warning for each key of ``raw`` that the model ignores, with the nearest known name.

    ``filtered_list`` returns the name of the call if it returns a filtered list. Its warnings state
    that the filter did not apply, because a model would otherwise present the whole list as
    filtered.
    Query parameters that were sent more than once are also named.
    """
    unknown = islice(_unknown_keys(model, raw), MAX_REPORTED + 1)
    warnings = [unknown_key.warning(filtered_list) for unknown_key in unknown]
    if len(warnings) > MAX_REPORTED:
        warnings[MAX_REPORTED] = "More unknown fields were ignored."
    return [*(raw.repeated if isinstance(raw, QueryInput) else ()), *warnings]


def _unknown_keys(
    model: type[Wire], raw: Mapping[str, Any], path: tuple[str | int, ...] = ()
) -> Iterator[_UnknownKey]:
    fields = fields_of(model)
    for key, value in raw.items():
        if key not in fields:
            if key not in model.REJECTED_FIELDS:
                known = [name for name in fields if name not in model.SET_BY_ADDRESS]
                yield _UnknownKey(path, key[:_MAX_SHOWN], known)
            continue
        nested = fields[key].nested
        if nested is None:
            continue
        if isinstance(value, Mapping):
            yield from _unknown_keys(nested, value, (*path, key))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield from _unknown_keys(nested, item, (*path, key, i))


_MAX_SUGGESTED = 3


def _misnamed_hint(location: Sequence[int | str], unknown: Iterable[_UnknownKey]) -> str:
    *path, field = location
    candidates = [
        unknown_key
        for unknown_key in unknown
        if unknown_key.path == tuple(path) and unknown_key.nearest_name in {None, field}
    ]
    suffix = str(field).casefold()
    candidates.sort(
        key=lambda candidate: (
            candidate.nearest_name is None,
            not candidate.key.casefold().endswith(suffix),
        )
    )
    names = ", ".join(f'"{candidate.key}"' for candidate in candidates[:_MAX_SUGGESTED])
    return f"; you sent {names}" if names else ""


_INTEGER = re.compile(r"(-?[0-9]{1,18})(?:\.0{1,18})?")


class QueryInput(dict[str, Any]):
    """Input from a query string. ``repeated`` holds a warning for each value that was not used."""

    repeated: Sequence[str] = ()


def from_query(model: type[Wire], query: Mapping[str, Sequence[str]]) -> QueryInput:
    """Convert a query string to the types that the model declares.

    A value that does not convert remains a string, so that validation can name it. Unknown
    parameters are kept, so that they are named like unknown fields. If a parameter takes one value,
    the last one sent counts.
    """
    fields = fields_of(model)
    raw = QueryInput()
    raw.repeated = [
        f'"{name}" was sent {len(values)} times, but accepts only one value. The last value '
        f"was used: {used}."
        for name, values in islice(query.items(), MAX_REPORTED)
        if len(values) > 1 and name in fields and list not in fields[name].kinds
        for used in [_describe(_read(values[-1], fields[name].kinds))]
    ]
    for name, values in query.items():
        kinds = fields[name].kinds if name in fields else frozenset()
        if list in kinds:
            raw[name] = [_read(value, kinds) for value in values]
        elif values:
            raw[name] = _read(values[-1], kinds)
    return raw


def _read(text: str, kinds: Collection[Any]) -> object:
    if int in kinds and (integer := _INTEGER.fullmatch(text)):
        return int(integer[1])
    if bool in kinds and text in {"true", "false"}:
        return text == "true"
    return text

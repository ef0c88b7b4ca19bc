"""Parsing of raw input into validated models, with errors that a caller can act on.

Validation is strict (a JSON number must be a number), because silent coercion of amounts causes
costly mistakes. ``from_query`` first converts a query string to the declared types.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import ValidationError as PydanticValidationError
from pydantic_core import ErrorDetails, core_schema

from chalicelib.core.call_warnings import CallWarning, WarningCode
from chalicelib.core.errors import HOW_TO_CLEAR, FieldError, ValidationError
from chalicelib.core.text import nearest
from chalicelib.core.wire.fields import fields_of, normalize
from chalicelib.core.wire.list_names import other_names
from chalicelib.core.wire.schema import RECEIVED, Partial, Wire

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
        sent_names = raw.sent_names if isinstance(raw, QueryInput) else {}
        raise to_validation_error(model, data, failure, sent_names=sent_names) from None


def to_validation_error(
    kind: Any,  # noqa: ANN401  a model or another type
    data: object,
    failure: PydanticValidationError,
    *,
    name: str = "",
    sent_names: Mapping[str, str] = MappingProxyType({}),
) -> ValidationError:
    """Return the error for input that pydantic refused as a model or as another type.

    ``name`` is the name of the whole input in errors, ``sent_names`` those of renamed fields.
    """
    unknown: list[_UnknownKey] = []
    if isinstance(data, Mapping) and isinstance(kind, type) and issubclass(kind, Wire):
        unknown = list(islice(_unknown_keys(kind, data), MAX_REPORTED))
    details = failure.errors(include_url=False)[:MAX_REPORTED]
    if name:
        details = [
            detail
            if detail["loc"] or "field" in detail.get("ctx", {})
            else {**detail, "loc": (name,)}
            for detail in details
        ]
    errors = [
        FieldError(
            sent_names.get(_field(error), _field(error)),
            _error_text(error, unknown) + _clearing_advice(kind, error),
            _key(error),
        )
        for error in details
    ]
    return ValidationError(
        "; ".join(map(_summary, errors[:5])),
        key=next((error.key for error in errors if not error.field), ""),
        errors=[error for error in errors if error.field],
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
    "missing": ("required", "is required"),
    "string_type": ("invalid_type", "expected a string"),
    "string_unicode": ("invalid_unicode", "expected a string of valid Unicode"),
    "string_too_short": ("too_short", "expected at least {min_length} character(s)"),
    "string_too_long": ("too_long", "expected at most {max_length} characters"),
    "int_type": ("invalid_type", "expected an integer"),
    "float_type": ("invalid_type", "expected a number"),
    "finite_number": ("invalid_type", "expected a finite number"),
    "bool_type": ("invalid_type", "expected true or false"),
    "datetime_type": ("iso_8601", "expected ISO 8601, such as 2030-01-31T12:00:00Z"),
    "dict_type": ("invalid_type", "expected an object"),
    "list_type": ("invalid_type", "expected an array"),
    "model_type": ("invalid_type", "expected an object"),
    "model_attributes_type": ("invalid_type", "expected an object"),
    "greater_than_equal": ("too_small", "expected at least {ge}"),
    "less_than_equal": ("too_large", "expected at most {le}"),
    "too_short": ("too_few_items", "expected at least {min_length} item(s)"),
    "too_long": ("too_many_items", "expected at most {max_length} items"),
    "literal_error": ("unknown_value", "expected {expected}"),
}
"""Keys and sentences, in terms of JSON, of pydantic's errors. Our own errors have theirs."""
_EXPECTED_OTHER = ("invalid", "expected another value")
_PYDANTIC_ERRORS = frozenset(get_args(core_schema.ErrorType))


def _kind(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind in {"too_short", "too_long"} and isinstance(error["input"], str):
        # Behind a validator, pydantic describes a bound as the bound of a list.
        return f"string_{kind}"
    return kind


def _key(error: ErrorDetails) -> str:
    kind = _kind(error)
    return _EXPECTED.get(kind, _EXPECTED_OTHER)[0] if kind in _PYDANTIC_ERRORS else kind


def _error_text(error: ErrorDetails, unknown: Iterable["_UnknownKey"]) -> str:
    kind, about = _kind(error), error.get("ctx", {})
    if kind == "missing":
        return "is required" + _misnamed_hint(error["loc"], unknown)
    if kind in _PYDANTIC_ERRORS:
        message = _EXPECTED.get(kind, _EXPECTED_OTHER)[1].format(**about)
    else:
        message = error["msg"]
    if error["loc"] and not about.keys() & {"field", RECEIVED}:
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

    @property
    def field(self) -> str:
        return _path((*self.path, self.key))

    @property
    def refusal(self) -> str:
        names = ", ".join(self.known)
        known = f"known names: {names}" if names else "no names are expected"
        hint = f'did you mean "{name}"? ' if (name := self.nearest_name) else ""
        return f"is unknown; {hint}{known}"

    def warning(
        self, filtered_list: Callable[[], str] | None, explained: set[tuple[str, ...]]
    ) -> CallWarning:
        """Return the warning. Only the first one of a place, ``explained``, has the known names."""
        facts = {"field": self.field, "suggestion": self.nearest_name}
        message = self._message(filtered_list, self._hint(explained))
        return CallWarning(message, WarningCode.UNKNOWN_FIELD, facts)

    def _hint(self, explained: set[tuple[str, ...]]) -> str:
        if nearest_name := self.nearest_name:
            return f'did you mean "{nearest_name}"?'
        place = tuple(part for part in self.path if isinstance(part, str))
        if place in explained:
            return "known fields: as above."
        explained.add(place)
        names = ", ".join(self.known)
        return f"known fields: {names}." if names else "no fields are expected."

    def _message(self, filtered_list: Callable[[], str] | None, hint: str) -> str:
        if filtered_list is None or self.path:
            return f'Unknown field "{self.field}" was ignored; {hint}'
        hint = hint[0].upper() + hint[1:]
        ignored = f'"{self.key}" is not an argument of {filtered_list()}'
        return f"{ignored}; this list is NOT filtered by it. {hint}"


def unknown_fields(
    model: type[Wire],
    raw: Mapping[str, Any],
    *,
    filtered_list: Callable[[], str] | None = None,
) -> list[CallWarning]:
    """Return a warning for each key of ``raw`` that the model ignores, with the nearest known name.

    ``filtered_list`` returns the name of the call if it returns a filtered list. Its warnings state
    that the filter did not apply, because a model would otherwise present the whole list as
    filtered.
    Query parameters that were sent more than once are also named.
    """
    unknown, explained = islice(_unknown_keys(model, raw), MAX_REPORTED + 1), set[tuple[str, ...]]()
    warnings = [unknown_key.warning(filtered_list, explained) for unknown_key in unknown]
    if len(warnings) > MAX_REPORTED:
        more = WarningCode.MORE_UNKNOWN_FIELDS
        warnings[MAX_REPORTED] = CallWarning("More unknown fields were ignored.", more, {})
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


def check_known(model: type[Wire], raw: Mapping[str, Any]) -> None:
    """Raise ValidationError for keys of ``raw`` that the model does not have, with the known ones.

    Unlike other input, it is refused and not ignored.
    """
    unknown = list(islice(_unknown_keys(model, raw), MAX_REPORTED))
    if unknown:
        errors = [FieldError(each.field, each.refusal, "unknown_field") for each in unknown]
        text = "; ".join(f"{each.field}: {each.message}" for each in errors[:5])
        raise ValidationError(text, errors=errors)


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

    repeated: Sequence[CallWarning] = ()
    # The names that were sent instead of those of fields (``list_names.other_names``).
    sent_names: Mapping[str, str] = MappingProxyType({})


def from_query(model: type[Wire], query: Mapping[str, Sequence[str]]) -> QueryInput:
    """Convert a query string to the types that the model declares.

    A value that does not convert remains a string, so that validation can name it. Unknown
    parameters are kept, so that they are named like unknown fields. If a parameter takes one value,
    the last one sent counts.

    Raises:
        ValidationError: two names of one field have different values.
    """
    fields = fields_of(model)
    raw = QueryInput()
    query, raw.sent_names = _renamed(model, query)
    raw.repeated = [
        CallWarning(
            f'"{name}" was sent {len(values)} times, but accepts only one value. The last value '
            f"was used: {used}.",
            WarningCode.REPEATED_PARAMETER,
            {"field": name, "count": len(values)},
        )
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


def _renamed(
    model: type[Wire], query: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, Sequence[str]], Mapping[str, str]]:
    sent = {other: name for other, name in other_names(model).items() if query.get(other)}
    if not sent:
        return query, {}
    renamed = {name: values for name, values in query.items() if name not in sent}
    fields = fields_of(model)
    for other, name in sent.items():
        values = [
            _read(some[-1], fields[name].kinds) for some in (query[other], query.get(name)) if some
        ]
        if values[-1] != values[0]:
            message = (
                f"expected the same as {name}, {_describe(values[-1])}, received "
                f"{_describe(values[0])}; send one of the two"
            )
            raise ValidationError.of(other, message=message, key="conflicting")
        renamed.setdefault(name, query[other])
    return renamed, {name: other for other, name in sent.items() if name not in query}


def _read(text: str, kinds: Collection[Any]) -> object:
    if int in kinds and (integer := _INTEGER.fullmatch(text)):
        return int(integer[1])
    if bool in kinds and text in {"true", "false"}:
        return text == "true"
    return text

"""Fields of wire models by their wire names, computed once per model."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from chalicelib.core.wire.money import MONEY
from chalicelib.core.wire.schema import NULL_IS_A_VALUE, Partial, Wire, wire_name


class WireField(NamedTuple):
    """A field of a model. ``nested`` is the model of its object, or of the objects in its list.

    Without ``null_is_value``, ``null`` means that the field was omitted. ``is_clearable`` is true
    for an optional field that ``null`` empties. ``kinds`` are the types in its annotation, such as
    ``list`` and ``int``. ``is_money`` is true for an amount in kopecks.
    """

    nested: type[Wire] | None
    null_is_value: bool
    is_clearable: bool
    kinds: frozenset[Any]
    is_money: bool

    @property
    def is_text(self) -> bool:
        """Whether its values are strings, including ids, dates and enumerations."""
        return self.nested is None and not self.kinds & {int, float, bool, list, dict}


@cache
def fields_of(model: type[Wire]) -> Mapping[str, WireField]:
    """Return a model's fields by their wire names."""
    return {
        wire_name(model, name): WireField(
            _nested(info.annotation),
            _null_is_a_value(model, info),
            _null_is_a_value(model, info) and not info.is_required() and _accepts_null(info),
            frozenset(_kinds(info.annotation)),
            MONEY in info.metadata or _is_money(info.annotation),
        )
        for name, info in model.model_fields.items()
    }


def _null_is_a_value(model: type[Wire], info: FieldInfo) -> bool:
    if info.is_required() or NULL_IS_A_VALUE in info.metadata:
        return True
    return issubclass(model, Partial) and NoneType in get_args(info.annotation)


def _accepts_null(info: FieldInfo) -> bool:
    return info.annotation is Any or NoneType in get_args(info.annotation)


def _is_money(annotation: Any) -> bool:  # noqa: ANN401  any annotation
    return annotation is MONEY or any(map(_is_money, get_args(annotation)))


def _nested(annotation: Any) -> type[Wire] | None:  # noqa: ANN401  any annotation
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return annotation
    return next(filter(None, map(_nested, get_args(annotation))), None)


def _kinds(annotation: Any) -> Iterator[Any]:  # noqa: ANN401  any annotation
    for argument in get_args(annotation):
        yield from _kinds(argument)
    if isinstance(kind := get_origin(annotation) or annotation, type):
        yield kind


def normalize(model: type[Wire], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return raw input in the form that validation expects, nested objects included.

    A ``null`` that means an omission is removed, because AI clients send it for every argument that
    they leave out. An integral number such as ``60.0`` becomes an integer in integer fields: JSON
    Schema counts it as one (2020-12 validation, 6.1.1), and some clients send only doubles.
    """
    fields = fields_of(model)
    return {
        name: _normalize_value(fields[name], value) if name in fields else value
        for name, value in raw.items()
        if value is not None or name not in fields or fields[name].null_is_value
    }


_MAX_EXACT_INTEGER = 2**53
"""Below this number, a double represents every integer exactly (RFC 8259, 6)."""


def _normalize_value(field: WireField, value: object) -> object:
    if isinstance(value, float):
        is_integer = int in field.kinds and value.is_integer() and abs(value) < _MAX_EXACT_INTEGER
        return int(value) if is_integer else value
    if isinstance(value, list):
        return [_normalize_value(field, item) for item in value]
    if field.nested is not None and isinstance(value, Mapping):
        return normalize(field.nested, value)
    return value

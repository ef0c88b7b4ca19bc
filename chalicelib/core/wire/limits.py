"""The limits of one argument, for a control of a form that fills the argument.

They are read from the declared types, because a JSON Schema takes a hundred times as long.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from chalicelib.core.wire.fields import fields_of
from chalicelib.core.wire.schema import Partial, Wire, wire_name


class Limits(NamedTuple):
    """The limits of an argument.

    ``is_required`` is also true in a change that cannot clear the argument. Only an argument whose
    values are strings has a length.
    """

    is_required: bool
    min_chars: int | None = None
    max_chars: int | None = None


@cache
def limits_of(model: type[Wire], path: str) -> Limits:
    """Return the limits of a field by its wire path, such as ``client.name`` or ``fields.label``.

    Raises:
        KeyError: the model has no such field.
    """
    name, _, rest = path.partition(".")
    field = fields_of(model)[name]
    if rest:
        if field.nested is None:
            raise KeyError(path)
        return limits_of(field.nested, rest)
    info = next(info for key, info in model.model_fields.items() if wire_name(model, key) == name)
    is_kept = issubclass(model, Partial) and NoneType not in get_args(info.annotation)
    is_required = info.is_required() or is_kept
    if not field.is_text:
        return Limits(is_required)
    bounds = list(_bounds(info.metadata, info.annotation))
    # A type may narrow another one.
    return Limits(
        is_required,
        max((low for low, _ in bounds if low is not None), default=None),
        min((high for _, high in bounds if high is not None), default=None),
    )


def limits_by_path(model: type[Wire], *outer: type[Wire]) -> Iterator[tuple[str, Limits]]:
    """Yield the path of each field of a model, those of nested models included, and its limits."""
    for name, field in fields_of(model).items():
        yield name, limits_of(model, name)
        if field.nested is not None and field.nested not in {model, *outer}:
            for path, limits in limits_by_path(field.nested, model, *outer):
                yield f"{name}.{path}", limits


def _bounds(
    metadata: Iterable[Any],
    annotation: Any = None,  # noqa: ANN401  any annotation
) -> Iterator[tuple[int | None, int | None]]:
    for mark in metadata:
        if isinstance(mark, FieldInfo):
            yield from _bounds(mark.metadata)
        elif isinstance(mark, WithJsonSchema):
            schema = mark.json_schema or {}
            yield schema.get("minLength"), schema.get("maxLength")
        else:
            yield getattr(mark, "min_length", None), getattr(mark, "max_length", None)
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        yield from _bounds(arguments[1:], arguments[0])
    else:
        for argument in arguments:
            yield from _bounds((), argument)

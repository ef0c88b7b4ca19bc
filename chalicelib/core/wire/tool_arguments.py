"""Arguments of tools, in the form that an operation takes over REST.

Over REST, ``null`` clears a field of an update (RFC 7396). Several AI frameworks send ``null`` for
each argument that the model left out. For a tool, ``null`` is therefore always an omission, and the
argument ``clear`` names the fields to empty.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from chalicelib.core.errors import ValidationError
from chalicelib.core.text import nearest
from chalicelib.core.wire.fields import fields_of
from chalicelib.core.wire.schema import Wire
from chalicelib.core.wire.text_arguments import ReadJson, read_json_text, read_texts

CLEAR = "clear"
"""The argument that names the fields to empty."""
_MAX_SHOWN = 60


@cache
def clearable(model: type[Wire]) -> tuple[str, ...]:
    """Return the wire names of the optional fields that an input can empty."""
    return tuple(name for name, field in fields_of(model).items() if field.is_clearable)


def clear_schema(names: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of the argument ``clear``."""
    return {
        "type": "array",
        "items": {"type": "string", "enum": list(names)},
        "description": "Fields to empty; null does not.",
    }


def read_arguments(
    model: type[Wire], arguments: Mapping[str, Any], read_json: ReadJson
) -> dict[str, Any]:
    """Return the input of an operation: ``null`` for the fields to empty, and for no other field.

    Strings that replace other types are converted.

    Raises:
        ValidationError: ``clear`` is not an array of clearable fields, or one of these has a value.
    """
    values = read_texts(model, arguments, read_json)
    names = clearable(model)
    if not names:
        return values
    cleared = read_json_text(values.pop(CLEAR, None), read_json)
    given = {k: v for k, v in values.items() if v is not None or k not in names}
    return given | dict.fromkeys(_check(cleared, names, given))


def _check(cleared: object, names: Sequence[str], given: Collection[str]) -> list[str]:
    if cleared is None:
        return []
    if not isinstance(cleared, list):
        raise ValidationError.of(
            CLEAR, message=f"expected an array of names, of {', '.join(names)}"
        )
    for name in cleared:
        if name not in names:
            shown = name[:_MAX_SHOWN] if isinstance(name, str) else "a value that is no name"
            suggestion = nearest(name, names) if isinstance(name, str) else None
            hint = f'; did you mean "{suggestion}"?' if suggestion else ""
            message = f'expected names of {", ".join(names)}, received "{shown}"{hint}'
            raise ValidationError.of(CLEAR, message=message)
        if name in given:
            message = f'"{name}" is named here and also has a value; send one of the two'
            raise ValidationError.of(CLEAR, message=message)
    return cleared

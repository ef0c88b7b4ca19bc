"""Parsing of arguments that a client has sent as strings.

Some AI clients send ``"2"`` for a number, and the JSON of an object or array as a string.
"""

from collections.abc import Callable, Mapping
from typing import Any

from chalicelib.core.wire.fields import WireField, fields_of
from chalicelib.core.wire.schema import Wire

ReadJson = Callable[[bytes], object]
"""Parses JSON, and raises ValueError for other strings."""


def read_texts(
    model: type[Wire], arguments: Mapping[str, Any], read_json: ReadJson
) -> dict[str, Any]:
    """Return arguments, with strings that replace other types converted to the declared types.

    Strings for string fields do not change, and amounts of money do not change: "12.90" may be
    rubles. A string that cannot be read does not change either, so that its refusal shows it.
    """
    fields = fields_of(model)
    return {
        name: _read(fields[name], value, read_json) if name in fields else value
        for name, value in arguments.items()
    }


def _read(field: WireField, value: object, read_json: ReadJson) -> object:
    if list not in field.kinds:
        return _read_one(field, value, read_json)
    parsed = read_json_text(value, read_json)
    if not isinstance(parsed, list):
        return None if parsed is None else value
    return [_read_one(field, item, read_json) for item in parsed]


def _read_one(field: WireField, value: object, read_json: ReadJson) -> object:
    if field.nested is not None or dict in field.kinds:
        parsed = read_json_text(value, read_json)
        if field.nested is not None and isinstance(parsed, Mapping):
            return read_texts(field.nested, parsed, read_json)
        return parsed if parsed is None or isinstance(parsed, dict) else value
    if not isinstance(value, str) or str in field.kinds or field.is_money:
        return value
    # Clients that are written in Python send ``True`` and ``None``.
    parsed = read_json_text(value.lower(), read_json)
    numbers = {int, float} if field.kinds & {int, float} else set()
    # The exact type counts, because a boolean is an instance of ``int``.
    return parsed if type(parsed) in {type(None), *numbers, *(field.kinds & {bool})} else value


def read_json_text(value: object, read_json: ReadJson) -> object:
    """Return the JSON value in a string. Other strings and values are returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value.strip().encode())
    except ValueError:
        return value

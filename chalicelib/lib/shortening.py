"""Shorten long strings and records for lists, and detect shortened values."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_json

ELLIPSIS = "…"  # the last character of a truncated text
# Each is tried as length of strings until the record is small enough.
LENGTHS = (1000, 300, 100, 30)


def size_of(data: Any) -> int:  # noqa: ANN401  JSON
    """Return the size of a value as JSON, in bytes."""
    return len(to_json(data))


def shorten(data: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the data in at most ``limit`` bytes of JSON, without its last fields if necessary."""
    short = data
    for length in LENGTHS:
        if size_of(short) <= limit:
            return short
        short = {name: truncate(value, length) for name, value in short.items()}
    while size_of(short) > limit:
        short = dict(list(short.items())[:-1])
    return short


def truncate(value: Any, length: int) -> Any:  # noqa: ANN401  JSON
    """Return a value with its strings cut to ``length`` characters, the ellipsis included."""
    match value:
        case str():
            return value if len(value) <= length else value[: length - 1] + ELLIPSIS
        # Lists and objects keep a tenth as many entries.
        case list():
            return [truncate(element, length) for element in value[: length // 10]]
        case dict():
            entries = list(value.items())[: length // 10]
            return {name: truncate(member, length) for name, member in entries}
        case _:
            return value


def is_truncated(new_value: Any, *, stored_value: Any, lengths: Iterable[int]) -> bool:  # noqa: ANN401  JSON
    """Whether a sent value is a truncated form of the stored one, so that saving it loses data."""
    return bool(new_value != stored_value) and any(
        new_value == truncate(stored_value, length) for length in lengths
    )


def truncated_fields(
    new_fields: Mapping[str, Any], *, stored_fields: Mapping[str, Any]
) -> list[str]:
    """Return the paths of the fields in a merge patch that are truncated forms of stored values."""
    paths = []
    for name, value in new_fields.items():
        current = stored_fields.get(name)
        if isinstance(value, dict) and isinstance(current, dict):
            paths += [f"{name}.{path}" for path in truncated_fields(value, stored_fields=current)]
        elif is_truncated(value, stored_value=current, lengths=LENGTHS):
            paths.append(name)
    return paths

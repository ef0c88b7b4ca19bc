"""Long records, shortened for lists."""

from typing import Any

from pydantic_core import to_json

_LENGTHS = (1000, 300, 100, 30)
"""Characters that texts are cut to, from step to step, until the whole is short enough."""


def size_of(data: Any) -> int:  # noqa: ANN401  JSON
    """Return how many bytes a value takes as JSON."""
    return len(to_json(data))


def shorten(data: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the data in at most ``limit`` bytes of JSON.

    First long texts are cut, and marked by an ellipsis; then lists; then the last fields go.
    """
    short = data
    for length in _LENGTHS:
        if size_of(short) <= limit:
            return short
        short = {name: _cut(value, length) for name, value in short.items()}
    while size_of(short) > limit:
        short = dict(list(short.items())[:-1])
    return short


def _cut(value: Any, length: int) -> Any:  # noqa: ANN401  JSON
    match value:
        case str():
            return value if len(value) <= length else value[: length - 1] + "…"
        case list():
            return [_cut(each, length) for each in value[: length // 10]]
        case dict():
            return {name: _cut(each, length) for name, each in list(value.items())[: length // 10]}
        case _:
            return value

"""Long texts and records, shortened for lists, and how a shortened one is recognised."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_json

MARK = "…"
"""The last character of a text that was cut."""
LENGTHS = (1000, 300, 100, 30)
"""Characters that texts are cut to, from step to step, until the whole is short enough."""


def size_of(data: Any) -> int:  # noqa: ANN401  JSON
    """Return how many bytes a value takes as JSON."""
    return len(to_json(data))


def shorten(data: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the data in at most ``limit`` bytes of JSON.

    First long texts are cut, and marked by an ellipsis; then lists; then the last fields go.
    """
    short = data
    for length in LENGTHS:
        if size_of(short) <= limit:
            return short
        short = {name: cut(value, length) for name, value in short.items()}
    while size_of(short) > limit:
        short = dict(list(short.items())[:-1])
    return short


def cut(value: Any, length: int) -> Any:  # noqa: ANN401  JSON
    """Return a value whose texts have at most ``length`` characters, the mark included."""
    match value:
        case str():
            return value if len(value) <= length else value[: length - 1] + MARK
        case list():
            return [cut(each, length) for each in value[: length // 10]]
        case dict():
            return {name: cut(each, length) for name, each in list(value.items())[: length // 10]}
        case _:
            return value


def is_cut(sent: Any, stored: Any, lengths: Iterable[int]) -> bool:  # noqa: ANN401  JSON
    """Whether a value is what cutting the stored one makes: written, it would lose the rest."""
    return bool(sent != stored) and any(sent == cut(stored, length) for length in lengths)


def cut_fields(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    """Return the fields of a merge patch that are cut forms of what is stored, by their paths."""
    found = []
    for name, value in sent.items():
        held = stored.get(name)
        if isinstance(value, dict) and isinstance(held, dict):
            found += [f"{name}.{path}" for path in cut_fields(value, held)]
        elif is_cut(value, held, LENGTHS):
            found.append(name)
    return found

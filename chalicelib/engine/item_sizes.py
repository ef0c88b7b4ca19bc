"""Sizes of items of DynamoDB, before they are written."""

from typing import Any


def size_of(value: Any) -> int:  # noqa: ANN401  a request in DynamoDB's JSON, or a part of one
    """Return a lower bound of the bytes that DynamoDB counts for values, names included."""
    match value:
        case dict():
            return sum(_OVERHEAD.get(n, len(n)) + size_of(each) for n, each in value.items())
        case list() | tuple():
            return sum(map(size_of, value))
        case str():
            return len(value) if value.isascii() else len(value.encode())
        case bytes():
            return len(value)
        case _:
            return 8


_OVERHEAD = {"L": 4, "M": 4, "N": 2}
"""Bytes that DynamoDB adds to a nested list, map or number (DynamoDB, Item sizes and formats)."""

"""Sizes of keys and items of DynamoDB, before they are written."""

from typing import Any

MAX_PARTITION_KEY_BYTES = 2_048
MAX_SORT_KEY_BYTES = 1_024
"""Length of the longest sort keys that DynamoDB accepts, in bytes of UTF-8 (DynamoDB quotas)."""


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


def is_key(pk: str, sk: str | None = None) -> bool:
    """Return whether a row can have this key.

    Keys are built from text that callers send, before or after it is validated. DynamoDB refuses a
    request with an empty or too long key, so reads check first: such a key has no row.
    """
    sort_key_fits = sk is None or 0 < len(sk.encode()) <= MAX_SORT_KEY_BYTES
    return sort_key_fits and 0 < len(pk.encode()) <= MAX_PARTITION_KEY_BYTES

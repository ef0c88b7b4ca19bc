"""Sizes of keys and items of DynamoDB, checked before they are written."""

from typing import Any

MAX_PARTITION_KEY_BYTES = 2_048
MAX_SORT_KEY_BYTES = 1_024  # in UTF-8 (DynamoDB quotas)
MAX_ITEM_BYTES = 400_000  # DynamoDB accepts 409,600 bytes, attribute names included.
# Bytes that DynamoDB adds to a nested list, map or number (DynamoDB, Item sizes and formats).
_OVERHEAD = {"L": 4, "M": 4, "N": 2}


def size_of(value: Any) -> int:  # noqa: ANN401  a request in DynamoDB's JSON, or a part of one
    """Return a lower bound of the bytes that DynamoDB counts for values, names included."""
    match value:
        case dict():
            return sum(_OVERHEAD.get(n, len(n)) + size_of(member) for n, member in value.items())
        case list() | tuple():
            return sum(map(size_of, value))
        case str():
            return len(value) if value.isascii() else len(value.encode())
        case bytes():
            return len(value)
        case _:
            return 8


def is_key(pk: str, sk: str | None = None) -> bool:
    """Return whether a row can have this key, which may be any string that a caller sent."""
    # DynamoDB refuses a request with an empty or too long key.
    try:
        sort_key_fits = sk is None or 0 < len(sk.encode()) <= MAX_SORT_KEY_BYTES
        return sort_key_fits and 0 < len(pk.encode()) <= MAX_PARTITION_KEY_BYTES
    except UnicodeEncodeError:  # a surrogate, which JSON can have
        return False

"""Idempotency keys: which texts are valid, and where callers send them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints

from chalicelib.core.errors import ValidationError

if TYPE_CHECKING:  # The chat's function does not need the registry.
    from chalicelib.core.operations import Operation

HEADER = "Idempotency-Key"
FIELD = "idempotencyKey"
"""The input field that may carry the key if the caller cannot send a header."""
MAX_LENGTH = 255

IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]
"""The type of a key that is a declared input of an operation."""


def check(key: str, name: str = FIELD) -> str:
    """Return a valid key.

    Args:
        key: the text that the caller sent.
        name: the header or field that the error names.

    Raises:
        ValidationError: the key is empty or too long.
    """
    if not 1 <= len(key) <= MAX_LENGTH:
        message = f"expected 1 to {MAX_LENGTH} characters, received {len(key)}"
        raise ValidationError.of(name, message)
    return key


def split(
    operation: "Operation", arguments: Mapping[str, Any]
) -> tuple[Mapping[str, Any], str | None]:
    """Separate the idempotency key from an input. Returns the other arguments and the key.

    An empty key counts as none.

    Raises:
        ValidationError: the key is not text.
    """
    if not operation.accepts_idempotency_key or FIELD not in arguments:
        return arguments, None
    rest = dict(arguments)
    key = rest.pop(FIELD)
    if key is not None and not isinstance(key, str):
        raise ValidationError.of(FIELD, f"expected text of 1 to {MAX_LENGTH} characters")
    return rest, key or None

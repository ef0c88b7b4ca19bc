"""Validation of idempotency keys, and the places where callers send them."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints
from pydantic_core import to_json

from chalicelib.core.errors import ValidationError

if TYPE_CHECKING:  # The chat's function does not need the registry.
    from chalicelib.core.operations import Operation
    from chalicelib.core.wire.schema import Wire

HEADER = "Idempotency-Key"
FIELD = "idempotencyKey"  # for a caller who cannot send a header
MAX_LENGTH = 255

IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]


def check(key: str, *, name: str = FIELD) -> str:
    """Return a valid key, or raise ValidationError of the header or field ``name``."""
    if not 1 <= len(key) <= MAX_LENGTH:
        message = f"expected 1 to {MAX_LENGTH} characters, received {len(key)}"
        raise ValidationError.of(name, message=message)
    return key


def split(
    operation: "Operation", arguments: Mapping[str, Any]
) -> tuple[Mapping[str, Any], str | None]:
    """Return an input without its idempotency key, and the key or None if it is empty.

    Raises ValidationError if the key is not text.
    """
    if not operation.accepts_idempotency_key or FIELD not in arguments:
        return arguments, None
    remaining_arguments = dict(arguments)
    key = remaining_arguments.pop(FIELD)
    if key is not None and not isinstance(key, str):
        raise ValidationError.of(
            FIELD, message=f"expected a string of 1 to {MAX_LENGTH} characters"
        )
    return remaining_arguments, key or None


def fingerprint(args: "Wire") -> str:
    """Return a hash of an input. A repeated key must come with the same input."""
    provided = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return hashlib.sha256(_canonical(provided)).hexdigest()


def _canonical(value: Any) -> bytes:  # noqa: ANN401  any JSON value
    if isinstance(value, dict):
        # The hash must not depend on the order of keys.
        parts = [to_json(key) + b":" + _canonical(value[key]) for key in sorted(value)]
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(_canonical, value)) + b"]"
    return to_json(value)

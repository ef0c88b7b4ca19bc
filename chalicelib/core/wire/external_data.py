"""What a program keeps with a record: the record's id in its own system, and metadata (ADR 113)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.lists import NO_ARGUMENT
from chalicelib.core.wire.schema import optional, printable

MAX_EXTERNAL_ID = 100
MAX_METADATA_KEYS = 20
MAX_METADATA_BYTES = 2048
"""Size limit of the keys and values of a record's metadata together, in UTF-8."""

ExternalId = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_EXTERNAL_ID),
    AfterValidator(printable),
]
Key = Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(printable)]
Value = Annotated[str, StringConstraints(max_length=500)]

# Input: a field of a new record and of its changes, and a filter of a list. Tools omit them,
# because a model has no system of its own.
NewExternalId = Annotated[ExternalId | None, NO_ARGUMENT]
EXTERNAL_ID = optional("Id in your system, unique among the workspace's records of this kind.")
NewMetadata = Annotated[
    Annotated[dict[Key, Value | None], Field(max_length=MAX_METADATA_KEYS)] | None, NO_ARGUMENT
]
METADATA = optional("Your own values, merged by key; null or an empty string removes a key.")
BY_EXTERNAL_ID = optional("Only the record with this id in your system.")

# Output.
EXTERNAL_ID_OUT = Field(description="Id in the system of the program that made it, or null.")
Metadata = Annotated[dict[str, str], BeforeValidator(lambda stored: stored or {})]
METADATA_OUT = Field(description="Values that programs keep with it.")


def merge_metadata(values: dict[str, Any], stored: Mapping[str, str] | None = None) -> None:
    """Replace changes of metadata among a record's new values by the metadata to store.

    Raises ValidationError if the metadata would have too many keys or bytes.
    """
    if "metadata" not in values:
        return
    changes = values["metadata"]
    merged = {} if changes is None else {**(stored or {}), **changes}
    merged = {key: value for key, value in merged.items() if value}
    if len(merged) > MAX_METADATA_KEYS:
        message = f"expected at most {MAX_METADATA_KEYS} keys, stored ones included, received more"
        raise ValidationError.of("metadata", message=message, key="too_long")
    size = sum(len(text.encode()) for pair in merged.items() for text in pair)
    if size > MAX_METADATA_BYTES:
        message = (
            f"expected at most {MAX_METADATA_BYTES} bytes, stored values included, received {size}"
        )
        raise ValidationError.of("metadata", message=message, key="too_large")
    values["metadata"] = merged or None

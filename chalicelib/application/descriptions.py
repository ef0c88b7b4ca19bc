"""Cut long descriptions in lists. An update refuses to store a cut description."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.schema import Wire
from chalicelib.lib import shortening

MAX_LISTED = 500  # characters of a description in a list
# Records on a page with whole descriptions: twenty of 20,000 characters fit into a response.
MAX_FULL = 20

Descriptions = Literal["short", "full"]
# Describes the field ``description_truncated`` in records.
TRUNCATED = "Whether the description is cut, as in lists."

R = TypeVar("R")
W = TypeVar("W", bound=Wire)


def check_size(descriptions: Descriptions | None, size: int) -> None:
    """Raise ValidationError for a page of whole descriptions above ``MAX_FULL`` records."""
    if descriptions == "full" and size > MAX_FULL:
        msg = f"expected at most {MAX_FULL} when descriptions is full, received number {size}"
        raise ValidationError.of("size", message=msg, key="too_large")


def shortened(
    ctx: Context, records: Iterable[R], form: Callable[..., W], *, noun: str, remedy: str
) -> list[W]:
    """Return the wire forms of listed records. Long descriptions are cut, with a warning.

    ``form`` receives a record, ``description`` and ``description_truncated``. ``remedy`` explains
    how to get a whole text.
    """
    summaries, cut = [], 0
    for record in records:
        text = getattr(record, "description", None) or ""
        overrides: dict[str, Any] = {}
        if len(text) > MAX_LISTED:
            cut += 1
            overrides = {
                "description": shortening.truncate(text, MAX_LISTED),
                "description_truncated": True,
            }
        summaries.append(form(record, **overrides))
    if cut:
        ctx.warn(
            f"The description of {cut} {noun}(s) is shortened to {MAX_LISTED} characters. To "
            f"read it whole, {remedy}.",
            code=WarningCode.DESCRIPTIONS_SHORTENED,
            count=cut,
        )
    return summaries


def require_whole(
    new_text: str | None,
    *,
    stored_text: str | None,
    field: str = "description",
    length: int = MAX_LISTED,
) -> None:
    """Raise ValidationError for the cut form that a list returned, to keep the rest of the text."""
    if shortening.is_truncated(new_text, stored_value=stored_text, lengths=(length,)):
        raise cut_error(field)


def cut_error(field: str) -> ValidationError:
    """Return the error for a value that a list has cut."""
    return ValidationError.of(
        field,
        message=(
            "expected the whole value, received the shortened one from a list. Read the record to "
            "get the whole value, or omit the field to keep it."
        ),
        key="shortened",
    )

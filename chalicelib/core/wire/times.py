"""Times as callers send them: moments, calendar days, and either of them."""

import re
from datetime import UTC, date, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.core.wire.schema import DOCUMENT


def _moment(value: object) -> object:
    """Read ISO 8601; without an offset it is UTC."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError(
            "iso_8601", "expected ISO 8601, such as 2030-01-31T12:00:00Z"
        ) from None


Moment = Annotated[datetime, BeforeValidator(_moment)]
"""A moment as callers give it."""


_YEARS = range(1971, 3000)
"""Of times that callers give: whatever time zone they are read in, ids can hold them."""
_IN_YEARS = {
    DOCUMENT: {
        "pattern": "^(19(7[1-9]|[89][0-9])|2[0-9]{3})",
        "x-pattern-name": "from 1971 to 2999",
    }
}


_SPACED_OFFSET = re.compile(r"(\S+[T ]\S+) ([0-9]{2}:?[0-9]{2})")
"""A time whose offset lost its plus sign, as in a query that did not escape it."""


def _iso_as(kind: type[date], value: object) -> date | None:
    """Read ISO 8601 as a date, or as a time; None if it is none."""
    if not isinstance(value, str):
        return None
    if spaced := _SPACED_OFFSET.fullmatch(value):
        value = f"{spaced[1]}+{spaced[2]}"
    try:
        found = kind.fromisoformat(value)
    except ValueError:
        return None
    return found if found.year in _YEARS else None


def _day(value: object) -> date:
    if day := _iso_as(date, value):
        return day
    raise PydanticCustomError("date", "expected a date such as 2030-01-31")


def _when(value: object) -> date:
    if when := _iso_as(date, value) or _iso_as(datetime, value):
        return when
    raise PydanticCustomError(
        "iso_8601", "expected a date such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z"
    )


_ISO = PlainSerializer(lambda when: when.isoformat(), return_type=str, when_used="json")
"""Said, because pydantic takes what a ``PlainValidator`` returns for what it is to be in JSON.

So a fingerprint of the input distinguishes a time from its date.
"""
Day = Annotated[
    date,
    PlainValidator(_day),
    _ISO,
    WithJsonSchema({"type": "string", "format": "date", **_IN_YEARS}),
]
"""A calendar day."""
When = Annotated[date, PlainValidator(_when), _ISO, WithJsonSchema({"type": "string", **_IN_YEARS})]
"""A day, or a ``datetime`` that may lack its offset; ``clock.moment_of`` says which moment."""

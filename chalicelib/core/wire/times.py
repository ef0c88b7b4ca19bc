"""Field types for moments and calendar days in requests."""

import re
from datetime import UTC, date, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.core.wire.schema import OPENAPI_ONLY, RECEIVED

_YEARS = range(1971, 3000)
"""Years that callers may send. Ids can represent them in every time zone, and sums do not overflow.
"""
_IN_YEARS = {
    OPENAPI_ONLY: {
        "pattern": "^(19(7[1-9]|[89][0-9])|2[0-9]{3})",
        "x-pattern-name": "from 1971 to 2999",
    }
}


_SPACED_OFFSET = re.compile(r"([0-9W-]+[T ]\S+) ([0-9]{2}:?[0-9]{2})")
"""A time whose offset lost its plus sign, as in a query string without escaping."""


def _iso_as(kind: type[date], value: object) -> date | None:
    """Parse ISO 8601 as a date or a time, or return None.

    Raises:
        PydanticCustomError: the year is out of bounds.
    """
    if not isinstance(value, str):
        return None
    if spaced := _SPACED_OFFSET.fullmatch(value):
        value = f"{spaced[1]}+{spaced[2]}"
    try:
        moment = kind.fromisoformat(value)
    except ValueError:
        return None
    if moment.year in _YEARS:
        return moment
    raise PydanticCustomError(
        "year",
        "expected a year from 1971 to 2999, received {year}",
        {"year": moment.year, RECEIVED: True},
    )


def find_moment(text: str) -> datetime | None:
    """Return the moment of a time with an offset, or None for anything else.

    Every text of a caller that is a time, and no field of a model, is parsed here.
    """
    try:
        moment = _iso_as(datetime, text)
    except PydanticCustomError:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return None
    return moment.astimezone(UTC)


def _moment(value: object) -> object:
    """Parse ISO 8601. A time without an offset is UTC."""
    if not isinstance(value, str):
        return value
    moment = _iso_as(datetime, value)
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    raise PydanticCustomError("iso_8601", "expected ISO 8601, such as 2030-01-31T12:00:00Z")


Moment = Annotated[datetime, BeforeValidator(_moment)]
"""A moment in a request."""


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
"""An explicit serializer, because pydantic otherwise serializes the validator's return type.

Because of the serializer, the fingerprint of an input distinguishes a time from its date.
"""
Day = Annotated[
    date,
    PlainValidator(_day),
    _ISO,
    WithJsonSchema({"type": "string", "format": "date", **_IN_YEARS}),
]
"""A calendar day of bookings, hours and statistics."""


def _any_date(value: object) -> date:
    if isinstance(value, date):  # of a row; JSON has none
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise PydanticCustomError("date", "expected a date such as 2030-01-31") from None


AnyDate = Annotated[
    date,
    PlainValidator(_any_date),
    _ISO,
    WithJsonSchema({"type": "string", "format": "date"}),
]
"""A date of any year in requests and responses, such as a date of birth.

A row has it as ``DateAttribute``.
"""
When = Annotated[date, PlainValidator(_when), _ISO, WithJsonSchema({"type": "string", **_IN_YEARS})]
"""A day, or a ``datetime`` that may lack an offset. ``clock.moment_of`` returns its moment."""

"""Pydantic field types for contact details, notes and tags."""

from datetime import date, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.core import clock
from chalicelib.core.text import clean_typed
from chalicelib.core.wire.schema import Pattern, printable
from chalicelib.core.wire.times import AnyDate
from chalicelib.lib import emails, phones

MAX_NAME = 200
FIRST_BIRTHDAY = date(1900, 1, 1)


def _email(text: str) -> str:
    try:
        return emails.normalize_email(text)
    except ValueError as error:
        raise PydanticCustomError(
            "email", "{reason}", {"reason": str(error), "received": True}
        ) from None


def _birthday(day: date) -> date:
    # A day may have begun in a zone that is ahead of UTC.
    latest = (clock.now() + timedelta(hours=14)).date()
    if not FIRST_BIRTHDAY <= day <= latest:
        raise PydanticCustomError(
            "birthday", "expected a date from 1900-01-01 until today, such as 1985-12-24"
        )
    return day


def _country(code: str) -> str:
    if not phones.has_number_plan(code):
        raise PydanticCustomError("country", "expected the ISO 3166 code of a country, such as RU")
    return code


def _drop_duplicates(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


# An e-mail address as entered: validated, without invisible characters.
Email = Annotated[str, StringConstraints(max_length=320), AfterValidator(_email)]
PersonName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME),
    AfterValidator(printable),
]
# A phone number in any spelling, with or without words. Invisible characters are removed.
PhoneText = Annotated[
    str,
    BeforeValidator(lambda text: clean_typed(text) if isinstance(text, str) else text),
    StringConstraints(min_length=1, max_length=phones.MAX_CHARACTERS),
    AfterValidator(printable),
]
# An ISO 3166 code.
Country = Annotated[
    str, Pattern("[A-Z]{2}", "two capital letters, such as RU"), AfterValidator(_country)
]
Birthday = Annotated[AnyDate, AfterValidator(_birthday)]
Notes = Annotated[str, StringConstraints(max_length=5000)]
Tag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=50),
    AfterValidator(printable),
]
Tags = Annotated[list[Tag], Field(max_length=20), AfterValidator(_drop_duplicates)]

"""Phone numbers: one form of each, whatever the spelling, by which people are found.

E.164, and behind it the extension, which is part of the identity: ``+74951234567;ext=12`` (RFC
3966). Spellings are read with Google's number plans, by the country of the workspace.
"""

import re
from collections.abc import Iterator

MAX_CHARACTERS = 80
"""A longer text is no phone number, whatever it contains."""
_NORMAL = re.compile(r"\+[0-9]{5,15}(;ext=[0-9]{1,20})?")
_LEAST_DIGITS = 10
"""Of a number without its plus that is read as an international one."""
_INTERNAL = re.compile(
    r"[\s,;]*\(?\b(?:вн|внутр|внутренний|добав|добавочный)\b\.?:?\s*(?=\d)", re.IGNORECASE
)
_SEVERAL = re.compile(r"[,;]\s*(?=[+8(])|\s+или\s+|\s+or\s+", re.IGNORECASE)


def has_number_plan(country: str) -> bool:
    """Whether numbers can be read as national ones of a country (ISO 3166 code)."""
    import phonenumbers  # noqa: PLC0415  as in ``find_phone``

    return country in phonenumbers.SUPPORTED_REGIONS


def find_phone(text: str, country: str) -> str | None:
    """Return the number that a text is, or None if it is none.

    Args:
        text: as somebody wrote it; of several numbers, the first is taken.
        country: ISO 3166 code of the country whose national numbers are meant.
    """
    import phonenumbers  # noqa: PLC0415  a tenth of a second that other calls do not pay

    possible: str | None = None
    for spelling in _readings(text):
        try:
            number = phonenumbers.parse(spelling, country)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return _normal(number)
        reason = phonenumbers.is_possible_number_with_reason(number)
        if possible is None and reason == phonenumbers.ValidationResult.IS_POSSIBLE:
            possible = _normal(number)
    return possible


def _readings(text: str) -> Iterator[str]:
    """Yield the text as it stands, and as people mean it who leave out or misplace the plus."""
    first = _SEVERAL.split(text.strip())[0]
    spelling = _INTERNAL.sub(" доб. ", first)
    if not spelling or len(spelling) > MAX_CHARACTERS:
        return
    yield spelling
    bare = spelling.lstrip("+ ")
    if spelling.startswith("+"):
        yield bare
    elif bare.startswith("00"):
        yield f"+{bare[2:]}"
    elif sum(character.isdecimal() for character in bare) > _LEAST_DIGITS:
        yield f"+{bare}"


def _normal(number: object) -> str:
    from phonenumbers import PhoneNumber, PhoneNumberFormat, format_number  # noqa: PLC0415  as above

    assert isinstance(number, PhoneNumber)  # noqa: S101  for the type checker
    e164 = format_number(number, PhoneNumberFormat.E164)
    return f"{e164};ext={number.extension}" if number.extension else e164


_MAY_HOLD_ONE = re.compile(r"(?:[0-9][\s().\u2013-]*){7}")
"""Digits enough for a number; texts without them do not load the number plans."""


def phones_in(text: str, country: str) -> Iterator[str]:
    """Yield the numbers within a text, in their normal forms.

    Only what the number plans call valid: a text holds other numbers, too.
    """
    if not _MAY_HOLD_ONE.search(text):
        return
    import phonenumbers  # noqa: PLC0415  as above

    for match in phonenumbers.PhoneNumberMatcher(text, country):
        yield _normal(match.number)


_RUN = re.compile(r"\+?(?<![0-9])[0-9]{10,15}(?![0-9])")


def every_phone_in(text: str, country: str) -> Iterator[str]:
    """Yield all that may be numbers within a text, in their normal forms; some may come twice.

    Besides the valid ones, each run of digits that alone is a number: beside other digits, as in
    ``2x 89161234567``, it is not recognised as one.
    """
    yield from phones_in(text, country)
    for run in _RUN.findall(text):
        if number := find_phone(run, country):
            yield number


def first_phone_in(text: str, country: str) -> str | None:
    """Return the first number within a text, in its normal form, or None."""
    return next(phones_in(text, country), None)


def is_number(text: str | None) -> bool:
    """Whether a text is a number in its normal form, rather than as somebody wrote it."""
    return text is not None and _NORMAL.fullmatch(text) is not None


_DIALLED = re.compile(r"[+0-9][0-9\s()./\-\u2013]*")
_NOT_DIGITS = re.compile(r"[^0-9]")
_LEAST_SEARCHED = 3


def national_digits(number: str) -> str | None:
    """Return a number in its normal form as people of its country dial it: ``84951234567``."""
    import phonenumbers  # noqa: PLC0415  as above

    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return None
    parsed.extension = None
    national = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.NATIONAL)
    return _NOT_DIGITS.sub("", national) or None


def searched(text: str, country: str) -> str:
    """Return what to search numbers for, in their normal form or as dialled, instead of a spelling.

    A whole number is looked for in its normal form, a part of one by its digits; any other text
    stays as it is.
    """
    wanted = text.strip()
    digits = _NOT_DIGITS.sub("", wanted)
    if len(digits) < _LEAST_SEARCHED or not _DIALLED.fullmatch(wanted.lstrip("(")):
        return text
    if len(digits) >= _LEAST_DIGITS and (number := find_phone(wanted, country)):
        return number
    return digits

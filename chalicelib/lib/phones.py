"""Phone numbers in one normal form, used to look up contacts whatever the spelling.

The normal form is E.164. An extension follows it, because it is part of the identity:
``+74951234567;ext=12`` (RFC 3966). Spellings are parsed with Google's number plans for the country
of the workspace.
"""

import re
from collections.abc import Iterator

MAX_CHARACTERS = 80
"""A longer text is never parsed as a phone number."""
_NORMAL_FORM = re.compile(r"\+[0-9]{5,15}(;ext=[0-9]{1,20})?")
_MIN_INTERNATIONAL_DIGITS = 10
"""A number without a plus is parsed as an international one from this many digits on."""
_EXTENSION = re.compile(
    r"[\s,;]*\(?\b(?:вн|внутр|внутренний|добав|добавочный)\b\.?:?\s*(?=\d)", re.IGNORECASE
)
_SEPARATOR = re.compile(r"[,;]\s*(?=[+8(])|\s+или\s+|\s+or\s+", re.IGNORECASE)


def has_number_plan(country: str) -> bool:
    """Whether national numbers of a country (ISO 3166 code) can be parsed."""
    return country in countries()


def countries() -> frozenset[str]:
    """Return the ISO 3166 codes of all countries with a number plan."""
    import phonenumbers  # noqa: PLC0415  as in ``find_phone``

    return frozenset(phonenumbers.SUPPORTED_REGIONS)


def find_phone(text: str, country: str) -> str | None:
    """Return the normal form of a phone number, or None if the text is not one.

    Args:
        text: a number in any spelling; if it contains several numbers, the first one counts.
        country: ISO 3166 code of the country for numbers without a country code.
    """
    import phonenumbers  # noqa: PLC0415  takes a tenth of a second, which other calls avoid

    possible: str | None = None
    for spelling in _spellings(text):
        try:
            number = phonenumbers.parse(spelling, country)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return _normal_form(number)
        reason = phonenumbers.is_possible_number_with_reason(number)
        if possible is None and reason == phonenumbers.ValidationResult.IS_POSSIBLE:
            possible = _normal_form(number)
    return possible


def _spellings(text: str) -> Iterator[str]:
    """Yield the text itself, then with a missing plus added or a wrong plus removed."""
    first = _SEPARATOR.split(text.strip())[0]
    spelling = _EXTENSION.sub(" доб. ", first)
    if not spelling or len(spelling) > MAX_CHARACTERS:
        return
    yield spelling
    bare = spelling.lstrip("+ ")
    if spelling.startswith("+"):
        yield bare
    elif bare.startswith("00"):
        yield f"+{bare[2:]}"
    elif sum(character.isdecimal() for character in bare) > _MIN_INTERNATIONAL_DIGITS:
        yield f"+{bare}"


def _normal_form(number: object) -> str:
    from phonenumbers import PhoneNumber, PhoneNumberFormat, format_number  # noqa: PLC0415  as above

    assert isinstance(number, PhoneNumber)  # noqa: S101  for the type checker
    e164 = format_number(number, PhoneNumberFormat.E164)
    return f"{e164};ext={number.extension}" if number.extension else e164


_MAY_CONTAIN_PHONE = re.compile(r"(?:[0-9][\s().\u2013-]*){7}")
"""Enough digits for a phone number. The number plans are not loaded for other texts."""


def phones_in(text: str, country: str) -> Iterator[str]:
    """Yield the phone numbers in a text, in their normal form.

    Only numbers that are valid in the number plans count, because texts contain other numbers too.
    """
    if not _MAY_CONTAIN_PHONE.search(text):
        return
    import phonenumbers  # noqa: PLC0415  as above

    for match in phonenumbers.PhoneNumberMatcher(text, country):
        yield _normal_form(match.number)


_DIGIT_RUN = re.compile(r"\+?(?<![0-9])[0-9]{10,15}(?![0-9])")


def possible_phones_in(text: str, country: str) -> Iterator[str]:
    """Yield everything in a text that may be a phone number, in its normal form.

    In ``2x 89161234567`` the matcher finds no number because of the first digit. Each run of digits
    is therefore parsed on its own as well. A number may be yielded twice.
    """
    yield from phones_in(text, country)
    for run in _DIGIT_RUN.findall(text):
        if number := find_phone(run, country):
            yield number


def first_phone_in(text: str, country: str) -> str | None:
    """Return the first phone number in a text, in its normal form, or None."""
    return next(phones_in(text, country), None)


def is_number(text: str | None) -> bool:
    """Whether a text is a phone number in its normal form, not in another spelling."""
    return text is not None and _NORMAL_FORM.fullmatch(text) is not None


_PHONE_CHARACTERS = re.compile(r"[+0-9][0-9\s()./\-\u2013]*")
_NOT_DIGITS = re.compile(r"[^0-9]")
_MIN_SEARCH_DIGITS = 3


def national_digits(number: str) -> str | None:
    """Return the digits to dial inside the number's own country: ``84951234567``."""
    import phonenumbers  # noqa: PLC0415  as above

    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return None
    parsed.extension = None
    national = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.NATIONAL)
    return _NOT_DIGITS.sub("", national) or None


def search_term(text: str, country: str) -> str:
    """Return the term to search stored phone numbers for.

    A whole number becomes its normal form, a part of a number its digits. Any other text is
    returned unchanged.
    """
    spelling = text.strip()
    digits = _NOT_DIGITS.sub("", spelling)
    if len(digits) < _MIN_SEARCH_DIGITS or not _PHONE_CHARACTERS.fullmatch(spelling.lstrip("(")):
        return text
    if len(digits) >= _MIN_INTERNATIONAL_DIGITS and (number := find_phone(spelling, country)):
        return number
    return digits

"""Phone numbers in one normal form (E.164), to look up contacts whatever the spelling."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any

from chalicelib.core.text import clean_digits

MAX_CHARACTERS = 80  # of a string that is parsed as a phone number
# E.164. An extension follows it, because it is part of the identity: ``+74951234567;ext=12`` (RFC
# 3966). Spellings are parsed with Google's number plans for the country of the workspace.
_NORMAL_FORM = re.compile(r"\+[0-9]{5,15}(;ext=[0-9]{1,20})?")
_MIN_INTERNATIONAL_DIGITS = 10  # A number without a plus is international from this many digits on.
_EXTENSION = re.compile(
    r"(?<![\s,;])[\s,;]*\(?\b(?:вн|внутр|внутренний|доб|добав|добавочный|ext)\b\.?:?\s*(?=\d)",
    re.IGNORECASE,
)
_FORMER_MOBILE_PREFIX = re.compile(
    r"(?:00[\s().-]*)?(52)[\s().-]*1(?=(?:[\s().-]*[0-9]){10}(?![0-9]))"
)
"""The 1 of mobile numbers in Mexico, which is not dialled since 2019 and is still printed."""
# The digits of a number with what may stand between them, and an extension.
_RUN = re.compile(
    r"(?<![+(])[+(]*[0-9](?:[\s().-]*[0-9])*"
    r"(?:[\s,;]*\(?(?:доб\.?|ext\.?|x|#|;ext=)\s*[0-9]{1,7}(?![0-9]))?",
    re.IGNORECASE,
)


def has_number_plan(country: str) -> bool:
    """Whether national numbers of a country (ISO 3166 code) can be parsed."""
    return country in countries()


def countries() -> frozenset[str]:
    """Return the ISO 3166 codes of all countries with a number plan."""
    import phonenumbers

    return frozenset(phonenumbers.SUPPORTED_REGIONS)


def find_phone(text: str, *, country: str) -> str | None:
    """Return the normal form of the first valid phone number in what a user entered, or None.

    Words may stand next to the number, such as a name or a messenger. Letters never count as
    digits. If there are several numbers, the first valid one counts. A number that no plan has may
    be new if it begins with a plus. Without one it may be a number of another country, written as
    it is dialled there, so it is no number.

    Args:
        text: what the user entered.
        country: ISO 3166 code of the country for numbers without a country code.
    """
    import phonenumbers

    spelling = clean_digits(text)
    if not spelling or len(spelling) > MAX_CHARACTERS:
        return None
    spelling = _EXTENSION.sub(" доб. ", spelling)
    runs = [match[0] for match in _RUN.finditer(spelling)]
    spellings = [spelling for run in runs for spelling in _spellings(run, country)]
    # A part of a number is not taken for a new number.
    is_whole = runs == [spelling] or (len(runs) == 1 and may_contain_phone(spelling))
    may_be_new = runs if is_whole and "+" in runs[0] else []
    return (
        first_phone_in(spelling, country=country)
        or _first_number(phonenumbers.is_valid_number, spellings, country)
        or _first_number(phonenumbers.is_valid_number, chain(*map(_parts, runs)), country)
        or _first_number(_is_possible, may_be_new, country)
    )


def _first_number(
    is_taken: Callable[[Any], bool], spellings: Iterable[str], country: str
) -> str | None:
    from phonenumbers import NumberParseException, parse

    for spelling in spellings:
        with suppress(NumberParseException):
            number = parse(spelling, country)
            if is_taken(number):
                return _normal_form(number)
    return None


def _is_possible(number: Any) -> bool:  # noqa: ANN401  the library's
    from phonenumbers import ValidationResult, is_possible_number_with_reason

    return bool(is_possible_number_with_reason(number) == ValidationResult.IS_POSSIBLE)


def _spellings(run: str, country: str) -> Iterator[str]:
    """Yield the digits themselves, then without what is wrong, or with what is missing.

    A plus may be missing, or stand before a number as it is dialled inside the country. After a
    country code may stand a digit that is not dialled any more, or only inside the country.
    """
    yield run
    bare = run.lstrip("+( ")
    has_plus = "+" in run[: len(run) - len(bare)]
    if match := _FORMER_MOBILE_PREFIX.match(bare):
        yield f"+{match[1]}{bare[match.end() :]}"
    if has_plus:
        if bare.startswith(_trunk_prefix(country) or "+"):
            yield bare
    elif bare.startswith("00"):
        yield f"+{bare[2:]}"
    elif len(_NOT_DIGITS.sub("", bare)) > _MIN_INTERNATIONAL_DIGITS:
        yield f"+{bare}"


def _parts(run: str) -> Iterator[str]:
    # Other digits may directly follow a phone number, such as a second number, an hour or a floor.
    # A plus begins another number.
    groups = run.split()
    starts = 1 if run.startswith("+") else len(groups)
    for length in range(len(groups) - 1, 0, -1):
        for first in range(min(starts, len(groups) - length + 1)):
            part = " ".join(groups[first : first + length])
            if len(_NOT_DIGITS.sub("", part)) >= _MIN_DIGITS_IN_TEXT:
                yield part


def _normal_form(number: object) -> str:
    from phonenumbers import PhoneNumber, PhoneNumberFormat, format_number

    assert isinstance(number, PhoneNumber)  # noqa: S101  for the type checker
    e164 = format_number(number, PhoneNumberFormat.E164)
    return f"{e164};ext={number.extension}" if number.extension else e164


def example(country: str) -> str:
    """Return a mobile number of a country as it is printed, such as ``+7 912 345-67-89``."""
    from phonenumbers import (
        PhoneNumberFormat,
        PhoneNumberType,
        example_number_for_type,
        format_number,
    )

    number = example_number_for_type(country, PhoneNumberType.MOBILE)
    return format_number(number, PhoneNumberFormat.INTERNATIONAL) if number else "+44 7400 123456"


_MIN_DIGITS_IN_TEXT = 7
# Matches enough digits for a phone number. The number plans are not loaded otherwise.
_MAY_CONTAIN_PHONE = re.compile(rf"(?:[0-9][\s().-]*){{{_MIN_DIGITS_IN_TEXT}}}")


@lru_cache(maxsize=1024)
def printed(phone: str) -> str:
    """Return a number as it is printed, ``+7 914 700-12-34``, or another string unchanged."""
    from phonenumbers import NumberParseException, PhoneNumberFormat, format_number, parse

    number, separator, extension = phone.partition(";ext=")
    try:
        text = format_number(parse(number), PhoneNumberFormat.INTERNATIONAL)
    except NumberParseException:
        return phone
    return text + separator + extension


def may_contain_phone(text: str) -> bool:
    """Whether a string has as many digits side by side as the shortest phone numbers."""
    return _MAY_CONTAIN_PHONE.search(clean_digits(text)) is not None


def phones_in(text: str, *, country: str) -> Iterator[str]:
    """Yield the numbers in a string that are valid in the number plans, in their normal form."""
    lines = "\n".join(map(clean_digits, text.splitlines()))
    if not may_contain_phone(lines):
        return
    import phonenumbers

    # Prose contains other numbers, too.
    for match in phonenumbers.PhoneNumberMatcher(lines, country):
        yield _normal_form(match.number)


_DIGIT_RUN = re.compile(r"\+?(?<![0-9])[0-9]{10,15}(?![0-9])")


def possible_phones_in(text: str, *, country: str) -> Iterator[str]:
    """Yield what may be a phone number in a string, in its normal form, perhaps more than once."""
    # In ``2x 89161234567`` the matcher finds no number because of the first digit. Each run of
    # digits is therefore parsed on its own as well.
    yield from phones_in(text, country=country)
    for run in _DIGIT_RUN.findall(clean_digits(text)):
        if number := find_phone(run, country=country):
            yield number


def first_phone_in(text: str, *, country: str) -> str | None:
    """Return the first phone number in a string, in its normal form, or None."""
    return next(phones_in(text, country=country), None)


def is_number(text: str | None) -> bool:
    """Whether a string is a phone number in its normal form, not in another spelling."""
    return text is not None and _NORMAL_FORM.fullmatch(text) is not None


def mobile_country(phone: str) -> str | None:
    """Return the ISO 3166 code of the country of a mobile number in its normal form, or None.

    Some countries, such as the United States, have mobile numbers and others in one range.

    >>> mobile_country("+79147001234"), mobile_country("+74951234567")
    ('RU', None)
    """
    from phonenumbers import (
        NumberParseException,
        PhoneNumberType,
        is_valid_number,
        number_type,
        parse,
        region_code_for_number,
    )

    if not is_number(phone) or ";" in phone:
        return None
    try:
        number = parse(phone)
    except NumberParseException:
        return None
    types = {PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE}
    if not is_valid_number(number) or number_type(number) not in types:
        return None
    return region_code_for_number(number)


_PHONE_CHARACTERS = re.compile(r"[+0-9][0-9 ()./-]*")
_DATE_OR_AMOUNT = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{2,4}|[0-9]+\.[0-9]{1,2}"
)
_NOT_DIGITS = re.compile(r"[^0-9]")
_MIN_SEARCH_DIGITS = 3
_MIN_DIGITS_WITH_PREFIX = 5  # Fewer digits are more often the end of a number than its beginning.


def national_digits(number: str) -> str | None:
    """Return the digits to dial inside the number's own country, such as ``84951234567``."""
    import phonenumbers

    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return None
    # The national format would add the extension to the digits.
    parsed.extension = None
    national = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.NATIONAL)
    return _NOT_DIGITS.sub("", national) or None


def search_term(text: str | None, country: Callable[[], str]) -> str | None:
    """Return the term to search stored phone numbers for, or other text unchanged."""
    spelling = clean_digits(text or "")
    digits = _NOT_DIGITS.sub("", spelling)
    is_phone = _PHONE_CHARACTERS.fullmatch(spelling.lstrip("("))
    if len(digits) < _MIN_SEARCH_DIGITS or not is_phone or _DATE_OR_AMOUNT.fullmatch(spelling):
        return text
    # The country of ``find_phone`` is asked for numbers only.
    where = country()
    if len(digits) >= _MIN_INTERNATIONAL_DIGITS and (number := find_phone(spelling, country=where)):
        return number
    if len(digits) < _MIN_DIGITS_WITH_PREFIX or spelling.startswith("+"):
        return digits
    # The normal form does not have the prefix that is dialled inside the country (``8 921 765``).
    return digits.removeprefix(_trunk_prefix(where))


def searched_text(phone: str | None, *, entered: str | None) -> str:
    """Return what a search finds a phone by: the number, or else what was entered.

    What was entered has its digits as well, also without the first one, which may be dialled inside
    a country only. Terms of a search have neither spaces nor that digit.
    """
    if phone or not entered:
        return phone or ""
    digits = _NOT_DIGITS.sub("", clean_digits(entered))
    return f"{entered} {digits} {digits[1:]}"


def _trunk_prefix(country: str) -> str:
    from phonenumbers import PhoneMetadata

    metadata = PhoneMetadata.metadata_for_region(country)
    return (metadata and metadata.national_prefix) or ""

"""Tests of spellings of phone numbers."""

import pytest

from chalicelib.lib import phones
from chalicelib.lib.phones import countries, example, find_phone, is_number

MOSCOW = "+74951234567"
MOBILE = "+79161234567"
IN_RUSSIA = {
    "+74951234567": MOSCOW,
    "+7 495 123 45 67": MOSCOW,
    "+7 (495) 123-45-67": MOSCOW,
    "8 (495) 123-45-67": MOSCOW,
    "84951234567": MOSCOW,
    "8-495-123-45-67": MOSCOW,
    "8.495.123.45.67": MOSCOW,
    "8 495 1234567": MOSCOW,
    "74951234567": MOSCOW,
    "7 495 123-45-67": MOSCOW,
    "4951234567": MOSCOW,
    "(495) 123-45-67": MOSCOW,
    "495 123 45 67": MOSCOW,
    "  +7\u00a0495\u00a0123\u201145\u201167  ": MOSCOW,
    "007 495 123 45 67": MOSCOW,
    "8 10 7 495 123 45 67": MOSCOW,
    "+8 916 123-45-67": MOBILE,
    "тел. +7 495 123-45-67": MOSCOW,
    "tel:+7-495-123-45-67": MOSCOW,
    "８４９５１２３４５６７": MOSCOW,
    "+7 495 123-45-67, +7 916 123-45-67": MOSCOW,
    "8 495 123-45-67 или 8 916 123-45-67": MOSCOW,
    "+7 916 123-45-67": MOBILE,
    "8(916)1234567": MOBILE,
    "9161234567": MOBILE,
    "+7 495 123-45-67 доб. 12": MOSCOW + ";ext=12",
    "+7 495 123-45-67 доб 12": MOSCOW + ";ext=12",
    "+7 495 123-45-67 (доб. 12)": MOSCOW + ";ext=12",
    "8 495 123-45-67 вн. 12": MOSCOW + ";ext=12",
    "8 495 123-45-67, внутр. 12": MOSCOW + ";ext=12",
    "+7 495 123 45 67 ext. 12": MOSCOW + ";ext=12",
    "+7 495 123 45 67 x12": MOSCOW + ";ext=12",
    "+7 495 123-45-67 #12": MOSCOW + ";ext=12",
    "+7 495 123-45-67;ext=12": MOSCOW + ";ext=12",
    "8 800 555-35-35": "+78005553535",
    "+375 29 123-45-67": "+375291234567",
    "+49 30 901820": "+4930901820",
    "0049 30 901820": "+4930901820",
    "380501234567": "+380501234567",
    "+1 (212) 555-0123": "+12125550123",
    "+44 20 7946 0958": "+442079460958",
    "+996 555 123456": "+996555123456",
    "+39 06 698 12345": "+390669812345",
    "+52 1 55 1234 5678": "+525512345678",
    "+52 (1) 811 987 8677": "+528119878677",
    "+5215512345678": "+525512345678",
    "5215512345678": "+525512345678",
    "00 52 1 55 1234 5678": "+525512345678",
    "+52 55 1234 5678": "+525512345678",
    "+54 9 11 2345-6789": "+5491123456789",
    "+54 11 15 2345-6789": "+5491123456789",
    "+55 (0)11 96123-4567": "+5511961234567",
    "+33 (0)6 12 34 56 78": "+33612345678",
    "+7 (8) 916 123-45-67": MOBILE,
    "+7 000 000-00-00": "+70000000000",
}
ELSEWHERE = {
    ("US", "(212) 555-0123"): "+12125550123",
    ("US", "1-212-555-0123"): "+12125550123",
    ("US", "+7 495 123 45 67"): MOSCOW,
    ("DE", "030 901820"): "+4930901820",
    ("GB", "020 7946 0958"): "+442079460958",
    ("BY", "8 029 123-45-67"): "+375291234567",
    ("KZ", "8 701 234 56 78"): "+77012345678",
    ("FR", "06 12 34 56 78"): "+33612345678",
    ("FR", "+0612345678"): "+33612345678",
    ("MX", "55 1234 5678"): "+525512345678",
    ("AR", "011 15 2345-6789"): "+5491123456789",
    ("BR", "0 15 11 96123-4567"): "+5511961234567",
    ("IT", "06 698 12345"): "+390669812345",
    ("IT", "320 123 4567"): "+393201234567",
    ("UA", "050 123 45 67"): "+380501234567",
}
DIALLED_ELSEWHERE = [
    "8 029 123-45-67",
    "8 (029) 123-45-67, Минск",
    "029 123-45-67",
    "06 12 34 56 78",
    "8 050 123 45 67",
    "0171 1234567",
    "0 532 123 45 67",
    "091 12 34 56",
    "8 903 111 22 333",
    "7 903 111 22 3",
    "+7 999 000 00 0",
]
"""Numbers that no plan of Russia has, such as numbers as they are dialled in other countries."""
NO_NUMBERS = ["", " ", "-", "позвоните мне", "12345", "2027-01-15", "ada@example.com", "7" * 40]


@pytest.mark.parametrize("text", IN_RUSSIA)
def test_all_spellings_of_a_number_have_one_form(text: str) -> None:
    assert find_phone(text, country="RU") == IN_RUSSIA[text]


@pytest.mark.parametrize(("country", "text"), ELSEWHERE)
def test_national_numbers_are_read_by_the_country(country: str, text: str) -> None:
    assert find_phone(text, country=country) == ELSEWHERE[country, text]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_an_invalid_number_is_rejected(text: str) -> None:
    assert find_phone(text, country="RU") is None


@pytest.mark.parametrize("text", DIALLED_ELSEWHERE)
def test_number_without_a_plus_must_be_valid_in_the_country(text: str) -> None:
    assert find_phone(text, country="RU") is None


@pytest.mark.parametrize("country", sorted(countries()))
def test_the_example_of_a_country_is_a_number(country: str) -> None:
    assert find_phone(example(country), country=country) is not None


@pytest.mark.parametrize("number", sorted({*IN_RUSSIA.values(), *ELSEWHERE.values()}))
def test_the_normal_form_of_a_number_reads_as_itself(number: str) -> None:
    assert find_phone(number, country="US") == number
    assert is_number(number)
    assert not is_number(f"{number}, please")


@pytest.mark.parametrize(
    ("phone", "country"),
    [
        ("+79147001234", "RU"),
        ("+77011234567", "KZ"),
        ("+447400123456", "GB"),
        ("+375291234567", "BY"),
        ("+12125550123", "US"),  # Mobile numbers share the range with others.
        ("+74951234567", None),
        ("+78001234567", None),
        ("+442071838750", None),
        ("+79147001234;ext=12", None),
        ("89147001234", None),
        ("+7914700123", None),
        ("", None),
    ],
)
def test_the_country_of_a_mobile_number(phone: str, country: str | None) -> None:
    assert phones.mobile_country(phone) == country


def test_the_example_of_each_country_is_a_mobile_number() -> None:
    import phonenumbers

    wrong = set()
    for country in phones.countries():
        kind = phonenumbers.PhoneNumberType.MOBILE
        if number := phonenumbers.example_number_for_type(country, kind):
            e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
            if phones.mobile_country(e164) != country:
                wrong.add(country)
    # These countries share ranges of numbers with another one, which is named instead.
    assert wrong <= {
        "AX",
        "BL",
        "CC",
        "CX",
        "EH",
        "GF",
        "GG",
        "GP",
        "IM",
        "JE",
        "MF",
        "SJ",
        "VA",
        "YT",
    }

"""E-mail addresses and phone numbers in free text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib.emails import first_email_in
from chalicelib.lib.phones import first_phone_in


@pytest.mark.parametrize(
    "text",
    [
        "ada@example.com",
        "Write to ada@Example.com.",
        "Write to \u200bada@example.com\ufeff",
        "<ada@example.com>, please",
        "почта:ada@example.com!",
        "me@ or ada@example.com?",
    ],
)
def test_an_address_is_found(text: str) -> None:
    assert first_email_in(text) == "ada@example.com"


@pytest.mark.parametrize("text", ["", "@ada", "a@b", "ada@example", "user@@example.com", "@" * 99])
def test_no_address_is_found_in_similar_text(text: str) -> None:
    assert first_email_in(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "8 (495) 123-45-67",
        "мой телефон +7 495 123 45 67, звоните",
        "Call 84951234567!",
        "between 10 and 18: +7-495-123-45-67",
        "\u202a+7\u202f495\u2009123\u201145\u221267\u202c or so",
    ],
)
def test_a_number_is_found(text: str) -> None:
    assert first_phone_in(text, country="RU") == "+74951234567"


@pytest.mark.parametrize(
    "text",
    ["", "10 000 000", "2027-01-15 12:30", "1234567", "ISBN 978-3-16-148410-0", "3.1415926"],
)
def test_no_number_is_found_in_similar_text(text: str) -> None:
    assert first_phone_in(text, country="RU") is None


@given(st.text(alphabet="a1@.+- ()\u2013@x,", max_size=80))
def test_any_text_is_searched_without_an_error(text: str) -> None:
    first_email_in(text)
    first_phone_in(text, country="RU")

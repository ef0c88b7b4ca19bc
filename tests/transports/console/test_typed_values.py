"""Amounts and lengths of time as users type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.money import MAX_KOPECKS
from chalicelib.transports.console import typed_values
from chalicelib.transports.web.languages import LANGUAGES


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        (" 90 мин ", 90),
        ("1:30", 90),
        ("1 ч 30 мин", 90),
        ("1 ч 30", 90),
        ("1,5 ч", 90),
        ("1.5 h", 90),
        ("1h30m", 90),
        ("2 дня 3 часа", 3_060),
        ("1 day", 1_440),
        ("0", 0),
        ("", None),
    ],
)
def test_a_length_of_time_is_read_in_any_usual_spelling(text: str, minutes: int | None) -> None:
    assert typed_values.minutes("durationMin", text) == minutes


@pytest.mark.parametrize("text", ["полчаса", "-5", "1:75", "1,33 мин", "h", "30 мин 1 ч", "1e3"])
def test_another_text_is_no_length_of_time(text: str) -> None:
    with pytest.raises(ValidationError, match="durationMin"):
        typed_values.minutes("durationMin", text)


@pytest.mark.parametrize("language", LANGUAGES)
@given(minutes=st.integers(0, 60_000))
def test_a_length_is_shown_as_it_is_read(language: str, minutes: int) -> None:
    shown_length = typed_values.length(language, minutes)  # type: ignore[arg-type]  # a language
    assert typed_values.minutes("x", shown_length) == minutes


@pytest.mark.parametrize(
    ("text", "kopecks"),
    [("1 500,50 ₽", 150_050), ("1500 руб.", 150_000), ("99.9", 9_990), ("0", 0), ("", None)],
)
def test_an_amount_is_read_in_rubles(text: str, kopecks: int | None) -> None:
    assert typed_values.kopecks("price", text) == kopecks


@pytest.mark.parametrize("text", ["1,5 тыс", "-1", "1.234", "ten", "1 000 000 000 001"])
def test_another_text_is_no_amount(text: str) -> None:
    with pytest.raises(ValidationError, match="price"):
        typed_values.kopecks("price", text)


@given(st.integers(0, MAX_KOPECKS))
def test_an_amount_is_shown_as_it_is_read(kopecks: int) -> None:
    assert typed_values.kopecks("price", typed_values.plain_amount(kopecks, "RUB")) == kopecks


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("1500", "JPY", 1_500),
        ("¥1500", "JPY", 1_500),
        ("£12.5", "GBP", 1_250),
        ("12,50 gbp", "GBP", 1_250),
        ("1.5", "KWD", 1_500),
        ("1.505 KWD", "KWD", 1_505),
    ],
)
def test_an_amount_is_read_in_the_currency(text: str, currency: str, amount: int) -> None:
    assert typed_values.amount("price", text, currency) == amount


@pytest.mark.parametrize(
    ("text", "currency"),
    [("12.5", "JPY"), ("1,500", "JPY"), ("1.234", "GBP"), ("1.2345", "KWD"), ("5 ₽", "GBP")],
)
def test_more_decimals_than_the_currency_has_are_refused(text: str, currency: str) -> None:
    with pytest.raises(ValidationError, match="price"):
        typed_values.amount("price", text, currency)


def test_lengths_are_separated_by_commas_that_are_no_decimal_ones() -> None:
    assert typed_values.list_of_minutes("reminders", text="1 д, 1,5 ч; 30") == [1_440, 90, 30]
    assert typed_values.list_of_minutes("reminders", text=" ") == []

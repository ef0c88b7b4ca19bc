"""The currencies that are offered, and how amounts are written in them."""

import pytest
from babel.numbers import get_currency_precision

from chalicelib.lib import currencies, localized, phones
from chalicelib.lib.currencies import DIGITS

# Currencies whose digits in CLDR are not those of ISO 4217.
CLDR_DIFFERS = {
    *("AFN", "ALL", "IQD", "IRR", "KPW", "LAK", "LBP", "MGA", "MMK", "RSD", "SOS", "SYP", "YER"),
}


def test_only_the_known_currencies_have_other_digits_than_babel_says() -> None:
    assert {code for code in DIGITS if get_currency_precision(code) != DIGITS[code]} == CLDR_DIFFERS


def test_each_country_has_a_currency_of_its_own() -> None:
    assert {currencies.of_country(country) for country in phones.countries()} <= DIGITS.keys()
    with_dollars = {code for code in phones.countries() if currencies.of_country(code) == "USD"}
    assert not with_dollars & {"GB", "JP", "RU", "DE", "KW"}


@pytest.mark.parametrize(
    ("amount", "currency", "english", "russian"),
    [
        (123_450, "RUB", "1,234.50 ₽", "1\xa0234,50 ₽"),
        (150_000, "RUB", "1,500 ₽", "1\xa0500 ₽"),
        (1_250, "GBP", "£12.50", "12,50\xa0£"),
        (1_200, "EUR", "€12", "12\xa0€"),
        (1_250, "JPY", "¥1,250", "1\xa0250\xa0¥"),
        (1_250, "KWD", "KWD\xa01.250", "1,250\xa0KWD"),
        (1_250, "IQD", "IQD\xa01.250", "1,250\xa0IQD"),
        (-1_250, "USD", "-$12.50", "-12,50\xa0$"),
        # A sign stands for one currency only.
        (100, "CNY", "CN¥1", "1\xa0CN¥"),
        (100, "CAD", "CA$1", "1\xa0CA$"),
    ],
)
def test_an_amount_has_the_digits_and_the_sign_of_its_currency(
    amount: int, currency: str, english: str, russian: str
) -> None:
    assert localized.money("en", amount, currency) == english
    assert localized.money("ru", amount, currency) == russian


@pytest.mark.parametrize("currency", DIGITS)
def test_every_currency_can_be_shown_in_each_language(currency: str) -> None:
    for language in localized.LANGUAGES:
        text = localized.money(language, 1_001, currency)
        assert text.count(localized.sign(language, currency)) == 1
        # Letters from right to left would turn the line around.
        assert not any("\u0590" <= letter <= "\u08ff" for letter in text)

"""Amounts of money in requests, and the advice for amounts in rubles."""

from typing import Any

import pytest
from pydantic import Field

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.parsing import parse
from chalicelib.core.wire.schema import Wire


class Priced(Wire):
    """A record with a price."""

    price: Kopecks = Field(default=0, description="Price.")


def error_of(price: Any) -> str:
    """Return the message with which a price is refused."""
    with pytest.raises(ValidationError) as refusal:
        parse(Priced, {"price": price})
    (error,) = refusal.value.errors
    assert error.field == "price"
    return error.message


@pytest.mark.parametrize(
    ("price", "kopecks"),
    [
        (199.9, "19990 for 199.9 ₽"),
        (1.005, "101 for 1.005 ₽"),
        ("199.90", "19990 for 199.90 ₽"),
        (" 0,5 ", "50 for 0,5 ₽"),
        ("12,90", "1290 for 12,90 ₽"),
        ("199 ₽", "19900 for 199 ₽"),
        ("1 290 ₽", "129000 for 1 290 ₽"),
        ("1\u00a0290,50 руб.", "129050 for 1\u00a0290,50 руб."),
    ],
)
def test_an_error_about_a_price_in_rubles_states_it_in_kopecks(price: Any, kopecks: str) -> None:
    message = error_of(price)
    assert "integer of kopecks" in message
    assert f"kopecks: {kopecks}" in message


@pytest.mark.parametrize("price", [-1, 10**11 + 1, "cheap", "1290", True, [1], {}, "-5 ₽"])
def test_every_price_error_names_the_unit(price: Any) -> None:
    assert "kopecks" in error_of(price)


@pytest.mark.parametrize("price", ["1e3", "1.5.5", 1e300, -1.5, "999999999999.5"])
def test_a_text_that_is_not_a_price_gets_no_suggestion(price: Any) -> None:
    assert "rubles" not in error_of(price)

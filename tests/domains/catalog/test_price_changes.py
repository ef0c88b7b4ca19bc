"""Percentages of prices, rounded half up to a kopeck without floating-point errors."""

from decimal import Decimal
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.catalog.rules.price_changes import change_by_percent

PRICES = st.integers(0, 10**11)


@pytest.mark.parametrize(
    ("price", "percent", "new_price"),
    [
        (100, 10, 110),
        (100, -10, 90),
        (5, 10, 6),
        (5, -10, 5),
        (15, -10, 14),
        (1, 50, 2),
        (1, -50, 1),
        (1, -51, 0),
        (1000, 0.05, 1001),
        (1000, 0.04, 1000),
        (105, 110, 221),
        (995, 0.1, 996),
        (100, -100, 0),
        (100, -150, 0),
        (0, 1000, 0),
        (10**11, 0.000000001, 10**11 + 1),
    ],
)
def test_prices_change_by_percent(price: int, percent: float, new_price: int) -> None:
    assert change_by_percent(price, percent) == new_price


@given(PRICES, st.decimals(-200, 1000, places=4))
def test_a_price_is_the_exact_share_rounded_half_up(price: int, percent: Decimal) -> None:
    exact = price * (1_000_000 + int(percent * 10_000))
    assert change_by_percent(price, float(percent)) == max(0, floor((exact + 500_000) // 1_000_000))


@given(PRICES, st.floats(-99, 1000))
def test_a_price_never_falls_below_zero_and_zero_percent_keeps_it(
    price: int, percent: float
) -> None:
    assert change_by_percent(price, percent) >= 0
    assert change_by_percent(price, 0) == price

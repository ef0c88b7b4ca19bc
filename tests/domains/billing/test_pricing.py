"""Tests of the cost of a request, and of the output tokens that an amount pays for."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.billing.rules.pricing import (
    LEAST_OUTPUT,
    Prices,
    TokenUsage,
    cost,
    fitting_output,
    least_cost,
)

prices = st.builds(Prices, st.integers(0, 10**7), st.integers(0, 10**7))
tokens = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("price", "used", "kopecks"),
    [
        ((0, 0), (10**6, 10**6), 0),
        ((1, 0), (1, 0), 1),
        ((1, 0), (0, 10**6), 0),
        ((0, 1), (0, 1), 1),
        ((10**6, 0), (1, 0), 1),
        ((10**6, 1), (1, 1), 2),
        ((500_000, 500_000), (1, 1), 1),
        ((30_000, 150_000), (1000, 500), 105),
    ],
)
def test_a_request_is_rounded_up_once(
    price: tuple[int, int], used: tuple[int, int], kopecks: int
) -> None:
    assert cost(Prices(*price), TokenUsage(*used)) == kopecks


@given(prices, st.builds(TokenUsage, tokens, tokens))
def test_a_cost_is_the_exact_sum_rounded_up(price: Prices, used: TokenUsage) -> None:
    exact = Fraction(price.input * used.input_tokens + price.output * used.output_tokens, 10**6)
    assert cost(price, used) == ceil(exact)
    assert (cost(price, used) == 0) == (exact == 0)


@given(prices, tokens, st.integers(1, 10**5), st.integers(0, 10**6))
def test_the_affordable_output_is_the_maximum_that_an_amount_covers(
    price: Prices, prompt: int, limit: int, room: int
) -> None:
    output = fitting_output(price, prompt, max_output_tokens=limit, room=room)
    if output is None:
        assert cost(price, TokenUsage(prompt, min(LEAST_OUTPUT, limit))) > room
        assert least_cost(price, prompt, max_output_tokens=limit) > room
        return
    assert min(LEAST_OUTPUT, limit) <= output <= limit
    assert cost(price, TokenUsage(prompt, output)) <= room
    assert output == limit or cost(price, TokenUsage(prompt, output + 1)) > room


@pytest.mark.parametrize(
    ("price", "prompt", "limit", "room", "output"),
    [
        ((10**6, 10**6), 10, 100, 73, None),
        ((10**6, 10**6), 10, 100, 74, 64),
        ((10**6, 10**6), 10, 100, 109, 99),
        ((10**6, 10**6), 10, 100, 1_000, 100),
        ((10**6, 10**6), 10, 20, 29, None),
        ((10**6, 10**6), 10, 20, 30, 20),
        ((10**6, 0), 10, 100, 9, None),
        ((10**6, 0), 10, 100, 10, 100),
        ((0, 0), 10, 100, 0, 100),
        ((2, 3), 5, 10**6, 1, 333_330),
    ],
)
def test_an_amount_pays_for_at_least_64_output_tokens_or_nothing(
    price: tuple[int, int], prompt: int, limit: int, room: int, output: int | None
) -> None:
    assert fitting_output(Prices(*price), prompt, max_output_tokens=limit, room=room) == output

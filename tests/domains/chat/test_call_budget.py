"""Tests of how the money of a request is divided among the calls to its model."""

import pytest

from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, Prices, TokenUsage
from chalicelib.domains.chat.rules.call_budget import RESULT_TOKENS, CallBudget, planned

PRICES = Prices(input=1_000, output=5_000)
NOTHING = TokenUsage(0, 0)


def test_an_answer_with_tools_is_planned_as_three_calls_whose_input_grows() -> None:
    growth = RESULT_TOKENS + 512
    assert planned(100, max_output_tokens=600) == TokenUsage(
        100 + (100 + growth) + (100 + 2 * growth), 2 * 512 + 600
    )


@pytest.mark.parametrize(
    ("spent", "amount", "output", "expected"),
    [
        (NOTHING, 5, 10_000, 800),
        (TokenUsage(1_000, 100), 5, 10_000, 500),
        (TokenUsage(0, 100), 50, 1_000, 900),
        (TokenUsage(0, 1_000), 50, 1_000, 0),
        (TokenUsage(5_000, 0), 5, 10_000, 0),
        (TokenUsage(4_000, 0), 5, 10_000, 0),
    ],
)
def test_a_final_call_may_use_the_remaining_hold_and_output(
    spent: TokenUsage, amount: int, output: int, expected: int
) -> None:
    assert CallBudget(PRICES, amount, output).final_output(spent, 1_000) == expected


def test_a_free_model_has_the_granted_output() -> None:
    budget = CallBudget(Prices(0, 0), 0, 1_000)
    assert budget.final_output(TokenUsage(9, 100), 50) == 900
    assert budget.output_with_tools(TokenUsage(9, 100), 50, result_tokens=20) == 900 - LEAST_OUTPUT


def test_a_call_with_tools_leaves_the_price_of_one_more_call() -> None:
    # In thousandths of a kopeck: 10,000 held, 500 read, then 500 + 1,000 read and 320 written.
    budget = CallBudget(PRICES, 10, 10_000)
    output = budget.output_with_tools(NOTHING, 500, result_tokens=1_000)
    assert output == (10_000 - 500 - 1_500 - 320) // 6
    spent = TokenUsage(500, output)
    assert budget.final_output(spent, 500 + 1_000 + output) >= LEAST_OUTPUT
    spent_more = TokenUsage(1_000, 200)
    assert (
        budget.output_with_tools(spent_more, 500, result_tokens=1_000)
        == (8_000 - 500 - 1_500 - 320) // 6
    )


@pytest.mark.parametrize(("output", "expected"), [(2 * LEAST_OUTPUT, LEAST_OUTPUT), (127, None)])
def test_a_call_with_tools_needs_the_least_output_twice(output: int, expected: int | None) -> None:
    assert (
        CallBudget(PRICES, 100, output).output_with_tools(NOTHING, 10, result_tokens=10) == expected
    )

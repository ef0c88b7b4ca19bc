"""The estimated cost of a bot's answers."""

import pytest

from chalicelib.domains.bots.rules.answer_costs import rubles_per_thousand


@pytest.mark.parametrize(
    ("input_price", "output_price", "rubles"),
    [(0, 0, 0), (1, 0, 1), (100, 0, 3), (0, 500, 1), (0, 501, 2), (10_000, 40_000, 380)],
)
def test_thousand_answers_cost_3000_input_and_200_output_tokens_each(
    input_price: int, output_price: int, rubles: int
) -> None:
    assert rubles_per_thousand(input_price, output_price=output_price) == rubles

"""Tests of the estimated cost of a bot's messages, and of sets of capabilities."""

import pytest

from chalicelib.domains.bots.rules import Capability, normalize_capabilities, rubles_per_thousand


@pytest.mark.parametrize(
    ("input_price", "output_price", "rubles"),
    [(0, 0, 0), (1, 0, 1), (100, 0, 3), (0, 500, 1), (0, 501, 2), (10_000, 40_000, 380)],
)
def test_thousand_answers_cost_3000_input_and_200_output_tokens_each(
    input_price: int, output_price: int, rubles: int
) -> None:
    assert rubles_per_thousand(input_price, output_price) == rubles


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([], []),
        (["handover", "catalog", "catalog"], ["catalog", "handover"]),
        (["booking"], ["slots", "booking"]),
        (["order", "slots"], ["slots", "order"]),
    ],
)
def test_capabilities_have_one_order_and_bookings_need_free_times(
    capabilities: list[Capability], expected: list[Capability]
) -> None:
    assert normalize_capabilities(capabilities) == expected

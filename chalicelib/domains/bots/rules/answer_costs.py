"""Estimate what a bot's answers cost with a model."""

from typing import Final

# A model reads them for a typical answer: the prompt, facts and a short dialog.
INPUT_TOKENS: Final = 3_000
OUTPUT_TOKENS: Final = 200  # of a typical answer, about five sentences
_MICRO_KOPECKS_PER_RUBLE: Final = 100_000_000


def rubles_per_thousand(input_price: int, *, output_price: int) -> int:
    """Return the rubles, rounded up, of 1,000 typical answers at kopecks per 1,000,000 tokens."""
    cost = 1_000 * (INPUT_TOKENS * input_price + OUTPUT_TOKENS * output_price)
    return -(-cost // _MICRO_KOPECKS_PER_RUBLE)

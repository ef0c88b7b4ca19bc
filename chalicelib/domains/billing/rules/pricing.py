"""Compute the cost of a bot's answer in integers, rounded up once per request.

Prices are in micro-kopecks per token; amounts are in kopecks.
"""

from typing import NamedTuple

MICRO = 10**6  # micro-kopecks in a kopeck
LEAST_OUTPUT = 64  # Output tokens that must be affordable. A shorter answer would be useless.


class Prices(NamedTuple):
    """Prices of a model, in micro-kopecks per token."""

    input: int
    output: int

    @property
    def free(self) -> bool:
        return not self.input and not self.output


class TokenUsage(NamedTuple):
    input_tokens: int
    output_tokens: int


def cost(prices: Prices, usage: TokenUsage) -> int:
    """Return the cost of a request in kopecks. A request with a price costs at least 1."""
    micro = prices.input * usage.input_tokens + prices.output * usage.output_tokens
    return -(-micro // MICRO)


def least_cost(prices: Prices, input_tokens: int, *, max_output_tokens: int) -> int:
    """Return the least amount, in kopecks, for which a request is accepted."""
    return cost(prices, TokenUsage(input_tokens, min(LEAST_OUTPUT, max_output_tokens)))


def fitting_output(
    prices: Prices, input_tokens: int, *, max_output_tokens: int, room: int
) -> int | None:
    """Return the output tokens that ``room`` kopecks cover, or None below ``LEAST_OUTPUT``."""
    if room < least_cost(prices, input_tokens, max_output_tokens=max_output_tokens):
        return None
    if not prices.output:
        return max_output_tokens
    output_room = room * MICRO - prices.input * input_tokens
    return min(max_output_tokens, output_room // prices.output)

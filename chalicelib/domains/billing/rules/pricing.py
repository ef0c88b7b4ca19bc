"""What a bot's answer costs: integers only, rounded up once a request (chat.md, Money).

Prices are in micro-kopecks a token, money is in kopecks.
"""

from typing import NamedTuple

MICRO = 10**6
"""Micro-kopecks of a kopeck."""
LEAST_OUTPUT = 64
"""Output tokens that money must suffice for; an answer that may be no longer is not worth it."""


class Prices(NamedTuple):
    """The tariff of a model: micro-kopecks a token."""

    input: int
    output: int

    @property
    def free(self) -> bool:
        """Whether nothing is charged."""
        return not self.input and not self.output


class TokenUsage(NamedTuple):
    """The tokens of a request."""

    input_tokens: int
    output_tokens: int


def cost(prices: Prices, usage: TokenUsage) -> int:
    """Return the kopecks that a request costs: any token at a price at least one."""
    micro = prices.input * usage.input_tokens + prices.output * usage.output_tokens
    return -(-micro // MICRO)


def least_cost(prices: Prices, input_tokens: int, max_output_tokens: int) -> int:
    """Return the kopecks without which a request is refused."""
    return cost(prices, TokenUsage(input_tokens, min(LEAST_OUTPUT, max_output_tokens)))


def fitting_output(
    prices: Prices, input_tokens: int, max_output_tokens: int, room: int
) -> int | None:
    """Return how many output tokens some kopecks suffice for, at most ``max_output_tokens``.

    None if they do not cover the input and ``LEAST_OUTPUT`` tokens of output.
    """
    if room < least_cost(prices, input_tokens, max_output_tokens):
        return None
    if not prices.output:
        return max_output_tokens
    left = room * MICRO - prices.input * input_tokens
    return min(max_output_tokens, left // prices.output)

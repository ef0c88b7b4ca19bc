"""Define the channels and capabilities of bots, and estimate the cost of answers."""

from collections.abc import Collection
from typing import Final, Literal, get_args

Channel = Literal["widget", "api", "page", "test"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
TEST_CHANNEL: Channel = "test"
"""The channel for trials by the workspace's members. It creates no leads, and totals exclude it."""


Capability = Literal["catalog", "slots", "booking", "order", "handover"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
"""All capabilities.

- ``catalog``: find products, services and opening hours
- ``slots``: find free times of a service
- ``booking``: the same, and propose a booking that the visitor confirms
- ``order``: propose an order of products that the visitor confirms
- ``handover``: ask the business to contact the visitor
"""
DEFAULT_CAPABILITIES: tuple[Capability, ...] = ("catalog",)
PROPOSING = frozenset[Capability]({"booking", "order"})
"""Capabilities whose actions a visitor confirms on a card."""


def normalize_capabilities(capabilities: Collection[Capability]) -> list[Capability]:
    """Return capabilities in their order, without repetitions.

    Bookings need free times.
    """
    needed = {*capabilities, *(["slots"] if "booking" in capabilities else [])}
    return [capability for capability in CAPABILITIES if capability in needed]


INPUT_TOKENS: Final = 3_000
"""Tokens that a model reads for a typical answer: the prompt, facts and a short dialog."""
OUTPUT_TOKENS: Final = 200
"""Tokens of a typical answer, about five sentences."""
_MICRO_KOPECKS_PER_RUBLE: Final = 100_000_000


def rubles_per_thousand(input_price: int, output_price: int) -> int:
    """Return the rubles that 1,000 typical answers cost, rounded up.

    Prices are in kopecks for 1,000,000 tokens.
    """
    cost = 1_000 * (INPUT_TOKENS * input_price + OUTPUT_TOKENS * output_price)
    return -(-cost // _MICRO_KOPECKS_PER_RUBLE)

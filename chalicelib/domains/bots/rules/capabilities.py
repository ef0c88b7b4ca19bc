"""Capabilities of bots: what a bot may look up while it answers."""

from collections.abc import Collection
from typing import Literal, get_args

Capability = Literal["catalog", "slots"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
"""All capabilities.

- ``catalog``: find products, services and opening hours
- ``slots``: find free times of a service
"""
DEFAULT: tuple[Capability, ...] = ("catalog",)


def normalize(chosen: Collection[Capability]) -> list[Capability]:
    """Return capabilities in their order, without repetitions."""
    return [each for each in CAPABILITIES if each in chosen]

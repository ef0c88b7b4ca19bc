"""Capabilities of bots: what a bot may look up, and what it may propose to a visitor."""

from collections.abc import Iterable
from typing import Literal, get_args

Capability = Literal["catalog", "slots", "booking", "order", "handover"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
"""All capabilities.

- ``catalog``: find products, services and opening hours
- ``slots``: find free times of a service
- ``booking``: propose a booking, which the visitor confirms; it includes ``slots``
- ``order``: propose an order, which the visitor confirms
- ``handover``: ask the owner to continue the dialog
"""
DEFAULT: tuple[Capability, ...] = ("catalog",)


def normalize(chosen: Iterable[Capability]) -> list[Capability]:
    """Return capabilities without repetitions, in their order, with those that they include."""
    found = set(chosen)
    if "booking" in found:
        found.add("slots")
    return [each for each in CAPABILITIES if each in found]

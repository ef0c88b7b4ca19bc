"""Capabilities of bots: what a bot may look up, propose and request while it answers."""

from collections.abc import Collection
from typing import Literal, get_args

Capability = Literal["catalog", "slots", "booking", "order", "handover"]
# ``catalog``: find products, services and opening hours. ``slots``: find free times of a service.
# ``booking``: the same, and propose a booking that the visitor confirms. ``order``: propose an
# order of products that the visitor confirms. ``handover``: ask the business to contact the
# visitor.
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
DEFAULT_CAPABILITIES: tuple[Capability, ...] = ("catalog",)
PROPOSING = frozenset[Capability]({"booking", "order"})  # A visitor confirms them on a card.


def normalize_capabilities(capabilities: Collection[Capability]) -> list[Capability]:
    """Return capabilities in their order, without repetitions. Bookings need free times."""
    needed = {*capabilities, *(["slots"] if "booking" in capabilities else [])}
    return [capability for capability in CAPABILITIES if capability in needed]

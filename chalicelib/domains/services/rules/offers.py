"""The price and the length of a service, which may depend on the resource."""

from collections.abc import Collection
from typing import NamedTuple


class Offer(NamedTuple):
    """A service with one of its resources. The cheapest is the least, then the shortest."""

    price: int  # in minor units
    duration_min: int
    is_prepaid: bool


class OfferSummary(NamedTuple):
    """What a list says of a service: the cheapest offer, and from what its values begin."""

    price: int
    duration_min: int
    price_from: int | None  # None: the same with all resources
    duration_from_min: int | None


def summary_of(offers: Collection[Offer]) -> OfferSummary:
    """Return the summary of the offers of a service, of which there is at least one."""
    cheapest = min(offers)
    shortest = min(offer.duration_min for offer in offers)
    return OfferSummary(
        cheapest.price,
        cheapest.duration_min,
        cheapest.price if any(offer.price != cheapest.price for offer in offers) else None,
        shortest if any(offer.duration_min != shortest for offer in offers) else None,
    )

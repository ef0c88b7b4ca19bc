"""The price and the length of a service, which may depend on the resource."""

from collections.abc import Collection, Sequence
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


def sum_of_summaries(summaries: Sequence[OfferSummary]) -> OfferSummary:
    """Return the summary of several services together, such as those of a visit."""
    from_price = [each.price_from is not None for each in summaries]
    shortest = [
        each.duration_min if each.duration_from_min is None else each.duration_from_min
        for each in summaries
    ]
    price = sum(each.price for each in summaries)
    return OfferSummary(
        price,
        sum(each.duration_min for each in summaries),
        price if any(from_price) else None,
        sum(shortest) if any(each.duration_from_min is not None for each in summaries) else None,
    )

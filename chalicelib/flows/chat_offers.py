"""What a workspace sells, looked up for a question to the embedded model."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

from chalicelib.core import deadline
from chalicelib.rules import offers
from chalicelib.rules.chat import Message
from chalicelib.rules.offers import MAX_OFFERS, Offer
from chalicelib.store.index_entries import IndexEntry, SortKey, entries
from chalicelib.store.listing import Listing
from chalicelib.store.products import PRODUCTS, ProductRow
from chalicelib.store.reading import Cost, Partition
from chalicelib.store.services import SERVICES, ServiceRow

MOST_LOOKED_AT = 2_000
"""Active records of a noun, the oldest first, that are looked through: about 35 read units."""
IN_ORDER: SortKey = "n2"


class _Source(NamedTuple):
    listing: Listing[Any]
    offer: Callable[[Any], Offer]


def _product(product: ProductRow) -> Offer:
    return Offer("product", product.name, int(product.price), None, product.description or "")


def _service(service: ServiceRow) -> Offer:
    length, told = int(service.duration_min), service.description or ""
    return Offer("service", service.name, int(service.price), length, told)


SOURCES = (_Source(SERVICES, _service), _Source(PRODUCTS, _product))


def message(workspace_id: str, question: str) -> Message | None:
    """Return the message that tells the embedded model what may be asked about, or None."""
    words = offers.search_words(question)

    def found(source: _Source) -> list[Offer]:
        records = source.listing.fetch(workspace_id, _nearest(workspace_id, source.listing, words))
        return [source.offer(record) for record in records if record.status == "active"]

    candidates = deadline.map_in_threads(found, SOURCES, len(SOURCES))
    return offers.message(question, (offer for some in candidates for offer in some))


def _nearest(workspace_id: str, listing: Listing[Any], words: Iterable[str]) -> list[str]:
    """Return the ids of records: those whose name has some of the words, then the first."""
    partition = Partition(listing.partition(workspace_id), Cost())
    active = listing.having({"status": "active"})
    rows = list(islice(entries(partition, None, active, consistent=False), MOST_LOOKED_AT))
    wanted = list(words)

    def rank(entry: IndexEntry) -> tuple[int, str]:
        return -sum(word in entry.text for word in wanted), entry.sort_key(IN_ORDER)

    return [entry.id for entry in sorted(rows, key=rank)[:MAX_OFFERS]]

"""Find offers and opening hours of a workspace for a question to the embedded model."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from chalicelib.core import deadline
from chalicelib.domains.bookings.rules import schedule
from chalicelib.domains.bookings.store import resources
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.listing.index_entries import IndexEntry, SortKey, entries
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.reading import Cost, Partition
from chalicelib.gateways.llm import offers
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.offers import MAX_HOURS, MAX_OFFERS, Hours, Offer
from chalicelib.lib import extracts
from chalicelib.lib.zoned_times import WEEKDAYS

MAX_SEARCHED = 2_000
"""Maximum number of active records searched per noun, oldest first. This costs 35 read units."""


class _Source(NamedTuple):
    listing: Listing[Any]
    offer: Callable[[Any], Offer]


def _product(product: ProductRow) -> Offer:
    return Offer(
        "product", _text(product.name), int(product.price), None, _text(product.description)
    )


def _service(service: ServiceRow) -> Offer:
    length, about = int(service.duration_min), _text(service.description)
    return Offer("service", _text(service.name), int(service.price), length, about)


def _text(html: str | None) -> str:
    return " ".join(extracts.plain_text(html or "").split())


SOURCES = (_Source(SERVICES, _service), _Source(PRODUCTS, _product))


def message(workspace_id: str, question: str) -> Message | None:
    """Return a message with offers and hours that match the question, or None."""
    words = offers.search_words(question)

    def found(source: _Source) -> list[Offer]:
        ids = _nearest(workspace_id, source.listing, words, MAX_OFFERS)
        records = source.listing.fetch(workspace_id, ids)
        return [source.offer(record) for record in records if record.status == "active"]

    lookups: list[Callable[[], list[Any]]] = [partial(found, source) for source in SOURCES]
    if offers.is_about_hours(question):
        lookups.append(partial(_hours, workspace_id))
    results = deadline.map_in_threads(lambda lookup: lookup(), lookups, len(lookups))
    facts = [fact for result in results for fact in result]
    hours = [fact for fact in facts if isinstance(fact, Hours)]
    return offers.to_message(question, (f for f in facts if isinstance(f, Offer)), hours)


def _hours(workspace_id: str) -> list[Hours]:
    """Return the weekly hours of the first active resources that have any."""
    ids = _nearest(workspace_id, resources.RESOURCES, (), MAX_HOURS)
    found = [
        (row, resources.schedule_of(hours))
        for row, hours in resources.find_with_schedules(workspace_id, ids)
    ]
    return [Hours(row.name, _week(hours)) for row, hours in found if _is_open(row, hours)]


def _is_open(row: resources.ResourceRow, hours: schedule.Schedule) -> bool:
    return row.status == "active" and any(hours.weekly)


def _week(hours: schedule.Schedule) -> tuple[str, ...]:
    days = {
        rule.weekday: ", ".join(f"{each.start}-{each.end}" for each in rule.intervals or ())
        for rule in schedule.canonical(hours)
        if rule.weekday is not None
    }
    return tuple(days.get(name, "") for name in WEEKDAYS)


def _nearest(
    workspace_id: str, listing: Listing[Any], words: Iterable[str], limit: int
) -> list[str]:
    """Return ids of active records. Records whose names contain more of the words come first."""
    partition = Partition(listing.partition(workspace_id), Cost())
    active = listing.having({"status": "active"})
    rows = list(islice(entries(partition, None, active, consistent=False), MAX_SEARCHED))
    searched = list(words)
    in_order: SortKey = listing.sorts["sortOrder"]

    def rank(entry: IndexEntry) -> tuple[int, str]:
        return -sum(word in entry.text for word in searched), entry.sort_key(in_order)

    return [entry.id for entry in sorted(rows, key=rank)[:limit]]

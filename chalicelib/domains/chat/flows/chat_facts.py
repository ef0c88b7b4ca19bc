"""Find the facts of a workspace that may answer a visitor's question."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from chalicelib.core import clock, deadline
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.services.flows import active_offers
from chalicelib.domains.services.rules.offers import OfferSummary, summary_of
from chalicelib.domains.services.rules.open_windows import Schedule, intervals
from chalicelib.domains.services.store import opening_hours, resources, time_off
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.engine import workspace_currency
from chalicelib.engine.listing.index_entries import IndexEntry, SortKey, entries
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.query import Query
from chalicelib.engine.reading import Cost, Partition
from chalicelib.gateways.llm import facts
from chalicelib.gateways.llm.facts import MAX_HOURS, MAX_OFFERS, Facts, Hours, Offer, Passage
from chalicelib.lib import extracts
from chalicelib.lib.spans import Span

MAX_SEARCHED = 2_000  # active records searched per noun, oldest first, for 35 read units
MAX_PASSAGES = 4  # of about 800 characters each, that are found for a question
DAYS_AHEAD = 14  # from today, whose changed opening hours are found

_A_DAY = timedelta(days=1)


class Source(NamedTuple):
    """A noun whose active records are offers."""

    listing: Listing[Any]
    # Returns the offers of records, in a currency.
    offers: Callable[[str, Sequence[Any], str], list[Offer]]

    def find(
        self, workspace_id: str, *, question: str, everywhere: bool = False
    ) -> tuple[list[Offer], int]:
        """Return up to ``MAX_OFFERS`` active offers, beginning with matches of the question.

        The number is that of all active offers, or ``MAX_SEARCHED`` if there are more. A search
        ``everywhere`` finds the others by its longest word, too.
        """
        records, total = self.records(workspace_id, question=question, everywhere=everywhere)
        currency = workspace_currency.currency_of(workspace_id) if records else ""
        return self.offers(workspace_id, records, currency), total

    def records(
        self, workspace_id: str, *, question: str, everywhere: bool = False
    ) -> tuple[list[Any], int]:
        """Return the records of the same offers, and the same number."""
        words = facts.search_words(question)
        entries = ranked(workspace_id, self.listing, words)
        ids = [entry.id for entry in entries[:MAX_OFFERS]]
        if everywhere and words and len(entries) == MAX_SEARCHED:
            ids = [*self._search(workspace_id, words[0]), *ids]
        records = self.listing.fetch(workspace_id, list(dict.fromkeys(ids))[:MAX_OFFERS])
        return [record for record in records if record.status == "active"], len(entries)

    def _search(self, workspace_id: str, word: str) -> list[str]:
        query = Query(
            page=1,
            size=MAX_OFFERS,
            sort="sortOrder",
            filters={"status": "active"},
            search=word,
        )
        return [record.id for record in self.listing.page(workspace_id, query).records]


def _products(_: str, products: Sequence[ProductRow], currency: str) -> list[Offer]:
    return [
        Offer(
            "product",
            _text(product.name),
            int(product.price),
            description=_text(product.description),
            in_stock=None if product.stock is None else product.stock > 0,
            currency=currency,
        )
        for product in products
    ]


def _services(workspace_id: str, services: Sequence[ServiceRow], currency: str) -> list[Offer]:
    offers = active_offers.find(workspace_id, services)
    return [_service(service, summary_of(offers[service.id]), currency) for service in services]


def _service(service: ServiceRow, summary: OfferSummary, currency: str) -> Offer:
    varying = {"price": summary.price_from, "minutes": summary.duration_from_min}
    return Offer(
        "service",
        _text(service.name),
        summary.price,
        summary.duration_from_min or summary.duration_min,
        _text(service.description),
        currency=currency,
        lowest_of_staff=tuple(name for name, lowest in varying.items() if lowest is not None),
    )


def _text(html: str | None) -> str:
    return " ".join(extracts.plain_text(html or "").split())


SERVICE_OFFERS = Source(SERVICES, _services)
PRODUCT_OFFERS = Source(PRODUCTS, _products)


def find(workspace_id: str, *, agent_id: str, question: str) -> Facts:
    """Return active offers and passages, the best match first, and hours if asked about.

    A search index that is not there in time leaves the passages out.
    """
    with deadline.side_by_side() as start:
        sources = [
            start(partial(source.find, workspace_id, question=question))
            for source in (SERVICE_OFFERS, PRODUCT_OFFERS)
        ]
        passages = start(partial(_passages, workspace_id, agent_id=agent_id, question=question))
        hours = start(partial(find_hours, workspace_id)) if facts.is_about_hours(question) else None
        (services, service_count), (products, product_count) = (
            source.result() for source in sources
        )
        totals = {"services": service_count, "products": product_count}
        found_hours: list[Hours] = []
        if hours:
            found_hours, left_out = hours.result()
            totals["hours"] = len(found_hours) + left_out
        return Facts([*services, *products], found_hours, passages.result(), totals=totals)


def _passages(workspace_id: str, *, agent_id: str, question: str) -> list[Passage]:
    matches = search.find(workspace_id, bot_id=agent_id, question=question, limit=MAX_PASSAGES)
    return [Passage(match.title, match.text, match.url) for match in matches]


def find_hours(workspace_id: str) -> tuple[list[Hours], int]:
    """Return the hours of the first active resources that have any, and how many were left out."""
    today = clock.epoch_ms(clock.now())
    last = today + (DAYS_AHEAD + 1) * (_A_DAY // timedelta(milliseconds=1))
    with deadline.side_by_side() as start:
        closed = start(partial(time_off.overlapping, workspace_id, today, last_ms=last))
        all_ids = [row.id for row in ranked(workspace_id, resources.RESOURCES)]
        ids = all_ids[:MAX_HOURS]
        with_schedules = [
            (row, opening_hours.schedule_of(hours))
            for row, hours in opening_hours.find_with_schedules(workspace_id, ids)
        ]
        off = closed.result()
    found = [
        Hours(row.name, tuple(map(_day, hours.weekly)), tuple(_changes(row, hours, off)))
        for row, hours in with_schedules
        if row.status == "active" and hours.has_hours
    ]
    return found, len(all_ids) - len(ids)


def _day(spans: Sequence[Span]) -> str:
    return ", ".join(f"{interval.start}-{interval.end}" for interval in intervals(spans))


def _changes(row: resources.ResourceRow, hours: Schedule, off: Iterable[TimeOff]) -> Iterator[str]:
    absences = [absence for absence in off if absence.applies_to(row.id)]
    today = clock.local_day(clock.now(), row.timezone)
    for day in (today + number * _A_DAY for number in range(DAYS_AHEAD)):
        usual, actual = hours.weekly[day.weekday()], hours.get_hours(day)
        if any(_covers(absence, day) for absence in absences):
            actual = ()
        if actual != usual:
            yield f"{day} {_day(actual) or 'closed'}"
    for absence in absences:
        if absence.moments is not None:
            start, end = (_local(moment, row.timezone) for moment in absence.moments)
            yield f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} closed"


def _covers(off: TimeOff, day: date) -> bool:
    return (
        off.first_day is not None
        and off.last_day is not None
        and (off.first_day <= day <= off.last_day)
    )


def _local(moment: int, timezone: str) -> datetime:
    return clock.moment_at(moment).astimezone(ZoneInfo(timezone))


def ranked(workspace_id: str, listing: Listing[Any], words: Iterable[str] = ()) -> list[IndexEntry]:
    """Return up to ``MAX_SEARCHED`` active entries; names with more of the words come first."""
    partition = Partition(listing.partition(workspace_id), Cost())
    active = listing.having({"status": "active"})
    # A fact that is a second old does no harm, and this read costs half.
    rows = list(islice(entries(partition, None, where=active, consistent=False), MAX_SEARCHED))
    searched = list(words)
    in_order: SortKey = listing.sorts["sortOrder"]

    def rank(entry: IndexEntry) -> tuple[int, str]:
        return -sum(word in entry.text for word in searched), entry.sort_key(in_order)

    return sorted(rows, key=rank)

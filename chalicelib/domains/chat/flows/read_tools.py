"""Tools of bots that look something up: products, services, opening hours and free times."""

from datetime import timedelta
from typing import Any

from pydantic import Field

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import NotFoundError
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.bookings.flows import calendars, visitor_bookings
from chalicelib.domains.bookings.flows.calendars import Search
from chalicelib.domains.bookings.rules.slots import Query, Slot
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.chat.flows import chat_facts
from chalicelib.domains.chat.flows.tools import Tool, ToolContext, ToolError, one_named
from chalicelib.domains.chat.store.proposals import MAX_OFFERED, OfferedSlot
from chalicelib.engine.listing.query import Query as ListQuery
from chalicelib.engine.reading import Rows
from chalicelib.gateways.llm import facts
from chalicelib.lib import extracts, zoned_times

MAX_TIMES = 40
"""Free times that one call returns."""
MAX_DAYS = 31
MAX_SERVICES = 200
"""Active services among which a name is looked for."""


class OfferSearch(Wire):
    """Search for products or services."""

    query: str = Field(min_length=1, max_length=200, description="Words of the name.")


class NoArguments(Wire):
    """No arguments."""


class FreeTimeSearch(Wire):
    """Search for free times of a service."""

    service: str = Field(min_length=1, max_length=200, description="Name of the service.")
    staff: str | None = optional("Name of a person or room; default: any.")
    first_day: Day | None = optional("First local date, YYYY-MM-DD; default: today.")
    last_day: Day | None = optional("Last local date; default: six days after the first.")


def find_products(context: ToolContext, search: OfferSearch) -> dict[str, Any]:
    """Find products with their prices. Prices are in rubles."""
    return _offers(context, chat_facts.PRODUCT_OFFERS, search)


def find_services(context: ToolContext, search: OfferSearch) -> dict[str, Any]:
    """Find services with their prices and durations. Prices are in rubles."""
    return _offers(context, chat_facts.SERVICE_OFFERS, search)


def _offers(context: ToolContext, source: chat_facts.Source, search: OfferSearch) -> dict[str, Any]:
    found = source.find(context.workspace.id, search.query)
    texts = [f"{each.name} {each.description}" for each in found]
    matching = [found[index] for index in extracts.most_relevant(search.query, texts)]
    result: dict[str, Any] = {"found": [facts.as_data(each) for each in matching]}
    if not matching and found:
        result["others"] = [each.name for each in found]
    return result


def opening_hours(context: ToolContext, _: NoArguments) -> dict[str, Any]:
    """Return the opening hours of each person or room, and what differs in the next 14 days."""
    hours = chat_facts.find_hours(context.workspace.id)
    return {"hours": [facts.as_data(each) for each in hours]}


def find_free_times(context: ToolContext, search: FreeTimeSearch) -> dict[str, Any]:
    """Find free times of a service. Name times to the visitor as they are in the result."""
    workspace_id = context.workspace.id
    service = _service_named(workspace_id, search.service)
    try:
        visitor_bookings.require_open_site(workspace_id, service, Rows())
    except NotFoundError:
        msg = f"{service.name} cannot be booked at the moment."
        raise ToolError(msg) from None
    chosen = Search.of(workspace_id, service, None)
    if search.staff is not None:
        candidate = one_named(
            chosen.candidates.found,
            search.staff,
            "people or rooms of this service",
            lambda each: each.resource.name,
        )
        chosen = chosen._replace(candidates=chosen.candidates._replace(found=[candidate]))
    zone = calendars.zones(
        chosen.candidates.bound, None, None, lambda: context.workspace.timezone
    ).effective
    query = _range(search, zone)
    slots = chosen.slots(query).slots
    result: dict[str, Any] = {
        "service": service.name,
        "minutes": int(service.duration_min),
        "price_rub": facts.rubles(int(service.price)),
        "timezone": zone,
        "times": [_offer(context, chosen, slot, zone) for slot in slots[:MAX_TIMES]],
    }
    if len(slots) > MAX_TIMES:
        result["more"] = True
    if not slots and (after := chosen.next(query)):
        result["next"] = _offer(context, chosen, after, zone)
    return result


def _service_named(workspace_id: str, name: str) -> ServiceRow:
    """Return the active service with a name, or the only one that matches it best.

    Raises:
        ToolError: no service matches, or several do.
    """
    page = SERVICES.page(
        workspace_id,
        ListQuery(page=1, size=MAX_SERVICES, sort="sortOrder", filters={"status": "active"}),
    )
    services: list[ServiceRow] = page.records
    return one_named(services, name, "services")


def _range(search: FreeTimeSearch, zone: str) -> Query:
    """Return the requested range of local dates.

    Raises:
        ToolError: it ends before it begins, or it is too long.
    """
    now = clock.now()
    first = search.first_day or clock.local_day(now, zone)
    last = search.last_day or first + timedelta(days=6)
    if not 0 <= (last - first).days < MAX_DAYS:
        msg = f"Expected lastDay 0 to {MAX_DAYS - 1} days after firstDay."
        raise ToolError(msg)
    span = zoned_times.span_of_days(first, last, zone)
    return Query(span.start, span.end - 1, epoch_ms(now))


def _offer(context: ToolContext, search: Search, slot: Slot, zone: str) -> dict[str, Any]:
    """Return a slot for the model. The context keeps it as the last one that the bot has named."""
    resource_id = next(iter(slot.seats))
    known = {(each.service_id, each.resource_id, each.start): each for each in context.offered}
    offered = known.get((search.service.id, resource_id, slot.start))
    names = {each.resource.id: each.resource.name for each in search.candidates.found}
    local = zoned_times.local_time(clock.moment_at(slot.start), zone)
    start = local.text[:16]
    if offered is None:
        offered = OfferedSlot(
            str(1 + max((int(each.id) for each in context.offered), default=0)),
            search.service.id,
            resource_id,
            slot.start,
            search.service.name,
            f"{start} {local.weekday}",
            names[resource_id],
        )
    others = [each for each in context.offered if each.id != offered.id]
    context.offered = (*others, offered)[-MAX_OFFERED:]
    return {
        "slotId": offered.id,
        "start": start,
        "weekday": local.weekday,
        "staff": [names[each] for each in slot.seats],
    }


TOOLS = (
    Tool("catalog", OfferSearch, find_products),
    Tool("catalog", OfferSearch, find_services),
    Tool("catalog", NoArguments, opening_hours),
    Tool("slots", FreeTimeSearch, find_free_times),
)

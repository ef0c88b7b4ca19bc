"""Tools that return what every visitor can read."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydantic import Field

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import NotFoundError
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.booking_page.flows import book_for_visitor
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.rules import visits
from chalicelib.domains.bookings.rules.slots import Calendar, Query, Slot, least_busy
from chalicelib.domains.chat.flows import chat_facts
from chalicelib.domains.chat.flows.named_records import one_named, service_named
from chalicelib.domains.chat.flows.tool_calls import Tool, ToolContext, ToolError
from chalicelib.domains.chat.store.proposals import MAX_OFFERED, OfferedSlot
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.engine.reading import Rows
from chalicelib.gateways.llm import facts
from chalicelib.lib import currencies, extracts, zoned_times

MAX_TIMES = 40  # free times that one call returns
MAX_DAYS = 31


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
    """Find products with their prices."""
    return _offers(context, chat_facts.PRODUCT_OFFERS, search)


def find_services(context: ToolContext, search: OfferSearch) -> dict[str, Any]:
    """Find services with their durations and prices."""
    return _offers(context, chat_facts.SERVICE_OFFERS, search)


def _offers(context: ToolContext, source: chat_facts.Source, search: OfferSearch) -> dict[str, Any]:
    offers, total = source.find(context.workspace.id, question=search.query, everywhere=True)
    texts = [f"{offer.name} {offer.description}" for offer in offers]
    matching = [offers[index] for index in extracts.most_relevant(search.query, texts)]
    result: dict[str, Any] = {"found": [facts.to_data(offer) for offer in matching]}
    if not matching and offers:
        result["others"] = [offer.name for offer in offers]
    if total > len(offers):
        result["notListed"] = total - len(offers)
    return result


def opening_hours(context: ToolContext, _: NoArguments) -> dict[str, Any]:
    """Return the opening hours of each resource, and what differs in the next 14 days."""
    hours, left_out = chat_facts.find_hours(context.workspace.id)
    result: dict[str, Any] = {"hours": [facts.to_data(day) for day in hours]}
    return {**result, "notListed": left_out} if left_out else result


def find_free_times(context: ToolContext, search: FreeTimeSearch) -> dict[str, Any]:
    """Find free times of a service. Name times to the visitor as they are in the result."""
    workspace_id = context.workspace.id
    service = service_named(workspace_id, name=search.service)
    try:
        book_for_visitor.require_open_site(workspace_id, service, Rows())
    except NotFoundError:
        msg = f"{service.name} cannot be booked at the moment."
        raise ToolError(msg) from None
    all_staff = Search.create(workspace_id, service, None)
    if search.staff is not None:
        candidate = one_named(
            all_staff.candidates.active,
            search.staff,
            what="people or rooms of this service",
            name_of=lambda candidate: candidate.resource.name,
        )
        all_staff = all_staff._replace(candidates=all_staff.candidates._replace(active=[candidate]))
    zone = slot_search.zones(
        all_staff.candidates.bound,
        None,
        requested=None,
        of_workspace=lambda: context.workspace.timezone,
    ).effective
    query = _range(search, zone)
    calendars = all_staff.calendars(query.first, last=query.last)
    slots = all_staff.slots(query, calendars).slots
    # What depends on the staff is said of each time instead.
    own = {} if service.overrides else _terms(context, service.offer())
    result: dict[str, Any] = {
        "service": service.name,
        **own,
        "timezone": zone,
        "times": [_offer(context, all_staff, slot, zone, calendars) for slot in slots[:MAX_TIMES]],
    }
    if len(slots) > MAX_TIMES:
        result["more"] = True
    if not slots and (next_slot := all_staff.next(query)):
        calendars = all_staff.calendars(next_slot.start, last=next_slot.start)
        result["next"] = _offer(context, all_staff, next_slot, zone, calendars)
    return result


def _terms(context: ToolContext, offer: Offer) -> dict[str, Any]:
    currency = context.workspace.currency
    price = currencies.major_units(offer.price, currency)
    return {"minutes": offer.duration_min, facts.price_name(currency): price}


def _range(search: FreeTimeSearch, zone: str) -> Query:
    now = clock.now()
    first = search.first_day or clock.local_day(now, zone)
    last = search.last_day or first + timedelta(days=6)
    if not 0 <= (last - first).days < MAX_DAYS:
        msg = f"Expected lastDay 0 to {MAX_DAYS - 1} days after firstDay."
        raise ToolError(msg)
    span = zoned_times.span_of_days(first, last=last, timezone=zone)
    return Query(span.start, span.end - 1, epoch_ms(now))


def _offer(
    context: ToolContext, search: Search, slot: Slot, zone: str, calendars: Sequence[Calendar]
) -> dict[str, Any]:
    """Return a slot for the model, with the least busy of its resources first.

    The context keeps it as the last one that the bot has named.
    """
    free = [calendar for calendar in calendars if calendar.resource_id in slot.seats]
    resource_id = least_busy(free, slot.start, now=epoch_ms(clock.now())).resource_id
    offered_by_key = {
        (offer.service_id, offer.resource_id, offer.start): offer for offer in context.offered_slots
    }
    offered_slot = offered_by_key.get((search.service.id, resource_id, slot.start))
    names = {
        candidate.resource.id: candidate.resource.name for candidate in search.candidates.active
    }
    local = zoned_times.local_time(clock.moment_at(slot.start), zone)
    start = local.text[:16]
    if offered_slot is None:
        offered_slot = OfferedSlot(
            str(1 + max((int(offer.id) for offer in context.offered_slots), default=0)),
            search.service.id,
            resource_id,
            slot.start,
            search.service.name,
            f"{start} {local.weekday}",
            names[resource_id],
        )
    others = [offer for offer in context.offered_slots if offer.id != offered_slot.id]
    context.offered_slots = (*others, offered_slot)[-MAX_OFFERED:]
    place: dict[str, Any] = {"slotId": offered_slot.id, "start": start, "weekday": local.weekday}
    if slot.places is not None:
        place |= {"placesLeft": visits.seats_of(slot), "places": slot.places}
    if search.service.overrides:  # The others of the staff have other prices.
        offer = search.service.offer(resource_id)
        return {**place, "staff": [names[resource_id]], **_terms(context, offer)}
    staff = [names[seat] for seat in dict.fromkeys([resource_id, *slot.seats])]
    return {**place, "staff": staff}


READ_TOOLS = (
    Tool("catalog", OfferSearch, find_products),
    Tool("catalog", OfferSearch, find_services),
    Tool("catalog", NoArguments, opening_hours),
    Tool("slots", FreeTimeSearch, find_free_times),
)

"""Wire models of slots."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from chalicelib.core.clock import moment_at
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.rules.slots import Slot
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.lib import zoned_times


class SlotOut(Wire):
    """A time that can be booked."""

    start_at: Timestamp = Field(description="Start, in UTC.")
    end_at: Timestamp = Field(
        description="End, in UTC; the earliest, if it depends on the resource."
    )
    start_local: str = Field(description="Start with the offset of the zone.")
    weekday: str = Field(description="mon to sun, in that zone.")
    resource_ids: list[Id] = Field(description="Resources that are free then.")
    free: int = Field(description="Free seats of all of them.")

    @classmethod
    def from_slot(cls, slot: Slot, zone: str) -> Self:
        start = moment_at(slot.start)
        local = zoned_times.local_time(start, zone)
        return cls.model_construct(
            start_at=start,
            end_at=moment_at(slot.end),
            start_local=local.text,
            weekday=local.weekday,
            resource_ids=list(slot.seats),
            free=sum(slot.seats.values()),
        )


class SlotResource(Wire):
    """A resource that slots name."""

    OWNED_BY = "id"

    id: Id = Field(description="Resource id.")
    name: str = Field(description="Name of the resource.")
    timezone: str = Field(description="IANA time zone.")
    price: int | None = Field(
        description="Price with it, in minor units (kopecks), if it depends on the resource."
    )
    duration_min: int | None = Field(
        description="Minutes with it, if the length depends on the resource."
    )

    @classmethod
    def several(cls, resources: Iterable[ResourceRow], search: Search | None) -> list[Self]:
        """Return resources with what the search says of them."""
        prices = search.own_prices if search else {}
        rules = search.rules if search and search.rules.lengths else None
        return [
            cls.from_row(
                resource.values,
                price=prices.get(resource.id),
                duration_min=rules and rules.with_resource(resource.id).duration_min,
            )
            for resource in resources
        ]

"""Wire models of slots."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from chalicelib.core.clock import moment_at
from chalicelib.core.wire.schema import Id, Timestamp, Wire, only_if_set
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.rules import visits
from chalicelib.domains.bookings.rules.slots import Slot, SlotPart
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.lib import zoned_times


class SlotPartOut(Wire):
    """A service of a visit at its time."""

    service_id: Id = Field(description="Service id.")
    start_at: Timestamp = Field(description="Start, in UTC.")
    end_at: Timestamp = Field(description="End, in UTC.")
    resource_ids: list[Id] = Field(description="Resources that are free for it.")

    @classmethod
    def from_part(cls, part: SlotPart) -> Self:
        return cls.model_construct(
            service_id=part.service_id,
            start_at=moment_at(part.start),
            end_at=moment_at(part.end),
            resource_ids=list(part.seats),
        )


class SlotOut(Wire):
    """A time that can be booked."""

    # Who else is free is not for the staff.
    HIDDEN_FROM_STAFF = {"parts": None}  # noqa: RUF012  declared in ``Wire``

    start_at: Timestamp = Field(description="Start, in UTC.")
    end_at: Timestamp = Field(
        description="End, in UTC; the earliest, if it depends on the resource."
    )
    start_local: str = Field(description="Start with the offset of the zone.")
    weekday: str = Field(description="mon to sun, in that zone.")
    resource_ids: list[Id] = Field(description="Resources that are free then.")
    free: int = Field(description="Free seats of all of them.")
    places: int | None = only_if_set(
        "With fixedStarts: all places of these resources, of which free are left."
    )
    parts: list[SlotPartOut] | None = only_if_set(
        "With andThen: each service in order. resourceIds then has those who can do all of them."
    )

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
            free=visits.seats_of(slot),
            places=slot.places,
            parts=[SlotPartOut.from_part(part) for part in slot.parts] or None,
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
        lengths = search.own_lengths if search else {}
        return [
            cls.from_row(
                resource.values,
                price=prices.get(resource.id),
                duration_min=lengths.get(resource.id),
            )
            for resource in resources
        ]

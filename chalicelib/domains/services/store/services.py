"""Rows of services, their listing, and their bindings to resources."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
)

from chalicelib.core.text import fold
from chalicelib.domains.files.store.files import SHOWN_IMAGES, ImageMap
from chalicelib.domains.services.rules.booking_rules import Length, ServiceRules
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.engine.listing import lookups, ordering
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.event_rules import changes_others, is_new
from chalicelib.engine.listing.index_entries import BY_ROW, NAME_BYTES, token_values
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import JsonAttribute, ProgramRecord

IN_ORDER = SortIndex("sortOrder")
# Default part of the price that is paid in advance, and default minutes before the start until
# which a client's cancellation is refunded.
DEPOSIT_PERCENT, REFUND_UNTIL_MIN = 100, 1440
# Minutes before the start until which a service that is paid in advance is offered. The client
# needs time to pay, because a booking that is not paid at its start is cancelled.
PREPAID_NOTICE_MIN = 15
REMINDERS = (1440, 120)  # minutes before the start, by default


class PaymentTerms(NamedTuple):
    deposit_percent: int  # of the price, paid in advance
    refund_until_min: int  # minutes before the start


class ServiceRow(ProgramRecord):
    """A service. ``resource_ids`` are alternatives, and the only record of a service's bindings."""

    name = UnicodeAttribute()
    duration_min = NumberAttribute()
    price = NumberAttribute()  # in minor units
    description = UnicodeAttribute(null=True)
    category_id = UnicodeAttribute(null=True)
    site_id = UnicodeAttribute(null=True)
    agent_id = UnicodeAttribute(null=True)
    # The id of a deleted resource is kept until a job unbinds it.
    resource_ids: ListAttribute[str] = ListAttribute(default=list)
    images: ListAttribute[ImageMap] = ListAttribute(of=ImageMap, default=list)
    tags: ListAttribute[str] = ListAttribute(default=list)
    status = UnicodeAttribute()
    slot_step_min = NumberAttribute(null=True)  # between starts of slots; None: the duration
    buffer_before_min = NumberAttribute()
    buffer_after_min = NumberAttribute()
    min_notice_min = NumberAttribute()
    horizon_days = NumberAttribute()
    require_payment = BooleanAttribute()
    unverified_per_hour = NumberAttribute(default=60)  # bookings of visitors per clock hour
    visitor_mails = BooleanAttribute(default=True)
    # Minutes before the start, the largest first.
    reminders: ListAttribute[Any] = ListAttribute(of=NumberAttribute, default=lambda: [*REMINDERS])
    sort_order = NumberAttribute()
    # Days after a visit after which clients who agreed to advertising are asked to book again.
    book_again_days = NumberAttribute(null=True)
    # The part of the price that is paid in advance, and the minutes before the start until which a
    # client's cancellation is refunded. None: the default.
    deposit_percent = NumberAttribute(null=True)
    refund_until_min = NumberAttribute(null=True)
    fixed_starts = BooleanAttribute(default=False)  # offered at its dated starts only
    # ``price`` and ``durationMin`` with a resource, by its id, where they differ.
    overrides: JsonAttribute = JsonAttribute(null=True)

    def offer(self, resource_id: str | None = None) -> Offer:
        """Return the price and the length with a resource, or the service's own."""
        own = (self.overrides or {}).get(resource_id, {})
        price = int(own.get("price", self.price))
        # What has no price is not paid in advance.
        is_prepaid = bool(self.require_payment) and price > 0
        return Offer(price, int(own.get("durationMin", self.duration_min)), is_prepaid)

    def offers(self, resource_ids: Collection[str] | None = None) -> list[Offer]:
        """Return the offers with resources, by default with all, or the service's own alone."""
        ids = self.resource_ids if resource_ids is None else resource_ids
        return [self.offer(resource_id) for resource_id in ids] or [self.offer()]

    def cheapest(self, resource_ids: Iterable[str]) -> str:
        """Return the resource with the lowest price, of several the first with the shortest."""
        return min(resource_ids, key=lambda resource_id: self.offer(resource_id)[:2])

    def bind(self, resource_ids: Collection[str]) -> None:
        """Replace the resources. The price and the length with others are forgotten."""
        self.resource_ids = list(resource_ids)
        self.override(self.overrides or {})

    def override(self, overrides: dict[str, dict[str, int]]) -> None:
        """Replace the prices and lengths with resources, which have the order of these."""
        self.overrides = {
            resource_id: overrides[resource_id]
            for resource_id in self.resource_ids
            if resource_id in overrides
        } or None

    @property
    def is_prepaid(self) -> bool:
        """Whether it is paid in advance with any of its resources."""
        return bool(self.require_payment) and any(offer.is_prepaid for offer in self.offers())

    @property
    def terms(self) -> PaymentTerms:
        percent, minutes = self.deposit_percent, self.refund_until_min
        return PaymentTerms(
            DEPOSIT_PERCENT if percent is None else int(percent),
            REFUND_UNTIL_MIN if minutes is None else int(minutes),
        )

    @property
    def rules(self) -> ServiceRules:
        least_notice = PREPAID_NOTICE_MIN if self.is_prepaid else 0
        return ServiceRules(
            duration_min=int(self.duration_min),
            step_min=int(self.slot_step_min or self.duration_min),
            buffer_before_min=int(self.buffer_before_min),
            buffer_after_min=int(self.buffer_after_min),
            min_notice_min=max(int(self.min_notice_min), least_notice),
            horizon_days=int(self.horizon_days),
            lengths={
                resource_id: Length(minutes, int(self.slot_step_min or minutes))
                for resource_id in self.overrides or {}
                if (minutes := self.offer(resource_id).duration_min) != self.duration_min
            },
            service_id=self.id,
            fixed_starts=bool(self.fixed_starts),
        )


SERVICES = register_listing(
    Listing(
        row=ServiceRow,
        noun="SERVICE",
        listed_by="svc_list_services",
        unavailable_message="This service does not exist, or it can no longer be booked.",
        text=lambda service: (service.name,),
        status="status",
        facets=("category_id", "site_id", "agent_id"),
        counted=("category_id",),
        partitioned=("category_id",),
        tags=("resource_ids",),
        numbers=("price", "sort_order"),
        price="price",
        events={"service.created": is_new, "service.updated": changes_others()},
        deletion_event="service.deleted",
        sorts={"sortOrder": "n2", "createdAt": "id", "price": "n1", "name": "t"},
        indexes=(
            IN_ORDER,
            SortIndex("price"),
            SortIndex("name"),
            SortIndex("sortOrder", partition_by="status"),
        ),
        lookups=(lookups.id_lookup("SERVICE"),),
        files=SHOWN_IMAGES,
        inline_bytes=NAME_BYTES,
    )
)


def number_at_end(workspace_id: str) -> int:
    """Return the sort order that puts a new service last."""
    last = SERVICES.read_along(workspace_id, IN_ORDER, 1, descending=True)
    return last[0].number + ordering.STEP if last else 0


class Bindings:
    def __init__(self, workspace_id: str, resource_id: str | None = None) -> None:
        # One strongly consistent query of the index entries of services.
        where = SERVICES.having({"resource_ids": resource_id}) if resource_id else None
        self._ids = defaultdict[str, list[str]](list)
        partition = Partition(SERVICES.partition(workspace_id), Cost())
        for item in partition.items(
            index_name=BY_ROW, filter_condition=where, consistent_read=True
        ):
            for token in token_values("resource_ids", tokens=item["c"]["S"] if "c" in item else ""):
                self._ids[token].append(item["sk"]["S"])

    def get_service_ids(self, resource_id: str) -> list[str]:
        # Oldest first.
        # Tags are stored folded in the index entries.
        return self._ids.get(fold(resource_id), [])


def bound_to(workspace_id: str, *, resource_id: str) -> list[str]:
    """Return the ids of the services bound to a resource, oldest first."""
    return Bindings(workspace_id, resource_id).get_service_ids(resource_id)

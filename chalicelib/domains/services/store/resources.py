"""Store resources: staff, rooms and equipment (ADR 20).

A booking's transaction requires the ``ResourceRow.version`` that it read. So every change that
affects bookings increases the version: hours, zone, capacity, status, and the resource's own time
off (``domains.services.store.time_off``). Deletion removes the row. Descriptions and photos
increase the version, too; a concurrent booking then runs again.
"""

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from chalicelib.core.errors import AppError
from chalicelib.domains.files.store.files import SHOWN_IMAGES, ImageMap
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import ProgramRecord
from chalicelib.engine.unit import UnitOfWork

IN_ORDER = SortIndex("sortOrder")


class ResourceRow(ProgramRecord):
    """A resource that services are booked with."""

    name = UnicodeAttribute()
    type = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    images: ListAttribute[ImageMap] = ListAttribute(of=ImageMap, default=list)  # the photo, if any
    timezone = UnicodeAttribute()  # IANA name
    capacity = NumberAttribute()
    status = UnicodeAttribute()
    sort_order = NumberAttribute()


RESOURCES = register_listing(
    Listing(
        row=ResourceRow,
        noun="RESOURCE",
        listed_by="svc_list_resources",
        text=lambda resource: (resource.name,),
        status="status",
        numbers=("sort_order",),
        sorts={"sortOrder": "n1", "name": "t"},
        indexes=(IN_ORDER, SortIndex("sortOrder", partition_by="status")),
        files=SHOWN_IMAGES,
        inline_bytes=NAME_BYTES,
    )
)


def require(unit: UnitOfWork, resource_id: str, *, on_conflict: AppError | None = None) -> None:
    """Require that a resource exists when the unit commits."""
    key = RESOURCES.key(unit.workspace_id, record_id=resource_id)
    unit.require(ResourceRow(key.pk, key.sk), on_conflict=on_conflict)


def require_unchanged(unit: UnitOfWork, resource: ResourceRow) -> None:
    """Require, for a booking, that a resource and its own time off are unchanged at commit."""
    # Concurrent bookings of one resource may conflict and run again, because DynamoDB lets only one
    # transaction at a time check a row.
    unit.require(resource, ResourceRow.version == resource.version)


def number_at_end(workspace_id: str) -> int:
    """Return the sort order that puts a new resource last."""
    last = RESOURCES.read_along(workspace_id, IN_ORDER, 1, descending=True)
    return last[0].number + ordering.STEP if last else 0

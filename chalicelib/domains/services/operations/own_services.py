"""List the services that a member of the staff can be booked for."""

from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.services.store import services
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import SERVICES, ServiceRow


class OwnServicesQuery(Wire):
    """The staff member."""

    resource_id: Id | None = optional("Resource id. Without one, no service is listed.")


class OwnService(Wire):
    """A service that a staff member can be booked for."""

    id: Id = Field(description="Service id.")
    name: str = Field(description="Name of the service.")
    duration_min: int = Field(description="Length in minutes.")
    price: int = Field(description="Price in minor units of the workspace's currency (kopecks).")
    require_payment: bool = Field(description="Whether a booking is held until it is paid.")

    @classmethod
    def having(cls, row: ServiceRow, resource_id: str) -> Self:
        """Return a service with the price and the length of a staff member."""
        offer = row.offer(resource_id)
        return cls.from_row(
            row.values,
            price=offer.price,
            duration_min=offer.duration_min,
            require_payment=offer.is_prepaid,
        )


class OwnServices(Wire):
    """Active services of a staff member."""

    services: list[OwnService] = Field(description="Services in their order.")


@operation(
    title="List one's own services",
    role=Role.MEMBER,
    own=OwnPart(resource="resource_id", is_set=True),
    example={"resourceId": "RESOURCE_ID"},
)
def list_own_services(ctx: Context, args: OwnServicesQuery) -> OwnServices:
    """List the active services that a staff member can be booked for."""
    if args.resource_id is None:
        return OwnServices(services=[])
    RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    ids = services.bound_to(ctx.workspace_id, resource_id=args.resource_id)
    rows = [row for row in SERVICES.fetch(ctx.workspace_id, ids) if row.status == "active"]
    rows.sort(key=lambda row: (row.sort_order, row.id))
    return OwnServices(services=[OwnService.having(row, args.resource_id) for row in rows])

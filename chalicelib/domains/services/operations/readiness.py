"""List the services that cannot be booked, and what each one lacks, and staff without hours."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.opening_hours import ScheduleRow
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow

MAX_SERVICES = 100
ACTIVE = "active"

Lack = Literal[
    "inactive", "no_resource", "inactive_resource", "no_hours", "does_not_fit", "by_phone"
]


class UnbookableQuery(Wire):
    """Services to check."""

    ids: Annotated[list[Id], Field(max_length=MAX_SERVICES)] = Field(description="Service ids.")
    resource_ids: Annotated[list[Id], Field(max_length=MAX_SERVICES)] = Field(
        default=[], description="Resources whose opening hours are checked."
    )


class UnbookableService(Wire):
    """A service that cannot be booked on any day, and the first reason."""

    service_id: Id = Field(description="Service id.")
    reason: Lack = Field(
        description=(
            "inactive; no_resource: bound to none; inactive_resource: bound to inactive ones only; "
            "no_hours: no opening hours; does_not_fit: longer than any opening hours; by_phone: it "
            "requires payment, which visitors cannot make online."
        )
    )
    resource_id: Id | None = Field(description="First resource with the problem, or null.")


class UnbookableServices(Wire):
    """Services that cannot be booked."""

    services: list[UnbookableService] = Field(description="In the order of the ids.")
    resources_without_hours: list[Id] = Field(description="Resources without opening hours.")


@operation(title="List services that cannot be booked", role=Role.MEMBER, example={"ids": []})
def list_unbookable_services(ctx: Context, args: UnbookableQuery) -> UnbookableServices:
    """List the services without slots on any day. Time off and bookings are not considered."""
    services = SERVICES.fetch(ctx.workspace_id, args.ids)
    bound = dict.fromkeys(
        resource_id for service in services for resource_id in service.resource_ids
    )
    pairs = opening_hours.find_with_schedules(ctx.workspace_id, bound) if bound else []
    by_id = {resource.id: (resource, hours) for resource, hours in pairs}
    takes_payments = any(service.is_prepaid for service in services) and (
        merchants.find_current(ctx.workspace_id) is not None
    )
    unbookable = [
        _lack(
            service,
            [by_id[resource_id] for resource_id in service.resource_ids if resource_id in by_id],
            takes_payments=takes_payments,
        )
        for service in services
    ]
    resource_hours = opening_hours.find_with_schedules(ctx.workspace_id, args.resource_ids)
    return UnbookableServices(
        services=[service for service in unbookable if service is not None],
        resources_without_hours=[
            resource.id
            for resource, hours in resource_hours
            if not opening_hours.schedule_of(hours).has_hours
        ],
    )


def _lack(
    service: ServiceRow,
    bound: Sequence[tuple[ResourceRow, ScheduleRow | None]],
    *,
    takes_payments: bool,
) -> UnbookableService | None:
    def lack(reason: Lack, resource: ResourceRow | None = None) -> UnbookableService:
        return UnbookableService(
            service_id=service.id, reason=reason, resource_id=resource.id if resource else None
        )

    if service.status != ACTIVE:
        return lack("inactive")
    if not bound:
        return lack("no_resource")
    active = [(resource, hours) for resource, hours in bound if resource.status == ACTIVE]
    if not active:
        return lack("inactive_resource", bound[0][0])
    opened = [(resource, opening_hours.schedule_of(hours)) for resource, hours in active]
    with_hours = [(resource, hours) for resource, hours in opened if hours.has_hours]
    if not with_hours:
        return lack("no_hours", active[0][0])
    if not any(
        open_windows.fits(hours, service.offer(resource.id).duration_min)
        for resource, hours in with_hours
    ):
        return lack("does_not_fit", with_hours[0][0])
    return lack("by_phone") if service.is_prepaid and not takes_payments else None

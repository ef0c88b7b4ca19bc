"""Delete services, and report the bookings that remain."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.services.store.services import SERVICES

KEPT_AFTER_DELETION = timedelta(days=30)


class ServiceDelete(Wire):
    """Id of a service to delete."""

    id: Id = Field(description="Service id.")
    dry_run: bool = Field(default=False, description="Only report.")


class ServiceDeleted(DeletedResult):
    """Result of a deletion, with the number of remaining bookings."""

    future_bookings: int = Field(description="Upcoming bookings, which stay.")


@operation(
    tool=True,
    rest="POST /api/services/delete",
    scope=Scope.SERVICES_WRITE,
    example={"id": "SERVICE_ID"},
    role=Role.MANAGER,
)
def delete_service(ctx: Context, args: ServiceDelete) -> ServiceDeleted:
    """Delete a service. It has no more slots; its bookings are kept."""
    with deadline.side_by_side() as start:
        count_task = start(lambda: booked_times.future_count(ctx.workspace_id, service_id=args.id))
        service = SERVICES.require(ctx.workspace_id, record_id=args.id)
        upcoming = count_task.result()
    ctx.unit.soft_delete(service, until=clock.now() + KEPT_AFTER_DELETION)
    return ServiceDeleted(id=service.id, deleted=not args.dry_run, future_bookings=upcoming)

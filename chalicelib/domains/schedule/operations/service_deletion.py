"""Delete services, and report the bookings that remain."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire
from chalicelib.domains.bookings.store import booked_times, start_days
from chalicelib.domains.identity.store import directory
from chalicelib.domains.schedule.rules.job_kinds import CLEAR_STARTS
from chalicelib.domains.services.store import dated_starts
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine import jobs
from chalicelib.engine.unit import cascade_over

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
        start(lambda: ctx.unit.rows.read([directory.key(ctx.workspace_id)]))
        count_task = start(lambda: booked_times.future_count(ctx.workspace_id, service_id=args.id))
        service = SERVICES.require(ctx.workspace_id, record_id=args.id)
        upcoming = count_task.result()
    ctx.unit.soft_delete(service, until=clock.now() + KEPT_AFTER_DELETION)
    directory.follow_service(ctx.unit)
    if service.fixed_starts:
        ctx.unit.create_job(jobs.row(CLEAR_STARTS, ctx.workspace_id, {"serviceId": service.id}))
    return ServiceDeleted(id=service.id, deleted=not args.dry_run, future_bookings=upcoming)


@job_handler(CLEAR_STARTS)
def clear_starts(job: Job) -> None:
    """Remove the dates of a deleted service, which keep its resources from other services."""
    rows = dated_starts.between(job.workspace_id, service_id=job.payload["serviceId"], first_ms=0)
    cascade_over(job, rows, start_days.BATCH_SIZE, start_days.remove_all)

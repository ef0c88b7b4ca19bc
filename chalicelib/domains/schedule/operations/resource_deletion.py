"""Delete resources, and keep their upcoming bookings."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConflictError, call
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire
from chalicelib.domains.bookings.store import booked_times, calendar_days, start_days
from chalicelib.domains.schedule.flows import busy_readings
from chalicelib.domains.schedule.store import busy_calendars, calendar_links
from chalicelib.domains.services.store import opening_hours, services, time_off
from chalicelib.domains.services.store.dated_starts import DatedStartRow
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork, cascade_over

KEPT_AFTER_DELETION = timedelta(days=30)
CASCADE = JobKind("resource-cascade")  # unbinds a deleted resource and removes its time off
BATCH_SIZE = 20  # services, or time off, that one transaction of the job changes


class HasFutureBookingsError(ConflictError):
    """The resource has upcoming bookings and cannot be deleted: ``futureBookings``."""

    code = "has_future_bookings"

    def __init__(self, message: str, *, future_bookings: int) -> None:
        super().__init__(message, details={"futureBookings": future_bookings})


class ResourceDelete(Wire):
    """Id of a resource to delete."""

    id: Id = Field(description="Resource id.")
    force: bool = Field(default=False, description="Delete despite upcoming bookings.")
    dry_run: bool = Field(default=False, description="Only report.")


class ResourceDeleted(DeletedResult):
    """Result of a deletion, with the number of remaining bookings."""

    future_bookings: int = Field(description="Upcoming bookings, which stay.")


@operation(
    tool=True,
    rest="POST /api/resources/delete",
    scope=Scope.SERVICES_WRITE,
    example={"id": "RESOURCE_ID", "force": True},
    errors=(HasFutureBookingsError,),
    role=Role.MANAGER,
)
def delete_resource(ctx: Context, args: ResourceDelete) -> ResourceDeleted:
    """Delete a resource. It has no more slots and is unbound from services; its bookings are kept.

    A resource with upcoming bookings requires force (else 409 has_future_bookings).
    """
    with deadline.side_by_side() as start:
        count_task = start(lambda: booked_times.future_count(ctx.workspace_id, resource_id=args.id))
        resource, schedule = opening_hours.require_with_schedule(
            ctx.workspace_id, resource_id=args.id
        )
        upcoming = count_task.result()
    if upcoming and not args.force:
        msg = (
            f"The resource has {upcoming} upcoming booking(s). Move or cancel them "
            f"({call('svc_set_booking_status')}), or send force: true to delete the resource and "
            "keep its bookings."
        )
        if not args.dry_run:
            raise HasFutureBookingsError(msg, future_bookings=upcoming)
        ctx.warn(
            f"Without force, this call would be refused: {msg}",
            code=WarningCode.FORCE_REQUIRED,
            error=HasFutureBookingsError.code,
            count=upcoming,
        )
    opening_hours.stage_deletion(ctx.unit, resource, schedule, retention=KEPT_AFTER_DELETION)
    calendar_links.stage_deletion(ctx.unit, resource.id)
    busy_calendars.stage_deletion(ctx.unit, resource.id)
    ctx.unit.create_job(jobs.row(CASCADE, ctx.workspace_id, {"resourceId": resource.id}))
    return ResourceDeleted(id=resource.id, deleted=not args.dry_run, future_bookings=upcoming)


@job_handler(CASCADE)
def release(job: Job) -> None:
    """Unbind services from a deleted resource, and remove its time off, busy times and dates."""
    # The job runs right after the deletion. If it fails, the job runner repeats it. Meanwhile, no
    # service can be bound to the deleted resource.
    workspace_id, resource_id = job.workspace_id, job.payload["resourceId"]
    with deadline.side_by_side() as start:
        own_time_off = start(lambda: time_off.all_of(workspace_id, resource_id=resource_id))
        bound = services.bound_to(workspace_id, resource_id=resource_id)
    cascade_over(job, bound, BATCH_SIZE, partial(_unbind, resource_id))
    cascade_over(job, [absence.id for absence in own_time_off.result()], BATCH_SIZE, _remove)
    kept = calendar_days.read_kept(workspace_id, resource_id=resource_id)
    busy_readings.clear_read_days(workspace_id, resource_id, kept)
    dates = [DatedStartRow.of(workspace_id, resource_id, dated) for dated in kept.starts]
    cascade_over(job, dates, start_days.BATCH_SIZE, start_days.remove_all)


def _unbind(resource_id: str, unit: UnitOfWork, service_ids: Sequence[str]) -> None:
    for service in SERVICES.fetch(unit.workspace_id, service_ids):
        if resource_id in service.resource_ids:
            service.bind([bound_id for bound_id in service.resource_ids if bound_id != resource_id])
            unit.save(service)


def _remove(unit: UnitOfWork, time_off_ids: Sequence[str]) -> None:
    for row in time_off.find_all(unit.workspace_id, time_off_ids):
        time_off.stage_deletion(unit, row, None)

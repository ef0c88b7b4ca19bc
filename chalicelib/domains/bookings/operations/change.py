"""Cancel and move bookings, and set their other statuses."""

from dataclasses import replace
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.errors import ExternalIdTakenError, VersionConflictError
from chalicelib.core.operations import operation
from chalicelib.core.own_part import not_only_own
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    EXTERNAL_ID,
    METADATA,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.schema import (
    IF_VERSION,
    Id,
    IfVersion,
    Patch,
    Wire,
    has_at_least_one,
    optional,
)
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import booking_changes
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.flows.booking_out import OWN_BOOKING, BookingRef
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.operations.reading import (
    BookingResult,
    BookingWithHistory,
    BookingWritten,
)
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, VISITED, BookingRow, BookingStatus
from chalicelib.engine.unit import UnitOfWork


def _resource_to_change(unit: UnitOfWork, args: "BookingStatusSet | BookingReschedule") -> str:
    # A visit with services of others moves, and is cancelled, as one. This is refused first, since
    # the times of others must not be found either.
    booking = BOOKINGS.found(
        unit.rows.find(BookingRow, BOOKINGS.key(unit.workspace_id, record_id=args.id))
    )
    is_move = booking_changes.may_move(booking, _requested(args, ""))
    statuses = {booking.status, getattr(args, "status", booking.status)}
    is_whole = is_move or getattr(args, "whole_visit", False) or not statuses <= VISITED
    if booking.visit and is_whole:
        visit = bookings.visit_of(unit.workspace_id, booking, unit.rows)
        if {each.resource_id for each in visit} - {booking.resource_id}:
            raise not_only_own()
    resource_id: str = booking.resource_id
    return resource_id


# A member of the staff moves a booking to another time, and not to another member.
OWN_CHANGE = replace(
    OWN_BOOKING,
    record=_resource_to_change,
    resource="resource_id",
    fixed={"include_manage_url": False},
)

ReasonText = Annotated[str, StringConstraints(max_length=500)]


class BookingMoveTo(Wire):
    """New start or resource of a booking."""

    start_at: When | None = optional("New start.")
    resource_id: Id | None = optional("New resource.")
    ignore_schedule: bool = Field(default=False, description="As in svc_create_booking.")
    if_version: IfVersion | None = IF_VERSION
    include_manage_url: bool = Field(default=False, description="For tools: return manageUrl.")


class BookingStatusSet(BookingMoveTo):
    """New status of a booking, and optionally a new start or resource.

    A visit has one status, except that each of its bookings may be completed or no_show.
    """

    id: Id = Field(description="Booking id.")
    status: BookingStatus = Field(description="To only move it, send its current status.")
    reason: ReasonText | None = optional("Kept in the history.")
    whole_visit: bool = Field(
        default=False, description="Set completed or no_show for its whole visit."
    )


class BookingReschedule(BookingMoveTo):
    """A booking to move, and its new start or resource."""

    AT_LEAST_ONE_OF = ("start_at", "resource_id")

    id: Id = Field(description="Booking id.")

    @model_validator(mode="after")
    def _require_new_place(self) -> Self:
        if not has_at_least_one(self):
            raise PydanticCustomError("no_changes", "expected startAt, resourceId or both")
        return self


@operation(
    tool=True,
    rest="POST /api/bookings/set-status",
    scope=Scope.BOOKINGS_WRITE,
    title="Set a booking's status, or move it",
    idempotent=True,
    destructive=True,
    example={"id": "BOOKING_ID", "status": "completed", "reason": "Came"},
    errors=(SlotUnavailableError, VersionConflictError),
    role=Role.MEMBER,
    own=OWN_CHANGE,
)
def set_booking_status(ctx: Context, args: BookingStatusSet) -> BookingWritten:
    """Set any status of a booking; with startAt or resourceId, move it.

    To reactivate a cancelled booking, its time must be free (else 409 slot_unavailable).
    """
    return _change_booking(ctx, args, args.status, args.reason, whole_visit=args.whole_visit)


@operation(
    rest="POST /api/bookings/reschedule",
    scope=Scope.BOOKINGS_WRITE,
    title="Move a booking",
    idempotent=True,
    destructive=True,
    example={"id": "BOOKING_ID", "startAt": "2027-03-02T15:00", "ignoreSchedule": True},
    errors=(SlotUnavailableError, VersionConflictError),
    role=Role.MEMBER,
    own=OWN_CHANGE,
)
def reschedule_booking(ctx: Context, args: BookingReschedule) -> BookingWritten:
    """Move a booking to another start, another resource, or both. Its status stays."""
    return _change_booking(ctx, args, None, None)


class BookingPatch(Patch, BookingRef):
    """Changes to what a program keeps with a booking."""

    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA
    if_version: IfVersion = IF_VERSION


@operation(
    rest="POST /api/bookings/update",
    scope=Scope.BOOKINGS_WRITE,
    idempotent=True,
    example={"id": "BOOKING_ID", "externalId": "visit-42", "metadata": {"chair": "2"}},
    errors=(ExternalIdTakenError, VersionConflictError),
)
def update_booking(ctx: Context, args: BookingPatch) -> BookingResult:
    """Set the externalId and the metadata of a booking, such as one that a visitor has made.

    The client is not told. Move a booking with POST /api/bookings/reschedule.
    """
    row, events = bookings.read_with_history(ctx.unit, args.id)
    row.require_version(args.if_version)
    changes = args.changes
    merge_metadata(changes, row.metadata)
    for name, value in changes.items():
        setattr(row, name, value)
    ctx.unit.save(row)
    return BookingResult(booking=BookingWithHistory.having(row, events))


def _requested(args: BookingMoveTo, actor: str) -> BookingChange:
    return BookingChange(
        actor=actor,
        start=args.start_at,
        resource_id=args.resource_id,
        ignores_schedule=args.ignore_schedule,
    )


def _change_booking(
    ctx: Context,
    args: BookingStatusSet | BookingReschedule,
    status: BookingStatus | None,
    reason: str | None,
    *,
    whole_visit: bool = False,
) -> BookingWritten:
    row, events = bookings.read_with_history(ctx.unit, args.id)
    row.require_version(args.if_version)
    event = booking_changes.change(
        ctx.unit,
        row,
        _requested(args, ctx.principal.audit_actor)._replace(
            status=status, reason=reason or None, whole_visit=whole_visit
        ),
    )
    history = [*events, *([event] if event else [])]
    return BookingWritten.having(ctx, row, history, has_links=args.include_manage_url)

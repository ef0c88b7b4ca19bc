"""Return what a new workspace still needs before its clients can book."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, NoInput, Wire
from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.bookings.store.bookings import BOOKINGS, VISITOR_SOURCES
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import SERVICES

MAX_ROWS = 20
"""Maximum number of newest services, members of the staff and bookings that are considered."""


class FirstSteps(Wire):
    """The state of each step, with the record that its page is about."""

    slug: str = Field(
        description="The workspace's slug, which the booking page's address contains."
    )
    service_id: Id | None = Field(description="A service, or null.")
    resource_id: Id | None = Field(description="A member of the staff, or null.")
    has_details: bool = Field(description="Whether clients see an address or a phone.")
    has_service: bool = Field(description="Whether there is a service.")
    has_hours: bool = Field(description="Whether a member of the staff has opening hours.")
    has_photo: bool = Field(description="Whether a service or a member of the staff has a photo.")
    has_booking_page: bool = Field(
        description="Whether the booking page is on and offers services."
    )
    is_shared: bool = Field(description="Whether a client has booked online.")


@operation(title="Get the first steps of a workspace", role=Role.MEMBER)
def get_first_steps(ctx: Context, args: NoInput) -> FirstSteps:
    """Return which of the steps to the first booking are done, in half a dozen small reads."""
    workspace = workspaces.get(ctx.workspace_id)
    services = SERVICES.latest(workspace.id, MAX_ROWS)
    staff = RESOURCES.latest(workspace.id, MAX_ROWS)
    with_hours = opening_hours.find_with_schedules(workspace.id, [row.id for row in staff])
    page = BookingPageRow.read(workspace.id)
    return FirstSteps(
        slug=workspace.slug,
        service_id=services[0].id if services else None,
        resource_id=staff[0].id if staff else None,
        has_details=bool(workspace.address or workspace.phone),
        has_service=bool(services),
        has_hours=any(opening_hours.schedule_of(hours).has_hours for _, hours in with_hours),
        has_photo=any(row.images for row in services) or any(row.images for row in staff),
        has_booking_page=page.is_on and bool(page.service_ids),
        is_shared=any(
            booking.source in VISITOR_SOURCES for booking in BOOKINGS.latest(workspace.id, MAX_ROWS)
        ),
    )


class FirstStepsDismissed(Wire):
    """A workspace whose first steps are not shown any more."""

    workspace_id: Id = Field(description="Workspace id.")


@operation(title="Dismiss the first steps", role=Role.MANAGER, idempotent=True)
def dismiss_first_steps(ctx: Context, args: NoInput) -> FirstStepsDismissed:
    """Show the first steps of the workspace no more, to no member."""
    workspace = workspaces.get(ctx.workspace_id)
    if workspace.steps_dismissed_at is None:
        workspace.steps_dismissed_at = clock.now()
        ctx.unit.save(workspace)
        ctx.unit.mention(f"workspace:{workspace.id}")
    return FirstStepsDismissed(workspace_id=workspace.id)

"""Let a client download a booking's calendar file."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, ServedAs, operation
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.booking_page.operations.cancel_and_move import TokenText
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.identity.store import workspaces

CALENDAR_FILES = Limit("public-calendar", "calendar files per minute", 60, timedelta(minutes=1))


class CalendarFileRef(Wire):
    """Name of a calendar file."""

    file: TokenText = Field(description="File name: the last part of icsUrl.")


class CalendarFile(Wire):
    """A calendar file."""

    content: str = Field(description="iCalendar (RFC 5545).")


@operation(
    rest="GET /api/public/bookings/{file}",
    title="Get a booking's calendar file",
    audience=PUBLIC,
    resolve=lambda args: booking_links.parse(_token(args)).workspace_id,
    limit=CALENDAR_FILES,
    served_as=ServedAs.CALENDAR_FILE,
    example={"file": "CALENDAR_FILE"},
    while_halted=True,
)
def get_booking_calendar(ctx: Context, args: CalendarFileRef) -> CalendarFile:
    """Return a booking as an iCalendar file. Calendars replace an earlier copy with it."""
    with deadline.side_by_side() as start:
        workspace = start(lambda: workspaces.get(ctx.workspace_id))
        row = booking_links.booking_of(_token(args), Purpose.CALENDAR)
    file = booking_links.calendar_file(
        ctx.workspace_id, workspace=workspace.result().name, booking=row
    )
    return CalendarFile(content=file.decode())


def _token(args: CalendarFileRef) -> str:
    return args.file.removesuffix(booking_links.FILE_SUFFIX)

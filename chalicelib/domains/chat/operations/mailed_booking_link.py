"""The link in an e-mail that books what a visitor has requested.

The link is a page of the service, so the operation has no REST route. It is in this domain because
the booking may be a bot's proposal, which ends in the same transaction.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.booking_page.flows import book_for_visitor
from chalicelib.domains.booking_page.flows.book_for_visitor import ChangedError
from chalicelib.domains.booking_page.flows.public_booking import PublicBookingOut
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.chat.operations import actions

BOOKINGS = Limit("link-bookings", "bookings with links per minute", 30, timedelta(minutes=1))


class BookingLinkRef(Wire):
    """The token of a link that books."""

    token: Annotated[str, StringConstraints(max_length=100)] = Field(
        description="Token of the link."
    )


class BookedByLink(Wire):
    """A booking that a link has made."""

    booking: PublicBookingOut = Field(description="The booking.")
    manage_url: str = Field(description="URL of the page that moves and cancels it. A secret.")


def _workspace(args: BookingLinkRef) -> str:
    return booking_links.parse(args.token).workspace_id


@operation(
    title="Book by a mail's link",
    audience=PUBLIC,
    resolve=_workspace,
    limit=BOOKINGS,
    errors=(ChangedError, SlotUnavailableError),
)
def book_by_link(ctx: Context, args: BookingLinkRef) -> BookedByLink:
    """Book what a visitor has requested. The link proves the visitor's address, and works once."""
    requested, new_booking = book_for_visitor.book_by_link(ctx, args.token)
    if requested.proposal is not None:
        actions.stage_booked(ctx, requested.proposal, new_booking)
    manage_url = booking_links.page_url(ctx.workspace_id, new_booking.row) or ""
    return BookedByLink(
        booking=PublicBookingOut.from_record(new_booking.row), manage_url=manage_url
    )

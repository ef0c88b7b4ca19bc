"""What a visitor may use of what all visitors of a workspace share (ADR 74)."""

from collections.abc import Iterable
from datetime import timedelta

from chalicelib.application.context import Context
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.domains.booking_page.store import visitor_bookings
from chalicelib.domains.booking_page.store.visitor_bookings import VisitorBookingsRow
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine import limits
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import mail

UNPROVED = Limit("unproved", "bookings per hour without e-mail confirmation", 3, timedelta(hours=1))
"""Bookings of one visitor whose address is not proved. Refused ones do not count."""
LINKS_PER_DAY = Limit("booking-links", "booking links by e-mail per day", 10, timedelta(days=1))
"""E-mails with links that one visitor may cause."""
BOOKINGS_PER_DAY = Limit("public-bookings-day", "bookings a day", 200, timedelta(days=1))
"""Bookings per day from one visitor.

If the rate limiter is unavailable, requests are refused. ``BOOKING_CHANGES`` does the same.
"""
MAX_UPCOMING = 5
"""Maximum number of upcoming bookings that one visitor may make for one contact in a workspace.

The limit also applies to bookings by links for one e-mail address.
"""
MAX_HOLDS = 2
"""Maximum number of unpaid bookings of one visitor in a workspace, whatever their contacts."""
RETRY_AFTER = timedelta(hours=1)
"""Retry-After of a refused request. It is constant, so that it reveals nothing."""


def limits_of_unproved(ctx: Context, service: ServiceRow) -> list[tuple[Limit, str]]:
    """Return the limits on bookings without a proof, with their subjects."""
    shared = _unverified(service)
    return [
        *limits.visitor_limits(UNPROVED, ctx.principal.share_subjects, shared),
        (shared, service.id),
    ]


def require_mail(
    unit: UnitOfWork, address: str | None, used_up: tuple[Limit, str], rows: Rows
) -> None:
    """Require that a link can be mailed to a visitor, with the error of the used-up limit.

    Raises:
        RateLimitedError: there is no address, mail is not set up, or the address gets no link.
    """
    if address and not mail_gate.is_blocked(address, unit.tenant, "link"):
        return
    try:
        limits.stage(unit, *used_up, rows)
    except RateLimitedError as error:
        if mail.is_on() and not address:
            error.message += (
                " Or send client.email, and confirm the booking with the link in the e-mail."
            )
        raise


def _unverified(service: ServiceRow) -> Limit:
    """Return the limit on visitors' bookings of a service.

    Their contacts are not proved.
    """
    return Limit(
        "unverified",
        "bookings of this service per hour without e-mail confirmation",
        int(service.unverified_per_hour),
        timedelta(hours=1),
        share=UNPROVED,
    )


def take_daily_limit(ctx: Context) -> None:
    """Count a request of the day, once for all attempts of its unit."""
    # A retry of the unit must not count the visitor's request a second time.
    ctx.unit.run_side_effect_once(
        "day", lambda: limits.take(BOOKINGS_PER_DAY, ctx.principal.rate_limit_key)
    )


def check_upcoming(ctx: Context, earlier: Iterable[VisitorBookingsRow], rows: Rows) -> None:
    """Drop the bookings that are over from full rows of earlier ones, one row for each contact.

    The row of unpaid bookings then contains only these bookings.

    Bookings of other visitors for the same contact do not count, and every refusal is the same.
    Therefore a visitor cannot learn about the contact of another client, or prevent that client
    from booking. The caller saves these rows with the new booking. Of several concurrent requests
    one commits, and the others run again.

    Raises:
        RateLimitedError: the visitor has too many upcoming bookings or unpaid holds.
    """
    holds = visitor_bookings.holds_key(ctx.workspace_id, ctx.principal.rate_limit_key).sk
    for row in earlier:
        max_upcoming = MAX_HOLDS if row.sk == holds else MAX_UPCOMING
        if len(row.ids) < max_upcoming:
            continue
        upcoming = bookings.upcoming(ctx.workspace_id, row.ids, rows)
        if row.sk == holds:
            upcoming = [
                booking_row for booking_row in upcoming if booking_row.hold_expires_at is not None
            ]
        row.ids = [booking_row.id for booking_row in upcoming]
        if len(upcoming) >= max_upcoming:
            msg = (
                "These contact details already have the maximum number of upcoming bookings. "
                "Cancel one of the bookings, or try again later."
            )
            wait = round(RETRY_AFTER.total_seconds())
            raise RateLimitedError(msg, headers={"Retry-After": str(wait)})

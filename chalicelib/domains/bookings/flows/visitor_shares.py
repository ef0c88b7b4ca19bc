"""What a visitor whose address is not proved may use of what all visitors share (ADR 74)."""

from datetime import timedelta

from chalicelib.application.context import Context
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.domains.bookings.store.services import ServiceRow
from chalicelib.engine import limits
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import mail

UNPROVED = Limit("unproved", "bookings an hour without a mail's link", 3, timedelta(hours=1))
"""Bookings of one visitor whose address is not proved. Refused ones do not count."""
LINKS_PER_DAY = Limit("booking-links", "mailed booking links a day", 10, timedelta(days=1))
"""Mails with links that one visitor may cause."""


def unproved(ctx: Context, service: ServiceRow) -> list[tuple[Limit, str]]:
    """Return the limits on bookings without a proof, with their subjects."""
    shared = _unverified(service)
    return [
        *limits.of_visitor(UNPROVED, ctx.principal.share_subjects, shared),
        (shared, service.id),
    ]


def require_mail(
    unit: UnitOfWork, address: str | None, used_up: tuple[Limit, str], rows: Rows
) -> None:
    """Require that a link can be mailed to a visitor, with the error of the used-up limit.

    Raises:
        RateLimitedError: there is no address, or mail is not set up.
    """
    if mail.is_on() and address and mail.takes(address):
        return
    try:
        limits.stage(unit, *used_up, rows)
    except RateLimitedError as error:
        if mail.is_on() and not address:
            error.message += " Or send client.email, and confirm by the link in a mail."
        raise


def _unverified(service: ServiceRow) -> Limit:
    """Return the limit on visitors' bookings of a service. Their contacts are not proved."""
    return Limit(
        "unverified",
        "bookings of this service an hour without a mail's link",
        int(service.unverified_per_hour),
        timedelta(hours=1),
        share=UNPROVED,
    )

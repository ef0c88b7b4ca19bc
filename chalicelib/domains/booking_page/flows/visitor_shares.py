"""Limit what a visitor may use of what all visitors of a workspace share (ADR 74)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from chalicelib.application.context import Context
from chalicelib.core.errors import AppError, RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.rules.refusals import Reason
from chalicelib.domains.booking_page.store import visitor_bookings
from chalicelib.domains.booking_page.store.visitor_bookings import VisitorBookingsRow
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine import limits
from chalicelib.engine.claims import exact_hash
from chalicelib.engine.reading import Key, Rows
from chalicelib.gateways import mail
from chalicelib.lib import emails

# Bookings of one visitor whose address is not proved. Refused ones do not count. Many people may
# have one address, such as the guests of a salon or the clients of a carrier.
UNPROVED = Limit(
    "unproved", "bookings per hour without e-mail confirmation", 20, timedelta(hours=1)
)
# Bookings of one visitor for one contact. Bookings of other visitors for it do not count.
UNPROVED_OF_CONTACT = Limit(
    "unproved-contact",
    "bookings per hour for the same contact details without e-mail confirmation",
    3,
    timedelta(hours=1),
)
# E-mails with links that one visitor may cause.
LINKS_PER_DAY = Limit("booking-links", "booking links by e-mail per day", 10, timedelta(days=1))
# From one visitor. If the rate limiter is unavailable, requests are refused. ``BOOKING_CHANGES``
# does the same.
BOOKINGS_PER_DAY = Limit("public-bookings-day", "bookings a day", 200, timedelta(days=1))
# Upcoming bookings that one visitor may make for one contact in a workspace, and bookings by links
# for one e-mail address. A network has ten times as many.
MAX_UPCOMING = 5
# Unpaid bookings of one visitor in a workspace, whatever their contacts. A network has ten times as
# many.
MAX_HOLDS = 2
RETRY_AFTER = timedelta(hours=1)  # of a refused request; constant, so that it reveals nothing
_REASONS: dict[str, Reason] = {
    UNPROVED_OF_CONTACT.name: "contact",
    UNPROVED.name: "connection",
    "unverified": "service",
}
_TOO_MANY: dict[Reason, str] = {
    "upcoming": (
        "{count} upcoming bookings were already made from your network with these contact details. "
        "Cancel one of them, or try again later."
    ),
    "holds": (
        "{count} bookings that were made from your network are not paid yet. Pay or cancel one of "
        "them, or wait until one expires."
    ),
}


class BookingLimitError(RateLimitedError):
    """Too many bookings of the visitor, the contact or the service. ``key`` says of which.

    ``reason`` is the same. ``phone`` is the phone to call, or null. ``byMail`` says whether the
    visitor can book by a link if the request has an e-mail address.
    """

    def __init__(
        self,
        refusal: RateLimitedError,
        reason: Reason,
        workspace: WorkspaceRow,
        rows: Rows,
        *,
        by_mail: bool = False,
    ) -> None:
        phone = open_page.phone_of(workspace, rows)
        msg = refusal.message
        if by_mail:
            msg += " Or send client.email, and confirm the booking with the link in the e-mail."
        if phone:
            msg += f" Or call {phone}."
        details = {"reason": reason, "phone": phone, "byMail": by_mail}
        super().__init__(msg, key=reason, details=details, headers=refusal.headers)


def refused_request(refusal: AppError, workspace_id: str) -> AppError:
    """Return the error for a request over a limit of requests, with the phone to call."""
    if not isinstance(refusal, RateLimitedError):
        return refusal
    return BookingLimitError(refusal, "requests", workspaces.get(workspace_id), Rows())


class UpcomingShare(NamedTuple):
    """How many upcoming bookings a visitor or its network may have."""

    key: Key  # of their row
    max_upcoming: int
    reason: Reason  # For ``holds`` only unpaid ones count.


def limits_of_unproved(
    ctx: Context, services: Sequence[ServiceRow], contacts: Iterable[str | None]
) -> list[tuple[Limit, str]]:
    """Return the limits on bookings for contacts without a proof, with their subjects.

    A visit of several services is one booking of its visitor, and one of each service.
    """
    of_services = {service.id: _unverified(service) for service in services}
    shared = min(of_services.values(), key=lambda limit: limit.max_requests)
    subjects = ctx.principal.share_subjects
    # One visitor should not use up what a service takes, but a family may always book.
    part = max(UNPROVED_OF_CONTACT.max_requests, shared.max_requests // 2)
    own = replace(UNPROVED, max_requests=min(UNPROVED.max_requests, part))
    counters = []
    for contact in filter(None, contacts):
        suffix = f"#{exact_hash(emails.key(contact))}"
        contact_subjects = [subject + suffix for subject in subjects]
        counters += limits.visitor_limits(UNPROVED_OF_CONTACT, contact_subjects, shared)
    counters += limits.visitor_limits(own, subjects, shared)
    return [*counters, *((limit, service_id) for service_id, limit in of_services.items())]


def require_mail(
    workspace: WorkspaceRow, address: str | None, used_up: tuple[Limit, str], rows: Rows
) -> None:
    """Raise the BookingLimitError of a used-up limit unless a link can be mailed to a visitor."""
    if address and not mail_gate.is_blocked(address, workspace_id=workspace.id, mail_class="link"):
        return
    limit, subject = used_up
    reason = _REASONS[limit.name.removesuffix(limits.NETWORK_SUFFIX)]
    by_mail = mail.is_on() and not address
    refused = limits.refusal(limit, subject)
    raise BookingLimitError(refused, reason, workspace, rows, by_mail=by_mail)


def _unverified(service: ServiceRow) -> Limit:
    # The contacts of these bookings are not proved.
    return Limit(
        "unverified",
        "bookings of this service per hour without e-mail confirmation",
        int(service.unverified_per_hour),
        timedelta(hours=1),
        share=UNPROVED,
    )


def take_daily_limit(ctx: Context) -> None:
    """Count a request of the day, once for all attempts of its unit.

    Raises:
        BookingLimitError: the visitor or the network has sent too many requests today.
    """
    try:
        # A retry of the unit must not count the visitor's request a second time.
        ctx.unit.run_side_effect_once(
            "day", lambda: limits.take_share(BOOKINGS_PER_DAY, ctx.principal.share_subjects)
        )
    except RateLimitedError as error:
        raise refused_request(error, ctx.workspace_id) from None


def upcoming_shares(
    workspace_id: str, subjects: Sequence[str], contacts: Iterable[str | None]
) -> list[UpcomingShare]:
    """Return the shares of upcoming bookings for contacts. ``subjects`` begin with the visitor."""
    contacts = list(contacts)
    return [
        UpcomingShare(key, max_upcoming, "upcoming")
        for subject, max_upcoming in _with_network(subjects, MAX_UPCOMING)
        for key in visitor_bookings.visitor_keys(workspace_id, visitor=subject, contacts=contacts)
    ]


def hold_shares(workspace_id: str, subjects: Sequence[str]) -> list[UpcomingShare]:
    """Return the shares of unpaid bookings. ``subjects`` begin with the visitor."""
    return [
        UpcomingShare(visitor_bookings.holds_key(workspace_id, visitor=subject), max_holds, "holds")
        for subject, max_holds in _with_network(subjects, MAX_HOLDS)
    ]


def _with_network(subjects: Sequence[str], maximum: int) -> Iterator[tuple[str, int]]:
    return zip(subjects, (maximum, limits.NETWORK_SHARES * maximum), strict=False)


def check_upcoming(
    workspace: WorkspaceRow, shares: Iterable[UpcomingShare], rows: Rows
) -> list[VisitorBookingsRow]:
    """Return the rows of shares, to save with the new booking, or raise BookingLimitError.

    Bookings of other visitors for the same contact do not count. Therefore a visitor cannot learn
    about the contact of another client, or prevent that client from booking. Of several concurrent
    requests one commits, and the others run again.
    """
    made = []
    for key, max_upcoming, reason in shares:
        row = visitor_bookings.made_by_visitor(key, rows)
        made.append(row)
        if len(row.ids) < max_upcoming:
            continue
        upcoming = bookings.upcoming(workspace.id, row.ids, rows)
        # A full row loses what is over.
        row.ids = [
            booking_row.id
            for booking_row in upcoming
            if reason != "holds" or booking_row.hold_expires_at is not None
        ]
        if len(row.ids) >= max_upcoming:
            msg = _TOO_MANY[reason].format(count=max_upcoming)
            headers = {"Retry-After": str(round(RETRY_AFTER.total_seconds()))}
            refused = RateLimitedError(msg, key=reason, headers=headers)
            raise BookingLimitError(refused, reason, workspace, rows)
    return made

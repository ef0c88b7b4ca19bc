"""Let a client read, cancel and move a booking by its link."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.core.limits import Limit
from chalicelib.core.messengers import Messenger
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.booking_page.flows import open_page, slot_months
from chalicelib.domains.booking_page.flows.book_for_visitor import ChangedError
from chalicelib.domains.booking_page.flows.public_booking import (
    MESSENGERS_OFFERED,
    BookingLinks,
    PublicBookingOut,
)
from chalicelib.domains.booking_page.flows.slot_months import MonthOfSlots, MonthQuery
from chalicelib.domains.booking_page.rules import repeat_links
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.bookings.flows import (
    booking_changes,
    booking_links,
    booking_payments,
    rest_to_pay,
    slot_search,
    visit_search,
)
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.flows.booking_payments import RefundState
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.flows.slot_search import ACTIVE, Search
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import UPCOMING, BookingRow, EventRow
from chalicelib.domains.clients.flows import advertising_links, messenger_offers
from chalicelib.domains.clients.flows.advertising_links import Recipient
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.sites.store.sites import SUSPENDED
from chalicelib.engine.reading import Rows

BOOKING_CHANGES = Limit(
    "public-bookings", "bookings and cancellations per minute", 30, timedelta(minutes=1)
)
TokenText = Annotated[str, StringConstraints(max_length=100)]
VIEWS = Limit(
    "manage-booking", "views of booking links per minute", 60, timedelta(minutes=1), fails_open=True
)
MAX_MOVES = 5  # by the client


class BookingStartedError(ConflictError):
    """The booking has begun, so its visitor can no longer cancel it."""

    code = "booking_started"


class PublicCancellation(Wire):
    """Token of a booking to cancel."""

    token: TokenText = Field(description="cancelToken, or the end of manageUrl.")
    refund: Annotated[int, Field(ge=0)] | None = optional(
        "Refund that was shown. If it differs: 409 changed."
    )
    dry_run: bool = Field(default=False, description="Only return the booking.")


class PublicBookingResult(Wire):
    """A booking."""

    booking: PublicBookingOut = Field(description="The booking.")


@operation(
    rest="POST /api/public/bookings/cancel",
    title="Cancel a booking",
    audience=PUBLIC,
    resolve=lambda args: booking_links.parse(args.token).workspace_id,
    limit=BOOKING_CHANGES,
    idempotent=True,
    destructive=True,
    example={"token": "CANCEL_TOKEN"},
    errors=(BookingStartedError, ChangedError),
    while_halted=True,
)
def cancel_public_booking(ctx: Context, args: PublicCancellation) -> PublicBookingResult:
    """Cancel a booking before it begins. Cancelling it again has no effect.

    The client gets the refund that the service's terms allow. A token from a key's response refunds
    nothing.
    """
    row = booking_links.booking_of(args.token, Purpose.CANCEL, *booking_links.MANAGING)
    if row.status != "cancelled":
        if row.starts_at <= clock.now():
            msg = "This booking has already begun and can no longer be cancelled."
            raise BookingStartedError(msg)
        is_shared = booking_links.is_shared(args.token, row)
        if args.refund is not None:
            _require_shown_refund(ctx.workspace_id, row, args.refund, is_shared=is_shared)
        if not args.dry_run:
            if not is_shared:
                booking_payments.stage_refund_for_client(ctx.unit, row, ctx.principal.audit_actor)
            booking_changes.change(
                ctx.unit, row, BookingChange(ctx.principal.audit_actor, "cancelled")
            )
    visit = bookings.visit_of(ctx.workspace_id, row, ctx.unit.rows)
    return PublicBookingResult(booking=PublicBookingOut.from_visit(visit))


def _require_shown_refund(
    workspace_id: str, row: BookingRow, shown: int, *, is_shared: bool
) -> None:
    payment = None if is_shared else booking_payments.payment_of(workspace_id, row)
    refund = booking_payments.refund_for_client(row, payment)
    if refund != shown:
        msg = "The refund has changed since it was shown. Check the new value, and cancel again."
        raise ChangedError(msg, details={"refund": refund}, key="refund_changed")


class MoveRefusedError(ConflictError):
    """The booking cannot be moved: it is cancelled, was moved too often, or is not offered now.

    With the key ``too_many_moves``, ``maximum`` is the largest number of moves.
    """

    code = "move_refused"


class ManagedBookingRef(Wire):
    """The token of a booking's link."""

    token: TokenText = Field(description="The end of manageUrl, after the last slash.")


class PublicBookingMoved(BookingLinks):
    """A booking that was moved, with its links."""

    booking: PublicBookingOut = Field(description="The booking.")


class ResourceLength(Wire):
    """How long a booking takes after a move to another resource."""

    resource_id: Id = Field(description="Resource id.")
    duration_min: int = Field(description="Length in minutes.")

    @classmethod
    def several(cls, service: ServiceRow, row: BookingRow) -> list[Self]:
        lengths = slot_search.rules_of(service, row).lengths
        return [
            cls(resource_id=resource_id, duration_min=length.duration_min)
            for resource_id, length in lengths.items()
            if length.duration_min != row.duration_min
        ]


class ManagedBooking(BookingLinks):
    """A booking as its client sees it, without contacts."""

    booking: PublicBookingOut = Field(description="The booking.")
    workspace_name: str = Field(description="Name of the workspace.")
    messengers: list[Messenger] = Field(description=MESSENGERS_OFFERED)
    is_test: bool = Field(description="Whether it is a booking of a test workspace.")
    service_id: Id = Field(description="Service id.")
    resource_id: Id = Field(description="Resource id.")
    duration_min: int = Field(description="Length in minutes.")
    can_cancel: bool = Field(description="Whether the client may cancel it now.")
    can_move: bool = Field(description="Whether the client may move it now.")
    has_other_resources: bool = Field(description="Whether the service has other staff, too.")
    other_lengths: list[ResourceLength] = Field(
        description="Resources with which it takes another time after a move."
    )
    moves_left: int = Field(description="How often the client may still move it.")
    paid: int | None = Field(description="Minor units paid in advance and not returned, or null.")
    amount_left: int = Field(
        description="Minor units (kopecks) to pay at the visit, if some are paid in advance."
    )
    refund_until: Timestamp | None = Field(
        description="Until when a cancellation is refunded, or null."
    )
    refund: int = Field(description="Minor units (kopecks) refunded if the client cancels now.")
    refund_state: RefundState | None = Field(
        description="failed, returning, returned or null: state of the money that is returned."
    )
    refund_amount: int | None = Field(description="Minor units that are returned, or null.")
    refund_reason: str | None = Field(description="cancelled, late, twice, business or null.")
    asks_business: bool = Field(
        description="Whether only the business can refund: a program has made the link, or the "
        "payment came from another stage."
    )
    repeat_url: str | None = Field(
        description="URL of the page that books the services with the same staff, or null."
    )
    advertising_url: str | None = Field(
        description="URL of the page on which the client withdraws the consent to advertising, or "
        "null without a consent."
    )

    @classmethod
    def read(cls, workspace_id: str, row: BookingRow, *, is_shared: bool) -> Self:
        workspace, visit = workspaces.get(workspace_id), bookings.visit_of(workspace_id, row)
        service, repeat_url = _service_and_page(workspace, row, visit)
        is_open = row.status in UPCOMING and row.starts_at > clock.now()
        payment = booking_payments.payment_of(workspace_id, row)
        kept = booking_payments.kept_in_time(row, payment) if is_open else 0
        back = booking_payments.refund_for_client(row, payment) if is_open and not is_shared else 0
        if payment is not None and row.status == "cancelled" and (payment.is_imported or is_shared):
            kept = payment.kept
        refund = booking_payments.shown_refund(workspace_id, row)
        return cls.from_record(
            workspace_id,
            visit,
            is_shared=is_shared,
            workspace_name=workspace.name,
            messengers=[] if workspace.halt else messenger_offers.offered(workspace),
            is_test=is_test(workspace_id),
            service_id=row.service_id,
            resource_id=row.resource_id,
            duration_min=int((visit[-1].ends_at - row.starts_at).total_seconds() // 60),
            can_cancel=is_open,
            can_move=bookings.is_upcoming(row) and bool(service) and _moves_left(row) > 0,
            # The staff of a visit stay, because others would have to do each of its services.
            has_other_resources=not row.visit
            and bool(service and set(service.resource_ids) - {row.resource_id}),
            other_lengths=ResourceLength.several(service, row) if service and not row.visit else [],
            moves_left=_moves_left(row),
            paid=(payment and payment.kept) or None,
            refund_state=refund and refund.state,
            refund_amount=refund and refund.amount,
            refund_reason=refund and refund.reason,
            amount_left=_left_to_pay(workspace_id, visit),
            refund_until=rest_to_pay.refund_ends_at(row),
            refund=back,
            asks_business=kept > back,
            repeat_url=repeat_url,
            advertising_url=None if is_shared else _advertising_url(workspace_id, row, service),
        )


class MoveTimesQuery(MonthQuery):
    """The month of a search for another time of a booking."""

    token: TokenText = Field(description="Token of the link.")
    any_resource: bool = Field(default=False, description="Whether other staff may take it.")


class PublicMove(Wire):
    """Another time of a booking."""

    token: TokenText = Field(description="The end of manageUrl, after the last slash.")
    start_at: When = Field(description="startAt of a slot.")
    resource_id: Id | None = optional("Another resource of the service.")


def _workspace(args: ManagedBookingRef | MoveTimesQuery | PublicMove) -> str:
    return booking_links.parse(args.token).workspace_id


@operation(
    # With POST, the token is in no URL, which others log.
    rest="POST /api/public/bookings/by-token",
    title="Open a booking's link",
    audience=PUBLIC,
    resolve=_workspace,
    limit=VIEWS,
    idempotent=True,
    audit=False,
    example={"token": "MANAGE_TOKEN"},
    while_halted=True,
)
def get_managed_booking(ctx: Context, args: ManagedBookingRef) -> ManagedBooking:
    """Return the booking of a link, and what its client may do with it. It changes nothing."""
    row = booking_links.booking_of(args.token, *booking_links.MANAGING)
    is_shared = booking_links.is_shared(args.token, row)
    return ManagedBooking.read(ctx.workspace_id, row, is_shared=is_shared)


@operation(
    title="Find times to move a booking to",
    audience=PUBLIC,
    resolve=_workspace,
    limit=VIEWS,
    errors=(BookingStartedError, MoveRefusedError),
)
def find_move_times(ctx: Context, args: MoveTimesQuery) -> MonthOfSlots:
    """Find the times of a month to which a booking can be moved. Its own time counts as free."""
    row = booking_links.booking_of(args.token, *booking_links.MANAGING)
    service = _require_movable(ctx.workspace_id, row)
    is_there = RESOURCES.find(ctx.workspace_id, record_id=row.resource_id) is not None
    resource_id = row.resource_id if is_there and not args.any_resource else None
    if row.visit:
        search = visit_search.find_move(ctx.workspace_id, row, None)
    else:
        search = Search.create(ctx.workspace_id, service, resource_id, row)
    zone = slot_search.zones(
        search.candidates.bound,
        resource_id,
        requested=None,
        of_workspace=lambda: workspaces.get(ctx.workspace_id).timezone,
    ).effective
    return slot_months.find(search, zone, args)


@operation(
    rest="POST /api/public/bookings/reschedule",
    title="Move a booking by its link",
    audience=PUBLIC,
    resolve=_workspace,
    limit=BOOKING_CHANGES,
    example={"token": "MANAGE_TOKEN", "startAt": "2027-03-02T12:00:00+03:00"},
    errors=(BookingStartedError, MoveRefusedError, SlotUnavailableError),
)
def move_public_booking(ctx: Context, args: PublicMove) -> PublicBookingMoved:
    """Move a booking to another time or resource of its service. Price, status and links stay.

    The length stays, too, unless the service takes another time with the other resource.
    A client moves a booking at most 5 times, until it begins. If the time is no longer free: 409
    slot_unavailable with up to 5 alternatives.
    """
    row = booking_links.booking_of(args.token, *booking_links.MANAGING)
    if not _is_at(row, args.start_at, args.resource_id):
        _require_movable(ctx.workspace_id, row)
        row.visitor_moves = int(row.visitor_moves) + 1
        change = BookingChange(
            ctx.principal.audit_actor,
            start=args.start_at,
            resource_id=args.resource_id,
            is_by_client=True,
        )
        booking_changes.change(ctx.unit, row, change)
    return PublicBookingMoved.from_record(
        ctx.workspace_id,
        bookings.visit_of(ctx.workspace_id, row, ctx.unit.rows),
        is_shared=booking_links.is_shared(args.token, row),
    )


def _is_at(row: BookingRow, start: date, resource_id: str | None) -> bool:
    same_time = isinstance(start, datetime) and start.tzinfo and start == row.starts_at
    return bool(same_time) and resource_id in {None, row.resource_id}


def _service(workspace_id: str, row: BookingRow, rows: Rows | None = None) -> ServiceRow | None:
    rows = rows or Rows()
    service = rows.find(ServiceRow, SERVICES.key(workspace_id, record_id=row.service_id))
    if service is None or service.status != ACTIVE:
        return None
    site = binding.site_of_service(workspace_id, service.site_id)
    return None if site is not None and site.status == SUSPENDED else service


def _service_and_page(
    workspace: WorkspaceRow, row: BookingRow, visit: Sequence[BookingRow]
) -> tuple[ServiceRow | None, str | None]:
    # The settings of the page are read in the request that reads the services.
    rows, workspace_id = Rows(), workspace.id
    rows.read(
        [
            *(SERVICES.key(workspace_id, record_id=each.service_id) for each in visit),
            page_settings.key(workspace_id),
        ]
    )
    service, page = _service(workspace_id, row, rows), BookingPageRow.read(workspace_id, rows)
    if service is None or not page.is_on or service.id not in page.service_ids:
        return service, None
    # What is no longer offered would lead to no page.
    offered = [
        repeat_links.Part(each.service_id, each.resource_id)
        for each in visit
        if each is row
        or (each.service_id in page.service_ids and _service(workspace_id, each, rows) is not None)
    ]
    home = f"{settings().public_url}{open_page.PATH}/{workspace.slug}"
    return service, f"{home}/{repeat_links.path(offered)}"


def _advertising_url(workspace_id: str, row: BookingRow, service: ServiceRow | None) -> str | None:
    # Consents are read only where they are asked for. Each e-mail has the link, too.
    if service is None or not service.book_again_days or row.client_id is None:
        return None
    entries = advertising_consents.read(workspace_id, client_id=row.client_id)
    agrees = any(
        advertising_consents.is_for(consent, row.client_email)
        for consent in advertising_consents.standing(entries)
    )
    return advertising_links.link(Recipient(workspace_id, row.client_id)) if agrees else None


def _left_to_pay(workspace_id: str, visit: Sequence[BookingRow]) -> int:
    row, *others = visit
    if not rest_to_pay.is_prepaid(row):
        return 0
    return rest_to_pay.left_to_pay(row, EventRow.newest(workspace_id, record_id=row.id), others)


def _moves_left(row: BookingRow) -> int:
    return max(0, MAX_MOVES - int(row.visitor_moves))


def _require_movable(workspace_id: str, row: BookingRow) -> ServiceRow:
    if row.starts_at <= clock.now():
        msg = "This booking has already begun and can no longer be moved."
        raise BookingStartedError(msg)
    if not bookings.is_upcoming(row):
        raise MoveRefusedError(
            "Only an upcoming booking can be moved. Make a new booking instead.", key="not_upcoming"
        )
    if not _moves_left(row):
        msg = (
            f"This booking was already moved {MAX_MOVES} times, which is the maximum. Cancel the "
            "booking, or make a new one."
        )
        raise MoveRefusedError(msg, key="too_many_moves", details={"maximum": MAX_MOVES})
    service = _service(workspace_id, row)
    if service is None:
        raise MoveRefusedError(
            "This service cannot be booked at the moment. Contact the business.", key="not_bookable"
        )
    return service

"""Book for visitors of the public API and of a bot's chat.

A visitor's contacts are stored with the booking only, and never change an existing client. A few
bookings need no proof of an address, within what all visitors of a workspace share. Further
bookings wait for the link in an e-mail (ADR 74).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, cast

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import ConflictError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.wire import parsing
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.flows.public_booking import (
    BookingAwaitsMail,
    BookingContact,
    PublicBookingCreate,
    PublicBookingMade,
    PublicBookingOut,
    ShownTerms,
)
from chalicelib.domains.booking_page.flows.visitor_shares import (
    LINKS_PER_DAY,
    BookingLimitError,
    check_upcoming,
    hold_shares,
    limits_of_unproved,
    require_mail,
    take_daily_limit,
    upcoming_shares,
)
from chalicelib.domains.booking_page.rules import advertising_texts
from chalicelib.domains.booking_page.rules.job_kinds import MAIL_BOOKING_LINK
from chalicelib.domains.booking_page.store import assistant_metrics, requested_bookings
from chalicelib.domains.booking_page.store.requested_bookings import AwaitedBookingRow
from chalicelib.domains.bookings.flows import (
    booking_links,
    booking_reads,
    new_booking,
    slot_search,
)
from chalicelib.domains.bookings.flows.advance import Advance, read_advance, read_advances
from chalicelib.domains.bookings.flows.new_booking import BookingRequest
from chalicelib.domains.bookings.flows.placement import SlotRequest
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store.bookings import AGENT, BOOKINGS, PUBLIC, BookingRow
from chalicelib.domains.clients.flows import matching, messenger_offers
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Forecast, Outlook
from chalicelib.domains.payments.flows.accounts import needs_email
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.sites.store.sites import SUSPENDED
from chalicelib.engine import jobs, limits
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.localized import Language

PROVED = "proved"  # stands for the visitor in the key of bookings by links


class ChangedError(ConflictError):
    """What was shown has changed. Show the new values, and send them again.

    A refused booking has ``price``, ``durationMin``, ``amountDue`` and ``refundUntilMin`` as they
    are now. A refused cancellation has ``refund``.
    """

    code = "changed"


class ByPhoneOnlyError(ConflictError):
    """The service is paid in advance, but the business takes no payments online.

    ``phone`` is the phone to call, or null.
    """

    code = "by_phone_only"


class MadeBooking(NamedTuple):
    """A new booking of a visitor."""

    row: BookingRow
    secret: str  # signs its tokens
    mail: Forecast  # what will become of the e-mail about it
    workspace: WorkspaceRow
    following: Sequence[BookingRow] = ()  # the other bookings of the visit, in order

    @property
    def visit(self) -> list[BookingRow]:
        return [self.row, *self.following]

    def out(self, workspace_id: str) -> PublicBookingMade:
        return PublicBookingMade.from_record(
            workspace_id,
            self.visit,
            cancel_token=booking_links.token(workspace_id, self.row, Purpose.CANCEL),
            mail=self.mail,
            messengers=messenger_offers.offered(self.workspace),
        )


class AwaitedBooking(NamedTuple):
    """A booking that waits for the link in an e-mail."""

    row: BookingRow  # the future booking
    link_ends_at: datetime

    def out(self, _: str) -> BookingAwaitsMail:
        return BookingAwaitsMail(expires_at=self.link_ends_at)


def book_by_link(ctx: Context, token: str) -> tuple[AwaitedBookingRow, MadeBooking]:
    """Stage the booking of an e-mail's link, which ends the link. Return what was requested, too.

    Raises:
        NotFoundError: the link is unknown, used or ended, or what it books is no longer offered.
        ChangedError: the price or the duration has changed, or it has to be paid now.
        RateLimitedError: the address or the visitor has too many bookings.
        SlotUnavailableError: the time cannot be booked. The error has a reason and alternatives.
    """
    awaited = require_awaited(ctx.workspace_id, token=token)
    request = parsing.parse(PublicBookingCreate, awaited.request)
    language = cast("Language | None", awaited.language)
    made = book(ctx, request, awaited.source, is_proved=True, language=language)
    # The visitor agreed to the details in the e-mail, which may be thirty minutes old.
    if isinstance(made, AwaitedBooking) or _differs(made, awaited.booking):
        raise ChangedError(
            "The price or the duration of the service has changed. Read the service again, and "
            "repeat the booking.",
            key="terms_changed",
        )
    # Two clicks on the link would book twice, so the row must still exist at commit.
    ctx.unit.delete(awaited, if_there=True)
    return awaited, made


def _differs(made: MadeBooking, shown: Mapping[str, Any]) -> bool:
    response = PublicBookingOut.from_visit(made.visit).model_dump(mode="json", by_alias=True)
    return any(response[name] != shown[name] for name in ("status", "endAt", "price"))


def require_awaited(workspace_id: str, *, token: str) -> AwaitedBookingRow:
    """Return the requested booking of an e-mail's link, or raise NotFoundError."""
    return BOOKINGS.found_for_visitor(requested_bookings.find_awaited(workspace_id, token=token))


def book(  # noqa: PLR0913  what a booking may come with
    ctx: Context,
    args: PublicBookingCreate,
    source: str = PUBLIC,
    *,
    is_proved: bool = False,
    own_client_id: str | None = None,
    proposal: str | None = None,
    language: Language | None = None,
) -> MadeBooking | AwaitedBooking:
    """Stage a visitor's booking, or the e-mail with a link that books.

    The e-mail is sent if the visitor or the service has had its bookings without a proof, unless a
    link of an e-mail books now (``is_proved``). A ``proposal`` of a bot is kept with the request.
    ``own_client_id`` is the client that the visitor's dialog has created.

    Raises:
        ByPhoneOnlyError: the service is paid in advance, but not online.
        ChangedError: the service is not as it was shown to the visitor.
        NotFoundError: the service or the resource does not exist, or the site is suspended.
        BookingLimitError: the visitor has too many bookings, or no e-mail can be sent.
        RateLimitedError: the visitor has sent too many requests today.
        SlotUnavailableError: the time cannot be booked. The error has a reason and alternatives.
        ValidationError: the phone is not a valid number, or the start is not a valid moment.
    """
    rows = ctx.unit.rows
    services = _read_services(ctx, args)
    service, possible = services[0], _offers(services, args.resource_id)
    is_prepaid = any(offer.is_prepaid for offers in possible for offer in offers.values())
    contact = _contact(ctx, args.client, services, is_prepaid=is_prepaid)
    visitor, contacts = ctx.principal.share_subjects, contact.identity.values()
    shares = upcoming_shares(
        ctx.workspace_id,
        (PROVED,) if is_proved else visitor,
        [contact.email] if is_proved else contacts,
    )
    if is_prepaid:
        shares += hold_shares(ctx.workspace_id, visitor)
    unproved = [] if is_proved else limits_of_unproved(ctx, services, contacts)
    workspace = slot_search.workspace_of(ctx.unit)
    outlook = Outlook(
        contact.email if service.visitor_mails else None,
        workspace.id,
        workspace.plan,
        "client" if is_proved else "stranger",
        visitor,
    )
    with deadline.side_by_side() as start:
        within_limit = start(lambda: take_daily_limit(ctx))
        booking_reads.read_ahead(
            ctx.unit,
            service,
            args.start_at,
            args.resource_id,
            with_time_off=True,
            keys=[
                *(
                    key
                    for each in services
                    for key in binding.site_keys(ctx.workspace_id, each.site_id)
                ),
                *matching.holder_keys(ctx.workspace_id, contact),
                *(share.key for share in shares),
                *([merchants.key(ctx.workspace_id)] if is_prepaid else []),
                *(limits.key(*counter) for counter in unproved),
                *outlook.keys(),
            ],
        )
    _require_open_sites(ctx, services)
    within_limit.result()
    among = _agreed_resources(args, services, possible, workspace, rows)
    earlier = check_upcoming(workspace, shares, rows)
    used_up = [counter for counter in unproved if not limits.has_room(*counter, rows)]
    unit = ctx.unit
    if used_up:  # What is staged here only shows that the time can be booked.
        unit = UnitOfWork(ctx.workspace_id, rows=rows)
    secret = ctx.unit.run_side_effect_once("secret", booking_tokens.new_secret)
    request = BookingRequest(
        service_id=service.id,
        slot=SlotRequest(args.start_at, args.resource_id, args.timezone, among=among),
        contact=contact,
        source=source,
        actor=ctx.principal.audit_actor,
        fills_client=False,
        notes=args.notes,
        token_secret=secret,
        is_proved=is_proved or None,
        visitor_shares=visitor,
        own_client_id=own_client_id,
        language=language,
    )
    visit = _stage(unit, request, args, services, workspace)
    new_row = visit[0]
    _stage_consent(unit, new_row, services, args.advertising_version, ctx.principal.audit_actor)
    if used_up:
        require_mail(workspace, new_row.client_email, used_up[0], rows)
        shown = args.model_copy(update=dict(_terms_of(unit, visit, services)))
        return _await_mail(ctx, shown, visit, source, proposal)
    for row in earlier:
        row.ids = [*row.ids, new_row.id]
        if is_proved:
            # The key of proved bookings does not change daily, so the row must last until the
            # booking.
            row.expires = max(row.expires, new_row.starts_at)
        ctx.unit.save(row)
    for limit, subject in unproved:
        limits.stage(ctx.unit, limit, subject, runs_again=True)
    if source == AGENT:
        day = clock.local_day(clock.now(), slot_search.workspace_of(ctx.unit).timezone)
        counts = {assistant_metrics.BOOKINGS: 1}
        assistant_metrics.increments(ctx.workspace_id, day, counts).stage(ctx.unit)
    return MadeBooking(new_row, secret, outlook.forecast(rows), workspace, visit[1:])


def _read_services(ctx: Context, args: PublicBookingCreate) -> list[ServiceRow]:
    keys = [SERVICES.key(ctx.workspace_id, record_id=each) for each in args.and_then]
    first = SERVICES.found(booking_reads.read_service(ctx.unit, args.service_id, keys))
    return [first, *(SERVICES.found(ctx.unit.rows.find(ServiceRow, key)) for key in keys)]


def _require_open_sites(ctx: Context, services: Sequence[ServiceRow]) -> None:
    for service in services:
        require_open_site(ctx.workspace_id, service, ctx.unit.rows)


def _stage(
    unit: UnitOfWork,
    request: BookingRequest,
    args: PublicBookingCreate,
    services: Sequence[ServiceRow],
    workspace: WorkspaceRow,
) -> list[BookingRow]:
    """Stage a booking, or those of a visit unless it is other than the visitor was shown."""
    if not args.and_then:
        return [new_booking.book(unit, request)[0]]
    from chalicelib.domains.bookings.flows import new_visit  # noqa: PLC0415  few need it

    def agrees(offers: Sequence[Offer]) -> bool:
        advance = read_advances(unit.workspace_id, services, offers, unit.rows)
        return not advance.by_phone and _is_as_shown(args, ShownTerms.now(offers, advance))

    visit = new_visit.book(unit, request, args.and_then, agrees).rows
    offers = _offers_of(visit, services)
    advance = read_advances(unit.workspace_id, services, offers, unit.rows)
    if advance.by_phone:
        raise by_phone_only(workspace)
    now = ShownTerms.now(offers, advance)
    if not _is_as_shown(args, now):
        raise _changed(now)
    return visit


def _terms_of(
    unit: UnitOfWork, visit: Sequence[BookingRow], services: Sequence[ServiceRow]
) -> ShownTerms:
    offers = _offers_of(visit, services)
    return ShownTerms.now(offers, read_advances(unit.workspace_id, services, offers, unit.rows))


def _offers_of(visit: Sequence[BookingRow], services: Sequence[ServiceRow]) -> list[Offer]:
    return [service.offer(row.resource_id) for row, service in zip(visit, services, strict=True)]


def _stage_consent(
    unit: UnitOfWork,
    booking: BookingRow,
    services: Sequence[ServiceRow],
    version: str | None,
    actor: str,
) -> None:
    # The booking does not depend on it, so a text that has changed meanwhile, or that is no longer
    # shown, stores nothing. What follows a visit is an option of its first service.
    if version is None or not services[0].book_again_days:
        return
    shown = advertising_texts.find(version, slot_search.workspace_of(unit).name)
    if shown is None or booking.client_id is None or booking.client_email is None:
        return
    advertising_consents.stage_grant(
        unit,
        client_id=booking.client_id,
        by=actor,
        source=booking.source,
        label=shown.text,
        version=shown.version,
        language=shown.language,
        email=booking.client_email,
        booking_id=booking.id,
    )


def by_phone_only(workspace: WorkspaceRow) -> ByPhoneOnlyError:
    """Return the error for a service that is booked by phone, with the phone of the business."""
    phone = open_page.phone_of(workspace)
    how = f"Call {phone} to book it." if phone else "Contact the business to book it."
    msg = f"This service has to be paid in advance, which is not possible online. {how}"
    return ByPhoneOnlyError(msg, details={"phone": phone})


def _offers(services: Sequence[ServiceRow], resource_id: str | None) -> list[dict[str, Offer]]:
    # What the visitor may be booked for, by resource. One that is not bound is refused later. In a
    # visit, others do what the named one does not.
    possible = []
    for service in services:
        ids = service.resource_ids or [""]
        if resource_id and (len(services) == 1 or resource_id in ids):
            ids = [resource_id]
        possible.append({each: service.offer(each) for each in ids})
    return possible


def _agreed_resources(
    shown: ShownTerms,
    services: Sequence[ServiceRow],
    possible: Sequence[Mapping[str, Offer]],
    workspace: WorkspaceRow,
    rows: Rows,
) -> frozenset[str] | None:
    """Return the resources whose offers are as the visitor was shown, or None if all are.

    Of a visit, that is checked when it is known who does what. Only the way to pay is checked here.
    """
    if len(services) > 1:
        cheapest = [min(offers.values()) for offers in possible]
        if read_advances(workspace.id, services, cheapest, rows).by_phone:
            raise by_phone_only(workspace)
        return None
    service, offers = services[0], possible[0]
    advances = {
        offer: read_advance(workspace.id, service, offer, rows)
        for offer in dict.fromkeys(offers.values())
    }
    online = {offer: advance for offer, advance in advances.items() if not advance.by_phone}
    if not online:
        raise by_phone_only(workspace)
    agreed = _agreed(shown, online)
    if len(agreed) == len(advances):
        return None
    return frozenset(name for name, offer in offers.items() if offer in agreed)


def _is_as_shown(shown: ShownTerms, now: ShownTerms) -> bool:
    # As far as the request says.
    return all(
        getattr(shown, name) in {None, getattr(now, name)} for name in ShownTerms.model_fields
    )


def _agreed(shown: ShownTerms, advances: Mapping[Offer, Advance]) -> list[Offer]:
    """Return the offers that are as the visitor was shown."""
    terms = {offer: ShownTerms.now([offer], advance) for offer, advance in advances.items()}
    agreed = [offer for offer, now in terms.items() if _is_as_shown(shown, now)]
    if not agreed:
        raise _changed(terms[min(terms)])
    return agreed


def _changed(now: ShownTerms) -> ChangedError:
    msg = (
        "The price, the length or the terms of payment have changed since they were shown. "
        "Check the new values, and book again."
    )
    return ChangedError(msg, details=now.model_dump(by_alias=True), key="terms_changed")


def _await_mail(
    ctx: Context,
    args: PublicBookingCreate,
    visit: Sequence[BookingRow],
    source: str,
    proposal: str | None,
) -> AwaitedBooking:
    booking_row = visit[0]
    request_id = ctx.unit.run_side_effect_once("request", new_id)
    token = booking_links.book_token(ctx.workspace_id, request_id=request_id)
    contacts = booking_row.named_contacts or ()
    row = requested_bookings.new_awaited(
        ctx.workspace_id,
        token=token,
        contacts=[booking_row.client_email, booking_row.client_phone, *contacts],
    )
    row.request_id, row.source, row.proposal = request_id, source, proposal
    row.language = booking_row.language
    fields = set(PublicBookingCreate.model_fields)
    request = args.model_dump(mode="json", by_alias=True, exclude_none=True, include=fields)
    row.request = request | {"startAt": clock.iso(booking_row.starts_at)}
    row.booking = PublicBookingOut.from_visit(visit).model_dump(mode="json", by_alias=True)
    ctx.unit.create(row)
    subjects = ctx.principal.share_subjects
    workspace = slot_search.workspace_of(ctx.unit)
    refused = partial(BookingLimitError, reason="links", workspace=workspace, rows=ctx.unit.rows)
    for counter in limits.visitor_limits(LINKS_PER_DAY, subjects):
        limits.stage(ctx.unit, *counter, refused=refused)
    # The response promises the e-mail, so it is counted with the request.
    mail_gate.promise(
        ctx.unit,
        row.email,
        "link",
        mail_id=booking_links.link_mail_id(request_id),
        plan=workspace.plan,
        shares=subjects,
        refused=refused,
    )
    ctx.unit.create(jobs.row(MAIL_BOOKING_LINK, ctx.workspace_id, {"requestId": request_id}))
    return AwaitedBooking(booking_row, row.link_ends_at)


def require_open_site(workspace_id: str, service: ServiceRow, rows: Rows) -> None:
    """Raise NotFoundError if the site of a service is suspended."""
    site = binding.site_of_service(workspace_id, service.site_id, rows)
    if site is not None and site.status == SUSPENDED:
        raise SERVICES.unavailable()


def _contact(
    ctx: Context, client: BookingContact, services: Sequence[ServiceRow], *, is_prepaid: bool
) -> Contact:
    country = slot_search.workspace_of(ctx.unit).country
    try:
        contact = Contact.create(
            name=client.name,
            email=client.email,
            phone=client.phone,
            country=country,
            required_phone=None if client.email else "client.phone",
        )
    except ValidationError:
        # A suspended site gives the same error, whatever the visitor has entered.
        _require_open_sites(ctx, services)
        raise
    if is_prepaid and not contact.email and needs_email(ctx.workspace_id):
        problem = "expected an e-mail address, to which the receipt is sent, received none"
        raise ValidationError.of("client.email", message=problem)
    return contact

"""Let visitors wait for a free time, see what they are offered, and leave the line."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.booking_page.flows import book_for_visitor
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.store.bookings import PUBLIC as PUBLIC_SOURCE
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.mails.flows.mail_gate import Forecast, Outlook
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.waiting.flows import joining, lines, waiting_links
from chalicelib.domains.waiting.flows.day_search import DaySearch
from chalicelib.domains.waiting.flows.joining import Joining, NotAwaitedError
from chalicelib.domains.waiting.flows.waiting_links import WaitingLink
from chalicelib.domains.waiting.rules.line_steps import Waiting, starts_for
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.waiting.store.waiting_lines import LinePlace, WaitingLineRow
from chalicelib.engine import limits
from chalicelib.engine.reading import Rows
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText
from chalicelib.lib.localized import Language

WAITING_CALLS = Limit(
    "waiting-list", "calls about waiting lists per minute", 30, timedelta(minutes=1)
)
# Each causes a mail to an address that nobody has proved.
WAITING_PER_DAY = Limit("waiting-day", "entries in waiting lists per day", 10, timedelta(days=1))

TokenText = Annotated[str, StringConstraints(max_length=waiting_links.MAX_TOKEN)]


class WaitingContact(Wire):
    """Name and contact details of a visitor. A free time is offered by e-mail."""

    name: PersonName = Field(description="Name.")
    email: Email = Field(description="E-mail address, to which free times are offered.")
    phone: PhoneText | None = optional("Phone number in any format.")


class PublicWaiting(Wire):
    """A visitor's request to wait."""

    service_id: Id = Field(description="Service id.")
    day: Day = Field(description="Local date without free times.")
    resource_id: Id | None = optional("Only for times of this resource.")
    client: WaitingContact = Field(description="Name and contact details.")
    language: Language | None = optional("Language of the e-mails: ru or en.")


class PublicWaitingMade(Wire):
    """The visitor waits."""

    day: str = Field(description="Local date, YYYY-MM-DD.")
    mail: Forecast = Field(
        description="What becomes of the e-mail about it: sent, waiting (for a limit) or none."
    )
    waiting_url: str = Field(
        description="URL of the page that shows an offer and ends the waiting. Keep it secret."
    )


class WaitingToken(Wire):
    """The token of one who waits: the end of waitingUrl."""

    token: TokenText = Field(description="Token.")


class WaitingLeft(Wire):
    """The visitor does not wait any more."""

    left: bool = Field(description="true; false: the waiting had ended before.")


class OwnPlace(Wire):
    """What one who waits sees of the line."""

    service_id: Id = Field(description="Service id.")
    service_name: str = Field(description="Name of the service.")
    resource_id: Id | None = Field(description="Only this resource; null: any.")
    day: str = Field(description="Local date, YYYY-MM-DD.")
    timezone: str = Field(description="IANA zone of the day.")
    offered_until: Timestamp | None = Field(
        description="Until when a free time is offered to them first, or null. It is not held."
    )
    is_free: bool = Field(description="Whether a time of the day is free now.")


@operation(
    title="Wait for a free time",
    rest="POST /api/public/bookings/waiting",
    audience=PUBLIC,
    resolve=lambda args: SERVICES.found_for_visitor(SERVICES.workspace_of(args.service_id)),
    limit=WAITING_CALLS,
    example={
        "serviceId": "SERVICE_ID",
        "day": "2027-03-06",
        "client": {"name": "Grace", "email": "grace@example.com"},
    },
    errors=(NotAwaitedError, NotConfiguredError),
)
def join_waiting_list(ctx: Context, args: PublicWaiting) -> PublicWaitingMade:
    """Wait for a free time of a service on a day that has none.

    A free time is offered by e-mail to the first of the line for two hours, or half of what is left
    until its start, and then to the next. It is not held. Whoever does not book in that time leaves
    the line. A repeated request does not change the place.
    """
    subjects = ctx.principal.share_subjects
    # A retry of the unit must not count the visitor's request a second time.
    ctx.unit.run_side_effect_once("day", lambda: limits.take_share(WAITING_PER_DAY, subjects))
    service = SERVICES.found(
        ctx.unit.rows.find(ServiceRow, SERVICES.key(ctx.workspace_id, record_id=args.service_id))
    )
    book_for_visitor.require_open_site(ctx.workspace_id, service, ctx.unit.rows)
    workspace = slot_search.workspace_of(ctx.unit)
    contact = Contact.create(
        name=args.client.name,
        email=args.client.email,
        phone=args.client.phone,
        country=workspace.country,
    )
    joined = joining.join(
        ctx.unit,
        Joining(
            LinePlace(args.day, args.service_id),
            contact,
            PUBLIC_SOURCE,
            resource_id=args.resource_id,
            language=args.language,
            visitor_shares=subjects,
        ),
    )
    outlook = Outlook(contact.email, workspace.id, workspace.plan, "stranger", subjects)
    # Whoever types the contact of another person must neither learn that this person waits, nor get
    # the link. That of nobody is as good for them.
    waiting_id = joined.row.sk
    if not joined.is_new:
        waiting_id = ctx.unit.run_side_effect_once("nobody", new_id)
    return PublicWaitingMade(
        day=args.day.isoformat(),
        mail=outlook.forecast(ctx.unit.rows),
        waiting_url=waiting_links.url(WaitingLink(workspace.id, waiting_id)),
    )


@operation(
    title="See one's place in a waiting list",
    audience=PUBLIC,
    reads=True,
    resolve=lambda args: waiting_links.parse(args.token).workspace_id,
    limit=WAITING_CALLS,
    example={"token": "WAITING_TOKEN"},
    errors=(NotConfiguredError,),
)
def open_own_waiting(ctx: Context, args: WaitingToken) -> OwnPlace:
    """Return what is offered to one who waits, and whether a time is free now."""
    row = waiting_lines.find(ctx.workspace_id, waiting_links.parse(args.token).waiting_id)
    service = SERVICES.find(ctx.workspace_id, record_id=row.service_id) if row else None
    if row is None or service is None:
        raise waiting_links.not_found()
    with deadline.side_by_side() as start:
        line = start(lambda: WaitingLineRow.of(ctx.workspace_id, row.place))
        search = DaySearch.create(ctx.workspace_id, service, row.place, Rows())
        free = {slot.start: frozenset(slot.seats) for slot in search.find().slots}
    line_row = line.result()
    offer = line_row.line.offer if line_row else None
    is_offered = offer and offer.waiting_id == row.sk and offer.until > epoch_ms(clock.now())
    return OwnPlace(
        service_id=service.id,
        service_name=service.name,
        resource_id=row.resource_id,
        day=row.day.isoformat(),
        timezone=search.timezone,
        offered_until=clock.moment_at(offer.until) if offer and is_offered else None,
        is_free=bool(starts_for(Waiting(row.sk, row.resource_id), free)),
    )


@operation(
    title="Leave a waiting list",
    rest="POST /api/public/bookings/waiting/leave",
    audience=PUBLIC,
    resolve=lambda args: waiting_links.parse(args.token).workspace_id,
    limit=WAITING_CALLS,
    idempotent=True,
    example={"token": "WAITING_TOKEN"},
    errors=(NotConfiguredError,),
    while_halted=True,
)
def leave_waiting_list(ctx: Context, args: WaitingToken) -> WaitingLeft:
    """End one's waiting. If a time is offered to them, it is offered to the next at once.

    Leaving again has no effect.
    """
    row = waiting_lines.find(ctx.workspace_id, waiting_links.parse(args.token).waiting_id)
    if row is not None:
        lines.stage_leaving(ctx.unit, [row])
        ctx.unit.mention(f"service:{row.service_id}")
    return WaitingLeft(left=row is not None)

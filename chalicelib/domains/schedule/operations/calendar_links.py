"""Make, show and revoke the links of calendar feeds, and serve the feeds (ADR 133)."""

from datetime import timedelta
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import NotFoundError, call
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, ServedAs, operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, NoInput, Timestamp, Wire, optional
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.schedule.flows import calendar_feeds
from chalicelib.domains.schedule.store import calendar_links
from chalicelib.domains.schedule.store.calendar_links import CalendarLinkRow
from chalicelib.domains.services.store import resources
from chalicelib.domains.services.store.resources import RESOURCES

# Many calendars are read from the few addresses of one service, such as Google's.
FEEDS = Limit("public-feed", "readings of calendars per minute", 120, timedelta(minutes=1))


class CalendarLink(Wire):
    """The link of a calendar. Who has it sees the bookings, without a key."""

    OWNED_BY = "resource_id"

    id: Id = Field(description="Id of its resource, or of the workspace.")
    resource_id: Id | None = Field(description="Resource id; null: of the whole business.")
    name: str = Field(description="Name of the resource, or of the workspace.")
    url: str = Field(description="URL to subscribe to in a calendar program. It is a secret.")
    made_at: Timestamp = Field(description="When this link was made.")

    @classmethod
    def from_record(cls, workspace_id: str, link: CalendarLinkRow, name: str) -> Self:
        return cls(
            id=link.sk,
            resource_id=None if link.sk == workspace_id else link.sk,
            name=name,
            url=calendar_feeds.url(workspace_id, link),
            made_at=link.made_at,
        )


class CalendarLinks(Wire):
    """Links of calendars."""

    calendar_links: list[CalendarLink] = Field(
        description="Links: of the whole business, then by name."
    )


class CalendarLinkCreate(Wire):
    """The calendar of a new link."""

    resource_id: Id | None = optional("Resource id. By default the whole business.")
    replace: bool = Field(
        default=False,
        description="Make a new link even if there is one, which then stops at once.",
    )


class CalendarLinkResult(Wire):
    """The link of a calendar."""

    calendar_link: CalendarLink = Field(description="The link.")


class CalendarLinkDelete(Wire):
    """The link that stops."""

    id: Id = Field(description="Id of the link.")


class FeedRef(Wire):
    """Name of a calendar feed, and the copy that the caller has."""

    file: str = Field(max_length=100, description="File name: the last part of the link.")
    if_none_match: str | None = Field(
        default=None,
        max_length=1000,
        description="ETag of the caller's copy, as in the header If-None-Match.",
    )


class CalendarFeed(Wire):
    """A calendar feed."""

    content: str | None = Field(description="iCalendar (RFC 5545); null if the copy is current.")
    etag: str = Field(description="Tag of the content.")


@operation(
    rest="GET /api/calendar-links",
    scope=Scope.BOOKINGS_READ,
    role=Role.MANAGER,
    own=OwnPart(),
    example={},
)
def get_calendar_links(ctx: Context, args: NoInput) -> CalendarLinks:
    """Return the secret links of calendar feeds, of the whole business and of all resources."""
    workspace_id = ctx.workspace_id
    with deadline.side_by_side() as start:
        workspace_task = start(lambda: workspaces.get(workspace_id))
        links = CalendarLinkRow.all_of(workspace_id)
        rows = RESOURCES.fetch(workspace_id, [link.sk for link in links])
        names = {row.id: row.name for row in rows}
        names[workspace_id] = workspace_task.result().name
    return CalendarLinks(
        calendar_links=[
            CalendarLink.from_record(workspace_id, link, names[link.sk])
            for link in sorted(
                (link for link in links if link.sk in names),
                key=lambda link: (link.sk != workspace_id, names[link.sk], link.sk),
            )
        ]
    )


@operation(
    rest="POST /api/calendar-links/create",
    scope=Scope.BOOKINGS_WRITE,
    role=Role.MANAGER,
    own=OwnPart(resource="resource_id", is_set=True),
    example={"resourceId": "RESOURCE_ID", "replace": True},
)
def create_calendar_link(ctx: Context, args: CalendarLinkCreate) -> CalendarLinkResult:
    """Make the secret link of a calendar feed, or return the one that it has.

    Who has the link sees times, services and the first word of clients' names. With replace, a new
    link takes the place of the former one, which stops at once.
    """
    workspace_id, resource_id = ctx.workspace_id, args.resource_id
    if resource_id is None:
        name = workspaces.get(workspace_id).name
        ctx.unit.mention(f"workspace:{workspace_id}")
    else:
        name = RESOURCES.require(workspace_id, record_id=resource_id).name
        ctx.unit.mention(f"resource:{resource_id}")
    link = CalendarLinkRow.of(workspace_id, resource_id or workspace_id)
    if link is None or args.replace:
        if link is None:
            link = calendar_links.new(workspace_id, resource_id or workspace_id)
        else:
            link.renew()
        if resource_id is not None:
            # The resource may be deleted meanwhile, which ends its link.
            resources.require(ctx.unit, resource_id, on_conflict=RESOURCES.not_found())
        ctx.unit.save(link)
    return CalendarLinkResult(calendar_link=CalendarLink.from_record(workspace_id, link, name))


@operation(
    title="Revoke a calendar link",
    rest="POST /api/calendar-links/delete",
    scope=Scope.BOOKINGS_WRITE,
    role=Role.MANAGER,
    own=OwnPart(resource="id"),
    example={"id": "CALENDAR_LINK_ID"},
)
def delete_calendar_link(ctx: Context, args: CalendarLinkDelete) -> DeletedResult:
    """Revoke the link of a calendar feed, which stops at once.

    What calendar programs have already read may remain there.
    """
    link = CalendarLinkRow.of(ctx.workspace_id, args.id)
    if link is None:
        msg = f"No calendar link has this id. {call('get_calendar_links')} returns all links."
        raise NotFoundError(msg, key="calendar_link")
    ctx.unit.delete(link)
    ctx.unit.mention(f"{'workspace' if link.sk == ctx.workspace_id else 'resource'}:{link.sk}")
    return DeletedResult(id=link.sk, deleted=True)


@operation(
    rest=f"GET {calendar_feeds.PATH}",
    title="Read a calendar feed",
    audience=PUBLIC,
    resolve=lambda args: calendar_feeds.parse(args.file).workspace_id,
    limit=FEEDS,
    served_as=ServedAs.CALENDAR_FEED,
    example={"file": "CALENDAR_FEED"},
)
def get_calendar_feed(ctx: Context, args: FeedRef) -> CalendarFeed:
    """Return the bookings of a resource or of the whole business as an iCalendar file.

    It has the last 14 and the next 180 days, and 5,000 bookings at most, the next ones first.
    """
    feed = calendar_feeds.open_feed(args.file)
    if args.if_none_match is not None and feed.tag.removeprefix("W/") in args.if_none_match:
        return CalendarFeed(content=None, etag=feed.tag)
    return CalendarFeed(content=feed.content().decode(), etag=feed.tag)

"""Declare the tools that a visitor's assistant may call, and count their calls (ADR 87)."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any, ClassVar, NamedTuple, TypeVar

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, Declaration, Registry
from chalicelib.core.settings import settings
from chalicelib.core.text import cut_bytes
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.rules import prepared_links
from chalicelib.domains.booking_page.store import assistant_metrics
from chalicelib.domains.booking_page.store import page_settings as page_rows
from chalicelib.domains.booking_page.store.page_settings import AssistantsRow, BookingPageRow
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store.workspaces import SLUG_CLAIM, WorkspaceRow
from chalicelib.domains.sites.flows import site_pages
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.reading import Rows
from chalicelib.lib import extracts

# The tools of every booking page whose owner has switched them on, in a registry of their own, so
# that neither keys nor the reference have them. They return what every visitor can read, and write
# nothing.
TOOLS = Registry()
# The tool that finds businesses, at the endpoint for all.
DIRECTORY_TOOLS = Registry()
CALLS = Limit("assistant-calls", "tool calls a minute", 60, timedelta(minutes=1))
MAX_TEXT_BYTES = 600  # Maximum number of bytes of a description that a tool returns.
NOTHING_DONE = (
    "Nothing is done yet. Give the visitor this link: the visitor checks the details there, types "
    "the contacts and confirms."
)

C = TypeVar("C", bound=Callable[..., Any])


class PageRef(Wire):
    """The page whose tool is called.

    The address of the request decides which, so no caller sends it.
    """

    SET_BY_ADDRESS: ClassVar[frozenset[str]] = frozenset({"business", "site", "workspace"})

    workspace: str | None = optional("Slug of the workspace, or id of one of its bots, or null.")
    site: str | None = optional("Slug or host of the site, or null.")
    business: str | None = optional("Slug of a listed workspace, at the endpoint for all; or null.")


class NoToolsError(NotFoundError):
    """The page or its tools are off, or the page does not exist."""


class NotListedError(NotFoundError):
    """No business with this id is listed, whether it exists or not."""


class Visit(NamedTuple):
    """A page whose tools are on."""

    assistants: AssistantsRow  # settings of the tools
    rows: Rows  # all that were read


FindVisit = Callable[[], Visit]


def visitor_tool(title: str) -> Callable[[C], C]:
    """Return the decorator of a tool, which only reads."""
    declare = Declaration(
        title=title,
        audience=PUBLIC,
        reads=True,
        resolve=workspace_of,
        limit=CALLS,
        registry=TOOLS,
    )

    def register(handler: C) -> C:
        @wraps(handler)
        def call(ctx: Context, args: PageRef) -> Wire:
            # Reads of the handler before it takes the visit are sent together with the read of the
            # switch.
            is_listed = args.business is not None
            with deadline.side_by_side() as start:
                visit = start(partial(open_visit, ctx.workspace_id, is_listed=is_listed))
                start(partial(_count, ctx.workspace_id, tool=handler.__name__, visit=visit))
                try:
                    response: Wire = handler(ctx, args, visit.result)
                finally:  # A page that is off returns no result and no other error.
                    visit.result()
            return response

        declare(call)
        return handler

    return register


def _count(workspace_id: str, *, tool: str, visit: Future[Visit]) -> None:
    # A call does not fail if it cannot be counted.
    measures = {assistant_metrics.CALLS: 1, assistant_metrics.name_measure(tool): 1}
    with suppress(AppError):
        visit.result()
        assistant_metrics.increments(workspace_id, clock.now().date(), measures).write()


def workspace_of(page: PageRef) -> str:
    """Return the workspace of a page, whose tools may be off, or raise NoToolsError."""
    name = page.workspace or ""
    if page.business is not None:
        workspace_id = ClaimRow.workspace_of(SLUG_CLAIM, name=page.business)
    elif page.site:
        workspace_id = site_pages.workspace_of(page.site)
    elif name.isupper():  # An id of a bot, whose widget knows no slug. Slugs are in lower case.
        workspace_id = AGENTS.workspace_of(name)
    else:
        workspace_id = ClaimRow.workspace_of(SLUG_CLAIM, name=name)
    if workspace_id is None:
        raise no_tools()
    return workspace_id


def open_visit(workspace_id: str, *, is_listed: bool = False) -> Visit:
    """Return the visit of a page, or raise NoToolsError if the page or its tools are off.

    With ``is_listed``, the business must be listed, too.
    """
    # What is a second old does no harm, and this read costs half. Bookings are checked again.
    rows = Rows(consistent=False)
    rows.read([page_rows.key(workspace_id), page_rows.assistants_key(workspace_id)])
    assistants = AssistantsRow.read(workspace_id, rows)
    if (
        not (assistants.is_on and BookingPageRow.read(workspace_id, rows).is_on)
        or is_listed > assistants.is_listed
    ):
        raise no_tools()
    return Visit(assistants, rows)


def no_tools() -> NoToolsError:
    """Return the error for a page that is off, or whose tools are."""
    return NoToolsError(open_page.not_found().message, key="booking_page")


def not_listed() -> NotListedError:
    """Return the error for a business that is not listed, whatever the reason."""
    msg = "No listed business has this id. find_business returns ids."
    return NotListedError(msg, key="business")


def url_of(workspace: WorkspaceRow) -> str:
    """Return the URL of the booking page."""
    return f"{settings().public_url}{open_page.PATH}/{workspace.slug}"


def describe(html: str | None) -> str:
    """Return the beginning of a description as plain text."""
    return cut_bytes(" ".join(extracts.plain_text(html or "").split()), MAX_TEXT_BYTES)


def sign(row: AssistantsRow, subject: str) -> tuple[str, datetime]:
    """Return the token of a link for a subject, and the moment at which the link ends."""
    ends_at = clock.now() + prepared_links.VALID_FOR
    return prepared_links.token(row.link_secret or "", subject=subject, ends_at=ends_at), ends_at

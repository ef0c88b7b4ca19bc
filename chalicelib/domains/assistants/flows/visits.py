"""Declare the tools that a visitor's assistant may call, and count their calls.

The tools are operations in a registry of their own, so that neither keys nor the reference have
them. They return what every visitor can read, and write nothing (ADR 87).
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any, TypeVar

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import AppError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, Declaration, Registry
from chalicelib.core.settings import settings
from chalicelib.core.text import cut_bytes
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.bookings.flows import booking_pages
from chalicelib.domains.bookings.flows.booking_pages import OpenPage
from chalicelib.domains.bookings.rules import prepared_links
from chalicelib.domains.bookings.store import assistant_metrics
from chalicelib.domains.bookings.store import booking_pages as page_rows
from chalicelib.domains.bookings.store.booking_pages import AssistantsRow, BookingPageRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine.reading import Rows
from chalicelib.lib import extracts

TOOLS = Registry()
"""The tools of every booking page whose owner has switched them on."""
CALLS = Limit("assistant-calls", "tool calls a minute", 60, timedelta(minutes=1))
MAX_TEXT_BYTES = 600
"""Maximum number of bytes of a description that a tool returns."""
NOTHING_DONE = (
    "Nothing is done yet. Give the visitor this link: the visitor checks the details there, types "
    "the contacts and confirms."
)

C = TypeVar("C", bound=Callable[..., Any])


class PageRef(Wire):
    """The page whose tool is called.

    The address decides which, so no caller sends the id.
    """

    workspace_id: Id = Field(description="Workspace id.")


def visitor_tool(title: str) -> Callable[[C], C]:
    """Return the decorator of a tool, which only reads."""
    declare = Declaration(
        title=title,
        audience=PUBLIC,
        reads=True,
        resolve=lambda args: args.workspace_id,
        limit=CALLS,
        registry=TOOLS,
    )

    def register(handler: C) -> C:
        @wraps(handler)
        def count_call(ctx: Context, args: PageRef) -> Wire:
            with deadline.side_by_side() as start:
                start(partial(_count, ctx.workspace_id, handler.__name__))
                response: Wire = handler(ctx, args)
            return response

        declare(count_call)
        return handler

    return register


def _count(workspace_id: str, tool: str) -> None:
    """Count a call for the owner.

    A call does not fail if it cannot be counted.
    """
    measures = {assistant_metrics.CALLS: 1, assistant_metrics.name_measure(tool): 1}
    with suppress(AppError):
        assistant_metrics.increments(workspace_id, clock.now().date(), measures).write()


def open_page(ctx: Context, service_id: str | None = None) -> OpenPage:
    """Return the page with all of its services, or with only one service.

    Raises:
        NotFoundError: the page or its tools are off, or it does not offer the service.
    """
    page = booking_pages.open_page(ctx.workspace_id, service_id)
    if not page.assistants.is_on:
        raise booking_pages.not_found()
    return page


def require_switch(workspace_id: str) -> AssistantsRow:
    """Return what assistants may do on a page whose tools are on.

    Raises:
        NotFoundError: the page or its tools are off.
    """
    rows = Rows()
    rows.read([page_rows.key(workspace_id), page_rows.assistants_key(workspace_id)])
    assistants = AssistantsRow.read(workspace_id, rows)
    if not (assistants.is_on and BookingPageRow.read(workspace_id, rows).is_on):
        raise booking_pages.not_found()
    return assistants


def url_of(workspace: WorkspaceRow) -> str:
    """Return the URL of the booking page."""
    return f"{settings().public_url}{booking_pages.PATH}/{workspace.slug}"


def describe(html: str | None) -> str:
    """Return the beginning of a description as plain text."""
    return cut_bytes(" ".join(extracts.plain_text(html or "").split()), MAX_TEXT_BYTES)


def sign(row: AssistantsRow, subject: str) -> tuple[str, datetime]:
    """Return the token of a link for a subject, and the moment at which the link ends."""
    ends_at = clock.now() + prepared_links.VALID_FOR
    return prepared_links.token(row.link_secret or "", subject, ends_at), ends_at

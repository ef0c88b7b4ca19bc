"""Links from pages to the records that other pages show."""

import re
from collections.abc import Callable
from functools import cache

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.page import Page
from chalicelib.transports.console.routes import ROUTES, WORKSPACE

# Paths within a workspace of the pages of records, by kind, besides those that show ``get_<kind>``.
# ``within`` is a site or a bot.
_PAGES = {
    "dialog": "/dialogs/{id}",
    "knowledge": "/bots/{within}/knowledge",
    "lead": "/leads/{id}",
    "page": "/sites/{within}/pages/{id}",
    "site": "/sites/{id}",
    "webhook": "/webhooks/{id}",
}
_ID = "[A-Za-z0-9_-]+"

Link = Callable[..., str | None]


def links(request: ConsoleRequest) -> Link:
    """Return a function that returns the path of a record's page, by kind, id and container.

    It returns None if the console has no such page, or the user may not open it.
    """
    membership = request.current_membership

    def link(kind: str, record_id: str, parent_id: str | None = None) -> str | None:
        pattern = _PAGES.get(kind) or _page_by_operation(f"get_{kind}")
        page = _page_of(pattern)
        if (
            page is None
            or not membership.may(page.shows)
            or ("{within}" in pattern and not parent_id)
        ):
            return None
        return membership.path + pattern.format(id=record_id, within=parent_id)

    return link


@cache
def _page_by_operation(operation: str) -> str:
    # The page of a record has one variable, at its end. Others, such as its settings, come later.
    for route, page in ROUTES.items():
        path = route.removeprefix(WORKSPACE)
        if page.shows == operation and re.fullmatch(r"/[a-z-]+/{\w+}", path):
            return re.sub(r"{\w+}", "{id}", path)
    return ""


@cache
def _page_of(pattern: str) -> Page | None:
    if not pattern:
        return None
    path = WORKSPACE + pattern.format(id="0", within="0")
    workspace = "{workspace}"
    for route, page in ROUTES.items():
        matcher = re.sub(r"\\{(?!workspace)\w+\\}", _ID, re.escape(route))
        if page.get and workspace in route and re.fullmatch(matcher, path):
            return page
    return None

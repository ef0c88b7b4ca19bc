"""Find the one record that a model names."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from chalicelib.core.text import fold
from chalicelib.domains.chat.flows.tool_calls import ToolError
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.listing.query import Query as ListQuery
from chalicelib.lib import extracts

MAX_NAMES = 10
"""Maximum number of names in the error for a name that does not match."""
T = TypeVar("T")
MAX_SERVICES = 200
"""Maximum number of active services that are searched for a name."""


def one_named(
    candidates: Sequence[T],
    name: str,
    *,
    what: str,
    name_of: Callable[[T], str] = attrgetter("name"),
) -> T:
    """Return the candidate with a name, or the only one that matches it best.

    Raises:
        ToolError: none matches, or several do. ``what`` names the candidates in the plural.
    """
    matching = [candidate for candidate in candidates if fold(name_of(candidate)) == fold(name)]
    if not matching:
        indexes = extracts.most_relevant(name, [name_of(candidate) for candidate in candidates])
        matching = [candidates[index] for index in indexes]
    if len(matching) == 1:
        return matching[0]
    known_names = ", ".join(
        name_of(candidate) for candidate in (matching or candidates)[:MAX_NAMES]
    )
    problem = f"Several {what} match" if matching else f"No {what} match"
    msg = f"{problem} {name!r}. Expected one of: {known_names or f'there are no {what}'}."
    raise ToolError(msg)


def service_named(workspace_id: str, *, name: str) -> ServiceRow:
    """Return the active service with a name, or the only one that matches it best.

    Raises:
        ToolError: no service matches, or several do.
    """
    page = SERVICES.page(
        workspace_id,
        ListQuery(page=1, size=MAX_SERVICES, sort="sortOrder", filters={"status": "active"}),
    )
    services: list[ServiceRow] = page.records
    return one_named(services, name, what="services")

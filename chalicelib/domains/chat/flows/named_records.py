"""Find the one record that a model names."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from chalicelib.core.text import fold
from chalicelib.domains.chat.flows import chat_facts
from chalicelib.domains.chat.flows.tool_calls import ToolError
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.gateways.llm import facts
from chalicelib.lib import extracts

MAX_NAMES = 10  # in the error for a name that does not match
T = TypeVar("T")
MAX_SERVICES = 50
"""Maximum number of active services that are compared with a name, the most similar ones."""


def one_named(
    candidates: Sequence[T],
    name: str,
    *,
    what: str,
    name_of: Callable[[T], str] = attrgetter("name"),
    total: int = 0,
) -> T:
    """Return the candidate with a name, or the only one that matches it best.

    ``total`` is the number of records from which the candidates were taken, if there are more.

    Raises:
        ToolError: none matches, or several do. ``what`` names the candidates in the plural.
    """
    matching = [candidate for candidate in candidates if fold(name_of(candidate)) == fold(name)]
    if not matching:
        indexes = extracts.most_relevant(name, [name_of(candidate) for candidate in candidates])
        matching = [candidates[index] for index in indexes]
    if len(matching) == 1:
        return matching[0]
    possible = matching or candidates
    known_names = ", ".join(name_of(candidate) for candidate in possible[:MAX_NAMES])
    count = len(matching) if matching else max(total, len(candidates))
    if count > min(len(possible), MAX_NAMES):
        known_names += f" and {count - min(len(possible), MAX_NAMES)} more"
    problem = f"Several {what} match" if matching else f"No {what} match"
    msg = f"{problem} {name!r}. Expected one of: {known_names or f'there are no {what}'}."
    raise ToolError(msg)


def service_named(workspace_id: str, *, name: str) -> ServiceRow:
    """Return the active service with a name, or the only one that matches it best.

    Raises:
        ToolError: no service matches, or several do.
    """
    ranked = chat_facts.ranked(workspace_id, SERVICES, facts.search_words(name))
    rows = SERVICES.fetch(workspace_id, [entry.id for entry in ranked[:MAX_SERVICES]])
    services = [row for row in rows if row.status == "active"]
    return one_named(services, name, what="services", total=len(ranked))

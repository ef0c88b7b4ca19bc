"""Write operation names in messages for each kind of client.

AI clients see tool names, REST clients see routes. Messages are written with placeholders
(``errors.call("svc_list_sites")``), so that a name in quoted data does not change. ``invoke``
rewrites each message with the ``Naming`` of its caller and then returns it.
"""

from collections.abc import Callable
from functools import cache

from chalicelib.core.errors import CALL_MARK, call
from chalicelib.core.operations import REGISTRY, Entry
from chalicelib.core.text import lazy_pattern

Naming = Callable[[str], str]
"""Rewrites the names of operations in a message."""

_CALL = lazy_pattern(f"{CALL_MARK}(svc_[a-z_]+)")


def insert_tool_names(message: str) -> str:
    """Return the message with names of tools, for AI clients."""
    return _CALL.sub(r"\1", message)


def insert_routes(message: str) -> str:
    """Return the message with routes, such as ``GET /api/projects/list``."""
    return _CALL.sub(lambda match: _routes().get(match[1], match[1]), message)


def call_name(entry: Entry, naming: Naming) -> str:
    """Return the name under which a caller knows an operation."""
    return naming(call(entry.tool)) if entry.tool else f"{entry.method} {entry.path}"


@cache
def _routes() -> dict[str, str]:
    return {
        entry.tool: f"{entry.method} {entry.path}" for entry in REGISTRY.entries() if entry.tool
    }

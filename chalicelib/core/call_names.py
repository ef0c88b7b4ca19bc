"""How messages name operations: AI clients read tool names, REST clients read routes.

Messages are written with tool names (``svc_list_sites``). ``invoke`` passes each message through
the ``Naming`` of its caller before anybody reads it.
"""

import re
from collections.abc import Callable
from functools import cache

from chalicelib.core.operations import REGISTRY, Entry

Naming = Callable[[str], str]
"""Rewrites the names of operations in a message."""

_TOOL = re.compile(r"\bsvc_[a-z_]+")


def by_tool(message: str) -> str:
    """Return the message as it is, for AI clients."""
    return message


def by_route(message: str) -> str:
    """Return the message with routes such as ``GET /api/projects/list`` for the names of tools."""
    return _TOOL.sub(lambda found: _routes().get(found[0], found[0]), message)


def call_name(entry: Entry, naming: Naming) -> str:
    """Return what a caller knows an operation by."""
    return naming(entry.tool) if entry.tool else f"{entry.method} {entry.path}"


@cache
def _routes() -> dict[str, str]:
    return {
        entry.tool: f"{entry.method} {entry.path}" for entry in REGISTRY.entries() if entry.tool
    }

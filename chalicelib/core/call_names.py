"""Names of operations in messages: AI clients see tool names, REST clients see routes.

Messages are written with tool names (``svc_list_sites``). ``invoke`` rewrites each message with the
``Naming`` of its caller before it is returned.
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
    """Return the message with the names of tools replaced by routes.

    A route reads like ``GET /api/projects/list``.
    """
    return _TOOL.sub(lambda found: _routes().get(found[0], found[0]), message)


def call_name(entry: Entry, naming: Naming) -> str:
    """Return the name under which a caller knows an operation."""
    return naming(entry.tool) if entry.tool else f"{entry.method} {entry.path}"


@cache
def _routes() -> dict[str, str]:
    return {
        entry.tool: f"{entry.method} {entry.path}" for entry in REGISTRY.entries() if entry.tool
    }

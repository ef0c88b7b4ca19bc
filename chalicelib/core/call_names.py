"""Write operation names in messages as tools for AI clients and as routes for REST clients."""

import re
from collections.abc import Callable
from functools import cache

from chalicelib.core.errors import CALL_MARK, HOW_TO_CLEAR, OR_CLEAR, call
from chalicelib.core.operations import REGISTRY, Entry

Naming = Callable[[str], str]  # rewrites the names of operations in a message

# Messages are written with placeholders (``errors.call``), so that a name in quoted data does not
# change. ``invoke`` rewrites each message for its caller.
_CALL = re.compile(f"{CALL_MARK}([a-z_]+)")
# The text of each placeholder over REST and for tools.
_CLEARING = {HOW_TO_CLEAR: ("send null", "name it in clear"), OR_CLEAR: ("", ", or clear")}


def insert_tool_names(message: str) -> str:
    """Return the message with names of tools, for AI clients, and with routes without a tool."""
    message = _insert_clearing(message, for_tools=True)
    return _CALL.sub(lambda match: _tools().get(match[1], match[1]), message)


def insert_routes(message: str) -> str:
    """Return the message with routes, such as ``GET /api/projects/list``."""
    message = _insert_clearing(message, for_tools=False)
    return _CALL.sub(lambda match: _routes().get(match[1], match[1]), message)


def _insert_clearing(message: str, *, for_tools: bool) -> str:
    if CALL_MARK in message:
        for placeholder, texts in _CLEARING.items():
            message = message.replace(placeholder, texts[for_tools])
    return message


def call_name(entry: Entry, naming: Naming) -> str:
    """Return the name under which a caller knows an operation."""
    if entry.tool:
        return naming(call(entry.word))
    # A visitor's tool has neither a tool name nor a route.
    return f"{entry.method} {entry.path}" if entry.path else entry.name


@cache
def _routes() -> dict[str, str]:
    return {
        entry.word: f"{entry.method} {entry.path}" for entry in REGISTRY.entries() if entry.path
    }


@cache
def _tools() -> dict[str, str]:
    return _routes() | {entry.tool: entry.tool for entry in REGISTRY.entries() if entry.tool}

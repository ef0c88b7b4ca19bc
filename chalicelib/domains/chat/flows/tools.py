"""The tools that a model may call while a bot answers, and how a call is carried out.

A tool belongs to a capability of the bot. Read tools return what every visitor can read. A call
never fails the answer: the model receives an error as the result and can correct itself.
"""

import json
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from chalicelib.core.errors import AppError
from chalicelib.core.text import cut_bytes
from chalicelib.core.wire import parsing
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.bots.rules.capabilities import Capability
from chalicelib.domains.chat.rules.call_budget import MAX_RESULT_BYTES
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.gateways.llm.messages import ToolCall, ToolResult, ToolSpec

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OfferedSlot:
    """A free time that the bot has named, so that the visitor can choose it."""

    id: str
    service_id: str
    resource_id: str
    start: int


@dataclass(slots=True)
class ToolContext:
    """The answer for which tools are called. ``offered`` has the slots named in the dialog."""

    workspace: WorkspaceRow
    offered: list[OfferedSlot] = field(default_factory=list)


class ToolError(Exception):
    """A call that cannot be carried out. The message says what the model can do instead."""


class Tool(NamedTuple):
    """A tool of a capability. ``run`` returns JSON data, and its docstring describes the tool."""

    capability: Capability
    arguments: type[Wire]
    run: Callable[[ToolContext, Any], dict[str, Any]]

    @property
    def name(self) -> str:
        """The name by which models call the tool."""
        return self.run.__name__

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model receives it."""
        description = " ".join((self.run.__doc__ or "").split())
        return ToolSpec(self.name, description, json_schema(self.arguments))


def carry_out(call: ToolCall, tools: Collection[Tool], context: ToolContext) -> ToolResult:
    """Return the result of a call, or an error with what was expected."""
    fail = partial(ToolResult, call.id, call.name, is_error=True)
    tool = next((each for each in tools if each.name == call.name), None)
    if tool is None:
        return fail(f"There is no tool {call.name}. Expected one of {_names(tools)}.")
    values = call.parsed()
    if values is None:
        return fail("Expected the arguments as a JSON object.")
    try:
        text = to_text(tool.run(context, parsing.parse(tool.arguments, values)))
    except (AppError, ToolError) as error:
        return fail(cut_bytes(str(error), MAX_RESULT_BYTES))
    except Exception:
        log.exception("a tool failed", extra={"tool": tool.name})
        return fail("This tool is not available now. Answer without it.")
    return ToolResult(call.id, call.name, text)


def _names(tools: Collection[Tool]) -> str:
    return ", ".join(tool.name for tool in tools) or "no tools"


def to_text(data: dict[str, Any]) -> str:
    """Return JSON of at most ``MAX_RESULT_BYTES``.

    A longer list in the data loses its last items, and ``more`` says so.

    Raises:
        ToolError: the data are too long without their lists.
    """
    text = json.dumps(data, ensure_ascii=False)
    while len(text.encode()) > MAX_RESULT_BYTES:
        longest = max(
            (each for each in data.values() if isinstance(each, list)), key=len, default=[]
        )
        if not longest:
            raise ToolError("The result is too long. Search for less.")
        data = {
            name: each[: len(each) * 3 // 4] if each is longest else each
            for name, each in data.items()
        } | {"more": True}
        text = json.dumps(data, ensure_ascii=False)
    return text

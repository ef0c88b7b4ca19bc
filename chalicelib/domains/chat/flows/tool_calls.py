"""How a tool that a model calls is carried out while a bot answers.

A call never fails the answer: the model receives an error as the result and can correct itself.
"""

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from chalicelib.core.errors import AppError
from chalicelib.core.text import cut_bytes
from chalicelib.core.wire import parsing
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.bots.rules.capabilities import Capability
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.rules.call_budget import MAX_RESULT_BYTES
from chalicelib.domains.chat.store.proposals import OfferedSlot, ProposalRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.gateways.llm.messages import ToolCall, ToolResult, ToolSpec
from chalicelib.lib import localized
from chalicelib.lib.localized import Language

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ToolContext:
    """The answer for which tools are called."""

    workspace: WorkspaceRow
    agent: AgentRow
    dialog_id: str
    number: int  # of the answer in the dialog
    visitor_texts: Sequence[str] = ()  # the visitor's own messages
    # E-mail addresses and phone numbers that the visitor has named in the dialog, in normal form.
    contacts: Collection[str] = ()
    offered_slots: tuple[OfferedSlot, ...] = ()  # free times that the bot has named
    proposed: list[ProposalRow] = field(default_factory=list)  # in this answer
    attempted: int = 0  # proposals that were begun
    has_requested_person: bool = False  # The answer has requested a member of the business.

    @property
    def language(self) -> Language:
        """The language of the visitor's last message with letters."""
        with_letters = (
            text for text in reversed(self.visitor_texts) if any(map(str.isalpha, text))
        )
        return localized.language_of_message(next(with_letters, ""))


class ToolError(Exception):
    """A call that cannot be carried out. The message says what the model can do instead."""


class Tool(NamedTuple):
    """A tool of a capability. ``run`` returns JSON data, and its docstring describes the tool."""

    capability: Capability
    arguments: type[Wire]
    run: Callable[[ToolContext, Any], dict[str, Any]]

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def spec(self) -> ToolSpec:
        description = " ".join((self.run.__doc__ or "").split())
        return ToolSpec(self.name, description, json_schema(self.arguments))


def carry_out(call: ToolCall, tools: Collection[Tool], context: ToolContext) -> ToolResult:
    """Return the result of a call, or an error with what was expected."""
    fail = partial(ToolResult, call.id, call.name, is_error=True)
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return fail(f"There is no tool {call.name}. Expected one of {_names(tools)}.")
    values = call.parsed()
    if values is None:
        return fail("Expected the arguments as a JSON object.")
    try:
        text = to_text(tool.run(context, parsing.parse(tool.arguments, values)))
    except (AppError, ToolError) as error:
        return fail(cut_bytes(str(error), MAX_RESULT_BYTES))
    # A fault of a tool must not end the answer, which the visitor is reading.
    except Exception:
        log.exception("a tool failed", extra={"tool": tool.name})
        return fail("This tool is not available now. Answer without it.")
    return ToolResult(call.id, call.name, text)


def _names(tools: Collection[Tool]) -> str:
    return ", ".join(tool.name for tool in tools) or "no tools"


def to_text(data: dict[str, Any]) -> str:
    """Return JSON of at most ``MAX_RESULT_BYTES``, or raise ToolError.

    The longest list in the data loses its last items, and ``more`` says so.
    """
    text = json.dumps(data, ensure_ascii=False)
    while len(text.encode()) > MAX_RESULT_BYTES:
        longest = max(
            (column for column in data.values() if isinstance(column, list)), key=len, default=[]
        )
        if not longest:
            raise ToolError("The result is too long. Search for less.")
        data = {
            name: column[: len(column) * 3 // 4] if column is longest else column
            for name, column in data.items()
        } | {"more": True}
        text = json.dumps(data, ensure_ascii=False)
    return text

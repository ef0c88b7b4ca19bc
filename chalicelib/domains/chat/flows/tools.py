"""The tools that a model may call while a bot answers, and how a call is carried out.

A tool belongs to a capability of the bot. Read tools return what every visitor can read. A call
never fails the answer: the model receives an error as the result and can correct itself.
"""

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from chalicelib.core.errors import AppError
from chalicelib.core.text import cut_bytes, fold
from chalicelib.core.wire import parsing
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.bots.rules.capabilities import Capability
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.rules.call_budget import MAX_RESULT_BYTES
from chalicelib.domains.chat.store.proposals import OfferedSlot, ProposalRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.gateways.llm.messages import ToolCall, ToolResult, ToolSpec
from chalicelib.lib import extracts, localized
from chalicelib.lib.localized import Language

MAX_NAMES = 10
"""Names in the error for a name that does not match."""

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class ToolContext:
    """The answer for which tools are called. ``number`` is its number in the dialog.

    ``said`` are the visitor's own messages, and ``contacts`` the e-mail addresses and phone numbers
    that the visitor has named in the dialog, in normal form. ``offered`` are the free times that
    the bot has named, and ``proposed`` are the proposals made in this answer. ``attempted`` is the
    number of proposals that were begun. ``has_requested_person`` is whether the answer has asked
    for a person.
    """

    workspace: WorkspaceRow
    agent: AgentRow
    dialog_id: str
    number: int
    said: Sequence[str] = ()
    contacts: Collection[str] = ()
    offered: tuple[OfferedSlot, ...] = ()
    proposed: list[ProposalRow] = field(default_factory=list)
    attempted: int = 0
    has_requested_person: bool = False

    @property
    def language(self) -> Language:
        """The language of the visitor's last message with letters."""
        with_letters = (text for text in reversed(self.said) if any(map(str.isalpha, text)))
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


def one_named(
    candidates: Sequence[T], name: str, what: str, name_of: Callable[[T], str] = attrgetter("name")
) -> T:
    """Return the candidate with a name, or the only one that matches it best.

    Raises:
        ToolError: none matches, or several do. ``what`` names the candidates in the plural.
    """
    matching = [each for each in candidates if fold(name_of(each)) == fold(name)]
    if not matching:
        indexes = extracts.most_relevant(name, [name_of(each) for each in candidates])
        matching = [candidates[index] for index in indexes]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(name_of(each) for each in (matching or candidates)[:MAX_NAMES])
    problem = f"Several {what} match" if matching else f"No {what} match"
    msg = f"{problem} {name!r}. Expected one of: {known or f'there are no {what}'}."
    raise ToolError(msg)

"""The tools that a model may call while a bot answers."""

from chalicelib.domains.bots.rules.capabilities import PROPOSING
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.flows.proposal_tools import PROPOSAL_TOOLS
from chalicelib.domains.chat.flows.read_tools import READ_TOOLS
from chalicelib.domains.chat.flows.tool_calls import Tool

TOOLS = (*READ_TOOLS, *PROPOSAL_TOOLS)


def list_tools(agent: AgentRow, *, can_confirm: bool) -> list[Tool]:
    """Return the tools of a bot's capabilities, without proposals if no cards can be shown."""
    capabilities = {*agent.capabilities} - (set() if can_confirm else PROPOSING)
    return [tool for tool in TOOLS if tool.capability in capabilities]

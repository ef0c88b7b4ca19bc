"""All tools of bots, and those that a bot offers to its model in one answer."""

from chalicelib.domains.bots.rules.capabilities import PROPOSING
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.flows import proposal_tools, read_tools
from chalicelib.domains.chat.flows.tools import Tool

TOOLS = (*read_tools.TOOLS, *proposal_tools.TOOLS)


def of_bot(agent: AgentRow, *, can_confirm: bool) -> list[Tool]:
    """Return the tools of a bot's capabilities.

    A client that cannot show cards (``can_confirm``) gets no proposals.
    """
    chosen = {*agent.capabilities} - (set() if can_confirm else PROPOSING)
    return [tool for tool in TOOLS if tool.capability in chosen]

"""Bots as visitors reach them: by an id alone, as long as they are switched on."""

from chalicelib.core.errors import NotFoundError
from chalicelib.store import agents
from chalicelib.store.agents import AGENTS, AgentRow


def _unknown() -> NotFoundError:
    return NotFoundError("There is no such bot, or it is switched off.")


def workspace_of(agent_id: str) -> str:
    """Return the workspace that a bot is of.

    Raises:
        NotFoundError: there is no such bot.
    """
    workspace_id = agents.workspace_of(agent_id)
    if workspace_id is None:
        raise _unknown()
    return workspace_id


def active_bot(workspace_id: str, agent_id: str) -> AgentRow:
    """Return a bot that answers.

    Raises:
        NotFoundError: there is none, or it is switched off; which of them is not told.
    """
    agent = AGENTS.find(workspace_id, agent_id)
    if agent is None or not agent.is_active:
        raise _unknown()
    return agent

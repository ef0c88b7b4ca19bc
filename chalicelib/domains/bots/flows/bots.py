"""Bots: as records refer to them, and as visitors reach them by an id alone."""

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.bots.store import agents
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow


def unknown_bot() -> NotFoundError:
    """Return the error for an id that no bot of the workspace has."""
    return NotFoundError.of("bot", "List the bots (svc_list_agents) for valid ids.")


def existing_bot(workspace_id: str, agent_id: str) -> AgentRow:
    """Return a bot of a workspace, whether it is switched on or not.

    Raises:
        NotFoundError: no bot of the workspace has this id.
    """
    agent = AGENTS.find(workspace_id, agent_id)
    if agent is None:
        raise unknown_bot()
    return agent


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


def active_bot(workspace_id: str, agent_id: str) -> tuple[AgentRow, WorkspaceRow]:
    """Return a bot that answers, and its workspace, whose owner pays for it.

    Raises:
        NotFoundError: there is no such bot, it is switched off, or its workspace's owner is
            disabled. The answer is the same for all of these.
    """
    agent = AGENTS.find(workspace_id, agent_id)
    if agent is None or not agent.is_active:
        raise _unknown()
    workspace = workspaces.get(workspace_id)
    if accounts.is_disabled(workspace.owner_id):
        raise _unknown()
    return agent, workspace

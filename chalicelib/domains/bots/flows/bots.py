"""Find a bot that can answer visitors."""

from functools import partial

from chalicelib.core import deadline
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow


def active_bot(workspace_id: str, agent_id: str) -> tuple[AgentRow, WorkspaceRow]:
    """Return an active bot and its workspace, whose owner pays for it.

    Raises:
        NotFoundError: the bot does not exist, it is switched off, or the account of the
            workspace's owner is disabled. The error is the same in all cases.
    """
    agent, workspace = switched_on(workspace_id, agent_id)
    require_active_owner(workspace)
    return agent, workspace


def switched_on(workspace_id: str, agent_id: str) -> tuple[AgentRow, WorkspaceRow]:
    """Return a bot that is switched on, and its workspace, whose owner may be disabled.

    Raises:
        NotFoundError: there is no such bot, or it is switched off.
    """
    with deadline.side_by_side() as start:
        workspace = start(partial(workspaces.get, workspace_id))
        agent = AGENTS.found_for_visitor(AGENTS.find(workspace_id, agent_id))
        if not agent.is_active:
            raise AGENTS.unavailable()
        return agent, workspace.result()


def require_active_owner(workspace: WorkspaceRow) -> None:
    """Require that the owner of a bot's workspace is not disabled.

    Raises:
        NotFoundError: the owner is disabled. The error is that of a missing bot.
    """
    if accounts.is_disabled(workspace.owner_id):
        raise AGENTS.unavailable()

"""Find a bot that can answer visitors."""

from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow


def active_bot(workspace_id: str, agent_id: str) -> tuple[AgentRow, WorkspaceRow]:
    """Return an active bot and its workspace, whose owner pays for it.

    Raises:
        NotFoundError: the bot does not exist, it is switched off, or the account of the
            workspace's owner is disabled. The error is the same in all cases.
    """
    agent = AGENTS.found_for_visitor(AGENTS.find(workspace_id, agent_id))
    if not agent.is_active:
        raise AGENTS.unavailable()
    workspace = workspaces.get(workspace_id)
    if accounts.is_disabled(workspace.owner_id):
        raise AGENTS.unavailable()
    return agent, workspace

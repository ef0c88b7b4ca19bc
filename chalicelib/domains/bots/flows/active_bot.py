"""Find a bot that can answer visitors."""

from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine.reading import Key, Rows


def active_bot(workspace_id: str, *, agent_id: str) -> tuple[AgentRow, WorkspaceRow]:
    """Return an active bot and its workspace, whose owner pays, or raise NotFoundError."""
    # The error is the same for a bot that does not exist or is off, and for a disabled owner.
    agent, workspace = switched_on(workspace_id, agent_id=agent_id)
    require_active_owner(workspace)
    return agent, workspace


def keys(workspace_id: str, *, agent_id: str) -> list[Key]:
    """Return the keys of a bot and of its workspace, to read them ahead."""
    return [AGENTS.key(workspace_id, record_id=agent_id), workspaces.key(workspace_id)]


def switched_on(
    workspace_id: str, *, agent_id: str, rows: Rows | None = None
) -> tuple[AgentRow, WorkspaceRow]:
    """Return a bot that is on, and its workspace, or raise NotFoundError."""
    # The owner may be disabled; ``require_active_owner`` checks that.
    rows = rows or Rows()
    rows.read(keys(workspace_id, agent_id=agent_id))
    agent = AGENTS.found_for_visitor(
        rows.find(AgentRow, AGENTS.key(workspace_id, record_id=agent_id))
    )
    if not agent.is_active:
        raise AGENTS.unavailable()
    workspace = workspaces.get(workspace_id, rows)
    if workspace.halt is not None:
        raise AGENTS.unavailable()
    return agent, workspace


def require_active_owner(workspace: WorkspaceRow, rows: Rows | None = None) -> None:
    """Raise NotFoundError, as for a missing bot, if the owner of its workspace is disabled."""
    if accounts.is_disabled(workspace.owner_id, rows):
        raise AGENTS.unavailable()

"""Which messengers the pages of a booking offer to its client."""

from chalicelib.core.messengers import MESSENGERS, Messenger
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.gateways import messengers


def offered(workspace: WorkspaceRow) -> list[Messenger]:
    """Return the messengers that a workspace uses and this stage has a bot at, in their order."""
    chosen = workspace.client_channels
    names = MESSENGERS if chosen is None else [name for name in chosen if name in MESSENGERS]
    return [name for name in names if messengers.is_ready(name)]

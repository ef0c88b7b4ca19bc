"""The look and the contacts of a workspace."""

from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.lib.markup.brands import Brand


def brand_of(workspace: WorkspaceRow) -> Brand:
    """Return the brand of a workspace, without a link to its booking page."""
    return Brand(
        name=workspace.name,
        phone=workspace.phone,
        logo_url=workspace.logo_url,
        accent=workspace.accent,
        address=workspace.address,
        country=workspace.country,
        privacy_url=workspace.privacy_url,
    )

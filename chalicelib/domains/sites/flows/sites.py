"""Sites that an operation needs."""

from chalicelib.application.invoke import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.domains.sites.store.sites import SITES, SiteRow


def find(ctx: Context, site_id: str) -> SiteRow:
    """Return a site of the workspace.

    Raises:
        NotFoundError: it has none of that id.
    """
    site = SITES.find(ctx.workspace_id, site_id)
    if site is None:
        raise NotFoundError.of("site", "List the sites (svc_list_sites) for valid ids.")
    return site

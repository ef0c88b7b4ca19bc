"""Suspension of sites by the operator."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.sites.store.sites import SITES, SUSPENDED


class SiteRef(Wire):
    """Reference to a site of any workspace."""

    id: Id = Field(description="Site id.")


class SiteStatus(Wire):
    """Status of a site after the operation."""

    id: Id = Field(description="Site id.")
    status: str = Field(description="active, inactive or suspended.")


class SiteStatusResult(Wire):
    """A site's status."""

    site: SiteStatus = Field(description="The site.")


def _workspace_of(args: SiteRef) -> str:
    workspace_id = SITES.workspace_of(args.id)
    if workspace_id is None:
        msg = f'No site has the id "{args.id}".'
        raise NotFoundError(msg, key="site")
    return workspace_id


@operation(audience=OPERATOR, resolve=_workspace_of, idempotent=True, example={"id": "SITE_ID"})
def suspend_site(ctx: Context, args: SiteRef) -> SiteStatusResult:
    """Suspend a site, whatever its status. Only resuming it ends the suspension."""
    site = SITES.require(ctx.workspace_id, record_id=args.id)
    if site.status != SUSPENDED:
        site.status_when_resumed, site.status = site.status, SUSPENDED
        ctx.unit.save(site)
    return SiteStatusResult(site=SiteStatus.from_row(site.values))


@operation(audience=OPERATOR, resolve=_workspace_of, idempotent=True, example={"id": "SITE_ID"})
def resume_site(ctx: Context, args: SiteRef) -> SiteStatusResult:
    """Restore a suspended site's former status. A site that is not suspended stays unchanged."""
    site = SITES.require(ctx.workspace_id, record_id=args.id)
    if site.status == SUSPENDED:
        site.status, site.status_when_resumed = site.status_when_resumed or "active", None
        ctx.unit.save(site)
    return SiteStatusResult(site=SiteStatus.from_row(site.values))

"""Deleted sites and pages that can still be restored, for the console."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire
from chalicelib.domains.sites.operations.sites import SiteOut
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.domains.sites.store.sites import SITES, SiteRow

MAX_SHOWN = 100  # the latest first


class Deleted(Wire):
    """A deleted site or page."""

    id: Id = Field(description="Id, for the call that restores it.")
    title: str = Field(description="Title.")
    slug: str = Field(description="Slug that it had.")
    restorable_until: Timestamp = Field(description="Time until which it can be restored.")


class DeletedList(Wire):
    """Deleted sites or pages."""

    deleted: list[Deleted] = Field(description="The latest 100 of them, the latest first.")
    total: int = Field(description="Number of all that can be restored.")


class DeletedPagesQuery(Wire):
    """Site whose deleted pages to list."""

    project_id: Id = Field(description="Site id.")


class DeletedPages(DeletedList):
    """Deleted pages of a site."""

    project: SiteOut = Field(description="The site.")


@operation(example={}, role=Role.MANAGER)
def list_deleted_sites(ctx: Context, args: NoInput) -> DeletedList:
    """List the sites that were deleted in the last 30 days, with their pages and forms."""
    rows = SITES.fetch_deleted(
        ctx.workspace_id, SITES.deleted_ids(ctx.workspace_id, together_with="")
    )
    deleted, total = _to_wire([site for site in rows if site.deletion_id is not None])
    return DeletedList(deleted=deleted, total=total)


@operation(role=Role.MANAGER, example={"projectId": "SITE_ID"})
def list_deleted_pages(ctx: Context, args: DeletedPagesQuery) -> DeletedPages:
    """List the pages of a site that were deleted in the last 30 days, but not with the site."""
    site = SITES.require(ctx.workspace_id, record_id=args.project_id)
    rows = PAGES.fetch_deleted(
        ctx.workspace_id, PAGES.deleted_ids(ctx.workspace_id, together_with=site.id)
    )
    deleted, total = _to_wire(rows)
    return DeletedPages(deleted=deleted, total=total, project=SiteOut.from_record(site))


def _to_wire(records: list[SiteRow] | list[PageRow]) -> tuple[list[Deleted], int]:
    """Return the wire form of the latest records that can still be restored, and their number."""
    now = clock.now()
    rows = sorted((row for row in records if row.expires > now), key=lambda row: row.expires)
    latest = [
        Deleted(id=row.id, title=row.title, slug=row.slug, restorable_until=row.expires)
        for row in rows[: -MAX_SHOWN - 1 : -1]
    ]
    return latest, len(rows)

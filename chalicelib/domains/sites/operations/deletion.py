"""Deletion of a site with its pages and forms."""

from datetime import datetime, timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.unit import AuditEvent
from chalicelib.core.wire.schema import (
    DeletedResult,
    Id,
    Wire,
)
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.flows import domain_binding
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import jobs
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.object_store import object_store

KEPT_AFTER_DELETION = timedelta(days=30)
"""Time for which the operator can restore a deleted site."""
FORM = "FORM"
"""Noun of forms, which are deleted with their site."""
CASCADE = "site-cascade"
PURGE = "site-purge"


class SiteDelete(Wire):
    """Arguments of a site's deletion."""

    id: Id = Field(description="Site id.")
    dry_run: bool = Field(default=False, description="Only report.")


class SiteCascade(Wire):
    """Records that are deleted with a site. Leads, clients and services stay."""

    pages: int = Field(description="Pages deleted with it.")
    forms: int = Field(description="Forms deleted with it.")
    domain: str | None = Field(description="Released custom domain, or null.")


class SiteDeleted(DeletedResult):
    """Result of a deletion, with the number of deleted records."""

    cascade: SiteCascade = Field(description="Records deleted with it.")


@operation(
    tool="svc_delete_site",
    rest="POST /api/projects/delete",
    scope=Scope.PROJECTS_WRITE,
    title="Delete a site",
    destructive=True,
    idempotent=True,
    example={"id": "SITE_ID"},
)
def delete_site(ctx: Context, args: SiteDelete) -> SiteDeleted:
    """Delete a site with its pages and forms, and free its slug and domain.

    Leads, clients and services stay.
    """
    site = SITES.require(ctx.workspace_id, args.id)
    cascade = SiteCascade(
        pages=len(pages.PAGES.entries(ctx.workspace_id, site.id)),
        forms=len(listing_of(FORM).entries(ctx.workspace_id, project_id=site.id)),
        domain=site.domain.name if site.domain else None,
    )
    if args.dry_run:
        return SiteDeleted(id=site.id, deleted=False, cascade=cascade)
    until = clock.now() + KEPT_AFTER_DELETION
    job = jobs.row(CASCADE, ctx.workspace_id, {"siteId": site.id})
    ctx.unit.soft_delete(site, until=until)
    domain_binding.release(ctx.unit, site)
    ctx.unit.create(jobs.row(PURGE, ctx.workspace_id, {"siteId": site.id}, until))
    _delete_some(ctx.unit, site.id, until)
    ctx.unit.create(job)
    ctx.unit.after_commit(lambda: jobs.attempt(job, delete_rest_of_site))
    return SiteDeleted(id=site.id, deleted=True, cascade=cascade)


RECORDS_PER_TRANSACTION = 25
"""Pages or forms deleted in one transaction.

Each adds its record, its copy in the trash, and a claim.
"""


def _delete_some(unit: UnitOfWork, site_id: str, until: datetime) -> bool:
    """Stage the deletion of a site's next pages, or else forms; return whether there were any."""
    rows = pages.PAGES.entries(unit.workspace_id, site_id)
    batch = pages.read(unit.workspace_id, rows[:RECORDS_PER_TRANSACTION])
    for page in batch:
        unit.soft_delete(page, until=until)
    files.release_bytes(unit, sum(int(page.html_bytes) for page in batch))
    if rows:
        return True
    found = [each.id for each in listing_of(FORM).entries(unit.workspace_id, project_id=site_id)]
    for form in listing_of(FORM).fetch(unit.workspace_id, found[:RECORDS_PER_TRANSACTION]):
        unit.soft_delete(form, until=until)
    return bool(found)


@job_handler(CASCADE)
def delete_rest_of_site(job: Job) -> None:
    """Delete the pages and forms that the deletion of a site left.

    These were too many for the deletion's transaction, or were created at the same moment. The job
    runs right after the deletion. If the process dies, the scheduled runner finishes the job.
    """
    until = clock.now() + KEPT_AFTER_DELETION

    def delete_some(unit: UnitOfWork) -> bool:
        return _delete_some(unit, job.payload["siteId"], until)

    while run_unit(job.workspace_id, AuditEvent.by_job(CASCADE), delete_some):
        pass


@job_handler(PURGE)
def purge_site_files(job: Job) -> None:
    """Remove designs and HTML of the pages of a site that was deleted a month ago."""
    pages.purge_designs(job.workspace_id, job.payload["siteId"])
    object_store().delete_under(pages.html_folder(job.workspace_id, job.payload["siteId"]))

"""Deletion of a site with its pages and forms, and their return within 30 days."""

from datetime import datetime

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.flows import domain_binding
from chalicelib.domains.sites.flows.undoing import (
    KEPT_AFTER_DELETION,
    RECORDS_PER_TRANSACTION,
    UNDO,
    end_deletion,
    first_batch,
    how_to_undo,
)
from chalicelib.domains.sites.store import page_versions, pages
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine import jobs
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.unit import UnitOfWork, cascade
from chalicelib.gateways.object_store import object_store

FORM = "FORM"
"""Noun of forms, which are deleted with their site."""
CASCADE = "site-cascade"
PURGE = "site-purge"


class SiteDelete(Wire):
    """Arguments of a site's deletion."""

    id: Id = Field(description="Site id.")
    dry_run: bool = Field(default=False, description="Only report.")


class SiteCascade(Wire):
    """Records that are deleted with a site. Leads, clients and services are kept."""

    pages: int = Field(description="Pages deleted with it.")
    forms: int = Field(description="Forms deleted with it.")
    domain: str | None = Field(description="Released custom domain, or null.")


class SiteDeleted(DeletedResult):
    """Result of a deletion, with the number of deleted records."""

    cascade: SiteCascade = Field(description="Records deleted with it.")
    undo: str | None = UNDO


@operation(
    tool=True,
    rest="POST /api/projects/delete",
    scope=Scope.PROJECTS_WRITE,
    example={"id": "SITE_ID"},
    errors=(ConflictError,),
    role=Role.MANAGER,
)
def delete_site(ctx: Context, args: SiteDelete) -> SiteDeleted:
    """Delete a site with its pages and forms, and free its slug and domain.

    Leads, clients and services are kept.
    """
    site = SITES.require(ctx.workspace_id, args.id)
    cascade = SiteCascade(
        pages=len(PAGES.entries(ctx.workspace_id, site.id)),
        forms=len(_forms(ctx.workspace_id, site.id)),
        domain=site.domain.name if site.domain else None,
    )
    if site.restoring_id is not None:
        msg = "The site's pages and forms are still being restored. Repeat the call in a minute."
        raise ConflictError(msg)
    if args.dry_run:
        return SiteDeleted(id=site.id, deleted=False, cascade=cascade, undo=None)
    until = clock.now() + KEPT_AFTER_DELETION
    site.deletion_id = ctx.unit.run_side_effect_once("deletion", new_id)
    ctx.unit.soft_delete(site, until=until)
    domain_binding.release(ctx.unit, site)
    ctx.unit.create(jobs.row(PURGE, ctx.workspace_id, {"siteId": site.id}, until))
    _delete_some(ctx.unit, site, until)
    ctx.unit.create_job(jobs.row(CASCADE, ctx.workspace_id, {"siteId": site.id}))
    undo = how_to_undo("POST /api/projects/restore", site.id, until)
    return SiteDeleted(id=site.id, deleted=True, cascade=cascade, undo=undo)


def _delete_some(unit: UnitOfWork, site: SiteRow, until: datetime) -> bool:
    """Stage the deletion of a site's next pages, or else forms, and return whether any existed."""
    workspace_id, together_with = unit.workspace_id, str(site.deletion_id)
    rows = PAGES.entries(workspace_id, site.id)
    batch = first_batch(pages.read(workspace_id, rows[:RECORDS_PER_TRANSACTION]))
    for page in batch:
        unit.soft_delete(page, until=until, together_with=together_with)
    files.release_bytes(unit, sum(int(page.html_bytes) for page in batch))
    if rows:
        return True
    forms = _forms(workspace_id, site.id)
    for form in first_batch(listing_of(FORM).fetch(workspace_id, forms[:RECORDS_PER_TRANSACTION])):
        unit.soft_delete(form, until=until, together_with=together_with)
    return bool(forms)


def has_contents(workspace_id: str, site_id: str) -> bool:
    """Return whether a site, live or deleted, has live pages or forms."""
    return bool(PAGES.entries(workspace_id, site_id) or _forms(workspace_id, site_id))


def _forms(workspace_id: str, site_id: str) -> list[str]:
    """Return the ids of a site's live forms."""
    form_entries = listing_of(FORM).entries(workspace_id, project_id=site_id)
    return [entry.id for entry in form_entries]


@job_handler(CASCADE)
def delete_rest_of_site(job: Job) -> None:
    """Delete the pages and forms that the deletion of a site left.

    These were too many for the deletion's transaction, or were created at the same moment. The job
    runs right after the deletion. If the process dies, the scheduled runner finishes the job. It
    stops when the site is restored.
    """

    def delete_some(unit: UnitOfWork) -> bool:
        site = SITES.find_deleted(job.workspace_id, job.payload["siteId"])
        if site is None:
            return False
        unit.require(site)
        return _delete_some(unit, site, site.expires)

    cascade(job, delete_some)


@job_handler(PURGE)
def purge_site_files(job: Job) -> None:
    """Remove designs, versions and HTML of the pages of a site that was deleted a month ago."""
    if not end_deletion(SITES, job, job.payload["siteId"], clock.now()):
        return
    pages.purge_designs(job.workspace_id, job.payload["siteId"])
    page_versions.purge_of_site(job.workspace_id, job.payload["siteId"])
    object_store().delete_under(pages.html_folder(job.workspace_id, job.payload["siteId"]))

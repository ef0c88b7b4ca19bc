"""Deletion of a site with its pages and forms."""

from datetime import datetime
from functools import partial

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, JobKind, job_handler
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
from chalicelib.domains.sites.store import page_drafts, page_versions, pages
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine import jobs
from chalicelib.engine.listing.index_entries import IndexEntry
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.reading import fetch
from chalicelib.engine.tables import Record
from chalicelib.engine.unit import UnitOfWork, cascade
from chalicelib.gateways.object_store import object_store

FORM = "FORM"  # noun of forms, which are deleted with their site
CASCADE = JobKind("site-cascade")
PURGE = JobKind("site-purge")


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
    with deadline.side_by_side() as start:
        reading = start(partial(_contents, ctx.workspace_id, site_id=args.id))
        site = SITES.require(ctx.workspace_id, record_id=args.id)
        page_entries, forms = contents = reading.result()
    cascade = SiteCascade(
        pages=len(page_entries),
        forms=len(forms),
        domain=site.domain.name if site.domain else None,
    )
    if site.restoring_id is not None:
        msg = "The site's pages and forms are still being restored. Repeat the call in a minute."
        raise ConflictError(msg, key="site_being_restored")
    if args.dry_run:
        return SiteDeleted(id=site.id, deleted=False, cascade=cascade, undo=None)
    until = clock.now() + KEPT_AFTER_DELETION
    site.deletion_id = ctx.unit.run_side_effect_once("deletion", new_id)
    ctx.unit.soft_delete(site, until=until)
    domain_binding.release(ctx.unit, site)
    ctx.unit.create(jobs.row(PURGE, ctx.workspace_id, {"siteId": site.id}, until))
    is_whole = _delete_some(ctx.unit, site, until, contents)
    cascade_job = jobs.row(CASCADE, ctx.workspace_id, {"siteId": site.id})
    ctx.unit.create_job(cascade_job, at_once=not is_whole)
    undo = how_to_undo("POST /api/projects/restore", record_id=site.id, until=until)
    return SiteDeleted(id=site.id, deleted=True, cascade=cascade, undo=undo)


def _contents(workspace_id: str, *, site_id: str) -> tuple[list[IndexEntry], list[str]]:
    with deadline.side_by_side() as start:
        forms = start(partial(_forms, workspace_id, site_id=site_id))
        return PAGES.entries(workspace_id, site_id), forms.result()


def _delete_some(
    unit: UnitOfWork, site: SiteRow, until: datetime, contents: tuple[list[IndexEntry], list[str]]
) -> bool:
    workspace_id, together_with = unit.workspace_id, str(site.deletion_id)
    page_entries, forms = contents
    keys = [
        *(PAGES.key(workspace_id, record_id=page_entry.id) for page_entry in page_entries),
        *(listing_of(FORM).key(workspace_id, record_id=form_id) for form_id in forms),
    ]
    rows = [row for row in fetch(keys[:RECORDS_PER_TRANSACTION]) if isinstance(row, Record)]
    batch = first_batch(rows)
    for record in batch:
        unit.soft_delete(record, until=until, together_with=together_with)
    html_bytes = (int(row.html_bytes) for row in batch if isinstance(row, PageRow))
    files.release_bytes(unit, sum(html_bytes))
    return len(batch) == len(rows) and len(keys) <= RECORDS_PER_TRANSACTION


def has_contents(workspace_id: str, *, site_id: str) -> bool:
    """Return whether a site, live or deleted, has live pages or forms."""
    return any(_contents(workspace_id, site_id=site_id))


def _forms(workspace_id: str, *, site_id: str) -> list[str]:
    form_entries = listing_of(FORM).entries(workspace_id, project_id=site_id)
    return [entry.id for entry in form_entries]


@job_handler(CASCADE)
def delete_rest_of_site(job: Job) -> None:
    """Delete the pages and forms that the deletion of a site left."""

    # They were too many for the deletion's transaction, or were created at the same moment. The job
    # runs right after the deletion if some are known to be left, and else in the scheduled
    # runner. It stops when the site is restored.
    def delete_some(unit: UnitOfWork) -> bool:
        site = SITES.find_deleted(job.workspace_id, record_id=job.payload["siteId"])
        if site is None:
            return False
        contents = _contents(job.workspace_id, site_id=site.id)
        if not any(contents):
            return False
        unit.require(site)
        _delete_some(unit, site, site.expires, contents)
        return True

    cascade(job, delete_some)


@job_handler(PURGE)
def purge_site_files(job: Job) -> None:
    """Remove designs, versions, drafts and HTML of the pages of a site deleted a month ago."""
    if not end_deletion(SITES, job, job.payload["siteId"], clock.now()):
        return
    pages.purge_designs(job.workspace_id, site_id=job.payload["siteId"])
    page_versions.purge_of_site(job.workspace_id, site_id=job.payload["siteId"])
    page_drafts.purge_of_site(job.workspace_id, site_id=job.payload["siteId"])
    object_store().delete_under(pages.html_folder(job.workspace_id, site_id=job.payload["siteId"]))

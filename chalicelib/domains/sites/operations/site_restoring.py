"""Return of a deleted site with its pages and forms, within 30 days of its deletion."""

from typing import Any, TypeVar

from pydantic import Field

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError, NotFoundError, call
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.files.flows import storage
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.sites.flows.undoing import (
    KEPT_AFTER_DELETION,
    RECORDS_PER_TRANSACTION,
    drop_missing_files,
    first_batch,
    remove_taken_external_ids,
    warn_of_removed_ids,
)
from chalicelib.domains.sites.operations.deletion import FORM, has_contents
from chalicelib.domains.sites.operations.pages import PageRecord
from chalicelib.domains.sites.operations.sites import SiteOut
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.domains.sites.store.sites import SITES, SLUG_CLAIM, SUSPENDED, SiteRow
from chalicelib.engine import jobs
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import Record
from chalicelib.engine.unit import UnitOfWork, cascade
from chalicelib.lib import slugs

RESTORE = JobKind("site-restore")
R = TypeVar("R", bound=Record)


class SiteRestore(Wire):
    """A deleted site to restore."""

    id: Id = Field(description="Id of a site that was deleted in the last 30 days.")


class SiteRestored(Wire):
    """A restored site."""

    project: SiteOut = Field(description="The site. It is inactive and has no domain.")
    pages: list[PageRecord] = Field(description="The pages that were deleted with it.")
    forms: int = Field(description="Number of the forms that were deleted with it.")
    former_slug: str | None = Field(
        description="The slug that it had, if another site has that now; or null."
    )
    unbound_domain: str | None = Field(
        description="The domain that it had, or null. Bind it again to use it."
    )
    charged_bytes: int = Field(description="Bytes of HTML, counted against the storage again.")
    missing_file_ids: list[Id] = Field(
        description="Files that its pages show and that were deleted."
    )


@operation(
    rest="POST /api/projects/restore",
    scope=Scope.PROJECTS_WRITE,
    role=Role.MANAGER,
    example={"id": "DELETED_SITE_ID"},
    errors=(ConflictError, QuotaExceededError),
)
def restore_site(ctx: Context, args: SiteRestore) -> SiteRestored:
    """Restore a site that was deleted in the last 30 days, with its pages and forms.

    The site is inactive and has no domain. A slug that another site has taken gets an ending, such
    as ``-2``. The site, a page or a form has no ``externalId`` if another one has it now. Pages and
    forms that were deleted before the site stay deleted.
    """
    deleted = _deleted_site(ctx, args.id)
    workspace_id, deletion = ctx.workspace_id, str(deleted.deletion_id)
    page_rows, form_rows = _deleted_contents(workspace_id, deletion)
    site = SITES.revived(workspace_id, deleted)
    options = list(slugs.candidates(site.slug))
    site.slug = new_slugs.choose(
        ctx, options, ClaimRow.find_claimed(SLUG_CLAIM, options), reserved=slugs.RESERVED
    )
    if site.status == SUSPENDED:
        site.status_when_resumed = "inactive"
    else:
        site.status = "inactive"
    site.domain_binding, site.restoring_id = None, deletion
    warn_of_removed_ids(ctx, remove_taken_external_ids(SITES, workspace_id, [site]))
    ctx.unit.restore(site, deleted=deleted)
    size = sum(int(page.html_bytes) for page in page_rows)
    storage.charge(ctx.unit, ctx.principal.plan, size)
    ctx.unit.create_job(jobs.row(RESTORE, workspace_id, {"siteId": site.id}))
    restored = _revived(workspace_id, site, page_rows)
    missing = drop_missing_files(workspace_id, restored)
    # The job removes them; here they are for the response.
    warn_of_removed_ids(ctx, remove_taken_external_ids(PAGES, workspace_id, restored))
    warn_of_removed_ids(ctx, remove_taken_external_ids(listing_of(FORM), workspace_id, form_rows))
    for page in restored:
        page.revision = page.follows + 1
        page.updated_at = site.updated_at
    return SiteRestored(
        project=SiteOut.from_record(site),
        pages=[
            PageRecord.from_record(page)
            for page in sorted(restored, key=lambda page: page.order_key)
        ],
        forms=len(form_rows),
        former_slug=deleted.slug if site.slug != deleted.slug else None,
        unbound_domain=deleted.domain.name if deleted.domain else None,
        charged_bytes=size,
        missing_file_ids=missing,
    )


def _deleted_contents(workspace_id: str, deletion: str) -> tuple[list[PageRow], list[Any]]:
    keys = [
        Key(listing.row, listing.trash(workspace_id), record_id)
        for listing in (PAGES, listing_of(FORM))
        for record_id in listing.deleted_ids(workspace_id, together_with=deletion)
    ]
    rows = fetch(keys)
    page_rows = [row for row in rows if isinstance(row, PageRow)]
    return page_rows, [row for row in rows if isinstance(row, listing_of(FORM).row)]


def _deleted_site(ctx: Context, site_id: str) -> SiteRow:
    deleted = SITES.find_deleted(ctx.workspace_id, record_id=site_id)
    if deleted is None and SITES.find(ctx.workspace_id, record_id=site_id) is not None:
        msg = "The site is not deleted, so it cannot be restored."
        raise ConflictError(msg, key="site_not_deleted")
    if deleted is None or deleted.deletion_id is None:
        msg = (
            f"No site with this id was deleted in the last {KEPT_AFTER_DELETION.days} days. To "
            f"list the sites, call {call('svc_list_sites')}."
        )
        raise NotFoundError(msg, key="deleted_site")
    if has_contents(ctx.workspace_id, site_id=site_id):
        msg = "The deletion of the site is still running. Repeat the call in a minute."
        raise ConflictError(msg, key="site_being_deleted")
    return deleted


def _revived(workspace_id: str, site: SiteRow, deleted: list[PageRow]) -> list[PageRow]:
    revived = [PAGES.revived(workspace_id, page) for page in deleted]
    for page in revived:
        page.site = site
    return revived


@job_handler(RESTORE)
def restore_rest_of_site(job: Job) -> None:
    """Restore the pages and forms of a restored site, in batches, the home page first."""

    # The job runs right after the site's own return. If the process dies, the scheduled runner
    # finishes the job. The quota was charged with the site.
    def restore_some(unit: UnitOfWork) -> bool:
        site = SITES.find(job.workspace_id, record_id=job.payload["siteId"])
        if site is None or site.restoring_id is None:
            return False
        if _restore_some(unit, site):
            unit.require(site, SiteRow.restoring_id == site.restoring_id)
            return True
        site.restoring_id = None
        unit.save(site)
        return False

    cascade(job, restore_some)


def _restore_some(unit: UnitOfWork, site: SiteRow) -> bool:
    batch = _next_deleted(PAGES, unit.workspace_id, site)
    live = _revived(unit.workspace_id, site, batch)
    drop_missing_files(unit.workspace_id, live)
    _free_slugs(unit.workspace_id, site, live)
    remove_taken_external_ids(PAGES, unit.workspace_id, live)
    for page, deleted in zip(live, batch, strict=True):
        unit.restore(page, deleted=deleted)
    forms = listing_of(FORM)
    found_forms = [] if batch else _next_deleted(forms, unit.workspace_id, site)
    live_forms = [forms.revived(unit.workspace_id, form) for form in found_forms]
    remove_taken_external_ids(forms, unit.workspace_id, live_forms)
    for form, deleted_form in zip(live_forms, found_forms, strict=True):
        unit.restore(form, deleted=deleted_form)
    return bool(batch or found_forms)


def _next_deleted(listing: Listing[R], workspace_id: str, site: SiteRow) -> list[R]:
    ids = listing.deleted_ids(workspace_id, together_with=str(site.restoring_id))
    ids.sort(key=lambda record_id: record_id != site.home_page_id)
    return first_batch(listing.fetch_deleted(workspace_id, ids[:RECORDS_PER_TRANSACTION]))


def _free_slugs(workspace_id: str, site: SiteRow, live: list[PageRow]) -> None:
    _, taken_slugs = pages.site_and_taken_slugs(
        workspace_id, site_id=site.id, slugs=[page.slug for page in live]
    )
    for page in live:
        if page.slug in taken_slugs:
            options = list(slugs.candidates(page.slug))
            _, others = pages.site_and_taken_slugs(workspace_id, site_id=site.id, slugs=options)
            page.slug = slugs.first_free(options, others, reserved=())

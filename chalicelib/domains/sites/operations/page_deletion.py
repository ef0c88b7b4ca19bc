"""Deletion of pages, and their return within 30 days."""

from pydantic import Field

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import (
    ConfirmationRequiredError,
    ConflictError,
    NotFoundError,
    VersionConflictError,
    call,
)
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import IF_VERSION, DeletedResult, Id, IfVersion, Wire
from chalicelib.domains.files.flows import storage
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.flows.page_objects import PURGE
from chalicelib.domains.sites.flows.undoing import (
    KEPT_AFTER_DELETION,
    UNDO,
    drop_missing_files,
    how_to_undo,
    remove_taken_external_ids,
    warn_of_removed_ids,
)
from chalicelib.domains.sites.operations.pages import (
    MAX_PAGES,
    PageRecord,
    PageRef,
    PageWritten,
    check_room,
    existing_page,
)
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.engine import jobs
from chalicelib.lib import slugs


class PageDelete(PageRef):
    """Arguments of a page's deletion, with the confirmation."""

    confirm: bool = Field(default=False, description="Must be true.")
    if_version: IfVersion | None = IF_VERSION
    dry_run: bool = Field(default=False, description="Only report.")


class PageDeleted(DeletedResult):
    """Result of a page's deletion."""

    undo: str | None = UNDO


@operation(
    tool=True,
    rest="POST /api/pages/delete",
    scope=Scope.PAGES_WRITE,
    example={"id": "PAGE_ID", "confirm": True},
    errors=(ConfirmationRequiredError, ConflictError, VersionConflictError),
    role=Role.MANAGER,
)
def delete_page(ctx: Context, args: PageDelete) -> PageDeleted:
    """Delete a page. Without confirm, the error names it: ask the user first.

    To delete the home page, first make another page the home page, if there is one.
    """
    page = existing_page(ctx, args.id, args.if_version)
    site = page.site
    if page.is_home and len(PAGES.entries(ctx.workspace_id, site.id)) > 1:
        msg = (
            "The home page of a site cannot be deleted. First make another page the home page "
            "(isHome: true)."
        )
        raise ConflictError(msg, key="home_page")
    if not args.confirm and not args.dry_run:
        msg = (
            f'The page "{page.title}" would be deleted. It can be restored for '
            f"{KEPT_AFTER_DELETION.days} days. Repeat with confirm: true."
        )
        about = {"id": page.id, "title": page.title, "slug": page.slug}
        raise ConfirmationRequiredError(msg, details={"page": about})
    until = clock.now() + KEPT_AFTER_DELETION
    ctx.unit.soft_delete(page, until=until, together_with=site.id)
    if page.is_home:
        site.home_page_id, site.page_count = None, 0
        ctx.unit.save(site)
    else:
        pages.count_deleted_page(ctx.unit, page, on_conflict=PAGES.not_found())
    files.release_bytes(ctx.unit, int(page.html_bytes))
    folder = pages.html_folder(ctx.workspace_id, site_id=page.project_id, page_id=page.id)
    ctx.unit.create(jobs.row(PURGE, ctx.workspace_id, {"pageId": page.id, "folder": folder}, until))
    if args.dry_run:
        return PageDeleted(id=page.id, deleted=False, undo=None)
    undo = how_to_undo("POST /api/pages/restore", record_id=page.id, until=until)
    return PageDeleted(id=page.id, deleted=True, undo=undo)


class PageRestore(Wire):
    """A deleted page to restore."""

    id: Id = Field(description="Id of a page that was deleted in the last 30 days.")


class PageRestored(PageWritten):
    """A restored page."""

    former_slug: str | None = Field(
        description="The slug that it had, if another page has that now; or null."
    )
    missing_file_ids: list[Id] = Field(
        description="Files that its HTML shows and that were deleted."
    )


@operation(
    rest="POST /api/pages/restore",
    scope=Scope.PAGES_WRITE,
    role=Role.MANAGER,
    example={"id": "DELETED_PAGE_ID"},
    errors=(ConflictError, QuotaExceededError),
)
def restore_page(ctx: Context, args: PageRestore) -> PageRestored:
    """Restore a page that was deleted in the last 30 days, with its HTML and its versions.

    A slug that another page has taken gets an ending, such as ``-2``. The page has no
    ``externalId`` if another page has it now.
    """
    deleted = PAGES.find_deleted(ctx.workspace_id, record_id=args.id)
    if deleted is None:
        if PAGES.find(ctx.workspace_id, record_id=args.id) is not None:
            msg = "The page is not deleted, so it cannot be restored."
            raise ConflictError(msg, key="page_not_deleted")
        msg = (
            f"No page with this id was deleted in the last {KEPT_AFTER_DELETION.days} days. To "
            f"list the pages of a site, call {call('svc_list_pages')}."
        )
        raise NotFoundError(msg, key="deleted_page")
    options = list(slugs.candidates(deleted.slug))
    site, taken_slugs = pages.site_and_taken_slugs(
        ctx.workspace_id, site_id=deleted.project_id, slugs=options
    )
    if site is None or deleted.trashed_with_id != site.id:
        msg = f"The page was deleted with its site {deleted.project_id}. Restore the site instead."
        raise ConflictError(msg, key="deleted_with_site", details={"projectId": deleted.project_id})
    check_room(site)
    page = PAGES.revived(ctx.workspace_id, deleted)
    page.slug = new_slugs.choose(ctx, options, taken_slugs)
    pages.set_site(page, site)
    pages.read_design(ctx.workspace_id, page)
    warn_of_removed_ids(ctx, remove_taken_external_ids(PAGES, ctx.workspace_id, [page]))
    missing = drop_missing_files(ctx.workspace_id, [page])
    ctx.unit.restore(page, deleted=deleted)
    if site.home_page_id is None:
        site.home_page_id, site.page_count = page.id, 1
        site.last_sort_order = max(int(site.last_sort_order or 0), int(page.sort_order)) or None
        ctx.unit.save(site)
    else:
        pages.count_restored_page(ctx.unit, page, MAX_PAGES)
    storage.charge(ctx.unit, ctx.principal.plan, int(page.html_bytes))
    return PageRestored(
        page=PageRecord.from_record(page),
        former_slug=deleted.slug if page.slug != deleted.slug else None,
        missing_file_ids=missing,
    )

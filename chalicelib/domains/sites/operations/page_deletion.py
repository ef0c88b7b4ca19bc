"""Deletion of pages, with their HTML in the object store."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ConfirmationRequiredError, ConflictError
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.flows.page_objects import PURGE, purge_page_files
from chalicelib.domains.sites.operations.pages import (
    IF_VERSION,
    PAGE_ID,
    IfVersion,
    existing_page,
)
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.pages import PAGES, VersionConflictError
from chalicelib.engine import jobs


class PageDelete(Wire):
    """Arguments of a page's deletion, with the confirmation."""

    id: Id = PAGE_ID
    confirm: bool = Field(default=False, description="Must be true.")
    if_version: IfVersion | None = IF_VERSION
    dry_run: bool = Field(default=False, description="Only report.")


@operation(
    tool="svc_delete_page",
    rest="POST /api/pages/delete",
    scope=Scope.PAGES_WRITE,
    title="Delete a page",
    destructive=True,
    idempotent=True,
    example={"id": "PAGE_ID", "confirm": True},
    errors=(ConfirmationRequiredError, ConflictError, VersionConflictError),
)
def delete_page(ctx: Context, args: PageDelete) -> DeletedResult:
    """Delete a page permanently. Without confirm, the error names it: ask the user.

    To delete the home page, first make another page the home, if there is any.
    """
    page = existing_page(ctx, args.id, args.if_version)
    site = page.site
    if page.is_home and len(PAGES.entries(ctx.workspace_id, site.id)) > 1:
        msg = "This is the site's home page. Make another page the home (isHome: true) first."
        raise ConflictError(msg)
    if not args.confirm and not args.dry_run:
        msg = f'Deleting the page "{page.title}" cannot be undone. Repeat with confirm: true.'
        about = {"id": page.id, "title": page.title, "slug": page.slug}
        raise ConfirmationRequiredError(msg, details={"page": about})
    ctx.unit.delete(page)
    pages.delete_design(ctx.unit, page)
    if page.is_home:
        site.home_page_id, site.page_count = None, 0
        ctx.unit.save(site)
    else:
        pages.count_deleted_page(ctx.unit, page, on_conflict=PAGES.not_found())
    files.release_bytes(ctx.unit, int(page.html_bytes))
    folder = pages.html_folder(ctx.workspace_id, page.project_id, page.id)
    job = jobs.row(PURGE, ctx.workspace_id, {"folder": folder})
    ctx.unit.create(job)
    ctx.unit.after_commit(lambda: jobs.attempt(job, purge_page_files))
    return DeletedResult(id=page.id, deleted=not args.dry_run)

"""List, read and restore earlier versions of a page's HTML."""

from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ConcurrentUpdateError, NotFoundError, VersionConflictError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import ListResult, WholePageQuery
from chalicelib.core.wire.schema import IF_VERSION, Id, IfVersion, Timestamp, Wire
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.files.rules import stored_files
from chalicelib.domains.files.store.files import MAX_FILES_PER_TEXT
from chalicelib.domains.sites.flows.page_objects import read_html, stage_html
from chalicelib.domains.sites.operations.pages import (
    PageRecord,
    PageRef,
    PageWritten,
    existing_page,
)
from chalicelib.domains.sites.store import page_versions
from chalicelib.domains.sites.store.page_versions import MAX_VERSIONS, VersionRow
from chalicelib.gateways.object_store import object_store

VERSION_ID = Field(description="Id of the version.")


class PageVersion(Wire):
    """HTML that a page had earlier."""

    id: Id = VERSION_ID
    html_bytes: int = Field(description="Size of the HTML in bytes of UTF-8.")
    saved_at: Timestamp = Field(description="When the page got this HTML.")
    saved_by: str | None = Field(
        description="Who saved it, such as key:<id> or account:<id>; null if unknown."
    )

    @classmethod
    def from_record(cls, row: VersionRow) -> Self:
        return cls.from_row({**row.attribute_values, "id": row.id})


class PageVersionsQuery(WholePageQuery, PageRef):
    """Page whose versions to list."""


class PageVersions(ListResult):
    """The earlier versions of a page."""

    page: PageRecord = Field(description="The page as it is now.")
    versions: list[PageVersion] = Field(description="Earlier versions of its HTML, latest first.")


class PageVersionQuery(PageRef):
    """Version to read."""

    version_id: Id = VERSION_ID


class PageVersionRead(Wire):
    """An earlier version of a page, with the present one."""

    page: PageRecord = Field(description="The page as it is now.")
    html: str = Field(description="Its HTML now.")
    version: PageVersion = Field(description="The earlier version.")
    version_html: str = Field(description="The HTML of the earlier version.")


class PageRestoreVersion(PageRef):
    """Version to restore."""

    version_id: Id = VERSION_ID
    if_version: IfVersion | None = IF_VERSION


class PageVersionRestored(PageWritten):
    """A page that has the HTML of an earlier version again."""

    missing_file_ids: list[Id] = Field(
        description="Files that the HTML shows and that were deleted."
    )


@operation(
    rest="GET /api/pages/{id}/versions",
    scope=Scope.PAGES_READ,
    role=Role.MANAGER,
    title="List a page's versions",
    example={"id": "PAGE_ID"},
)
def list_page_versions(ctx: Context, args: PageVersionsQuery) -> PageVersions:
    """List the earlier versions of a page's HTML.

    Each save that changes the HTML keeps the one before for 24 hours, up to 20 MiB in all. Of older
    versions, the 30 latest that were on the page for 10 minutes are kept, up to 10 MiB. The first
    version of a day is kept for 24 hours in any case.
    """
    page = existing_page(ctx, args.id)
    versions = page_versions.find_all(ctx.workspace_id, page_id=page.id)
    return PageVersions(
        page=PageRecord.from_record(page),
        versions=[PageVersion.from_record(version) for version in versions[args.rows]],
        **args.counted(len(versions)),
    )


@operation(
    role=Role.MANAGER,
    title="Compare a page with a version",
    example={"id": "PAGE_ID", "versionId": "VERSION_ID"},
)
def get_page_version(ctx: Context, args: PageVersionQuery) -> PageVersionRead:
    """Return an earlier version of a page and the present one, both with their HTML."""
    page = existing_page(ctx, args.id)
    version, html = _stored_version(ctx, page.id, version_id=args.version_id)
    return PageVersionRead(
        page=PageRecord.from_record(page),
        html=read_html(ctx, page),
        version=PageVersion.from_record(version),
        version_html=html,
    )


@operation(
    rest="POST /api/pages/restore-version",
    scope=Scope.PAGES_WRITE,
    role=Role.MANAGER,
    title="Restore a page's version",
    example={"id": "PAGE_ID", "versionId": "VERSION_ID"},
    errors=(QuotaExceededError, VersionConflictError),
)
def restore_page_version(ctx: Context, args: PageRestoreVersion) -> PageVersionRestored:
    """Give a page the HTML of an earlier version.

    The HTML that it had before becomes a version, so this can be undone in the same way.
    """
    page = existing_page(ctx, args.id, args.if_version)
    _, html = _stored_version(ctx, page.id, version_id=args.version_id)
    ctx.unit.save(page)
    stage_html(ctx, page, html)
    file_ids = stored_files.file_ids_in(html)[:MAX_FILES_PER_TEXT]
    missing = [file_id for file_id in file_ids if file_id not in page.file_ids]
    return PageVersionRestored(page=PageRecord.from_record(page), missing_file_ids=missing)


def _stored_version(ctx: Context, page_id: str, *, version_id: str) -> tuple[VersionRow, str]:
    version = page_versions.find(ctx.workspace_id, page_id=page_id, version_id=version_id)
    if version is None:
        msg = (
            "The page has no version with this id. A page keeps each save for 24 hours, then "
            f"{MAX_VERSIONS} versions. GET /api/pages/{page_id}/versions lists them."
        )
        raise NotFoundError(msg, key="page_version")
    body = object_store().get(version.html_key)
    if body is None:
        raise ConcurrentUpdateError
    return version, body.decode()

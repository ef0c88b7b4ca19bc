"""List files, and change their names and folders."""

from functools import partial
from typing import Annotated, Self

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.text import matches_search
from chalicelib.core.wire.lists import ListResult, SortedListQuery
from chalicelib.core.wire.schema import (
    Id,
    PageNumber,
    Patch,
    SearchText,
    Timestamp,
    Title,
    Wire,
    optional,
)
from chalicelib.domains.files.flows.rehosting import public_url
from chalicelib.domains.files.operations.folders import FolderOut
from chalicelib.domains.files.rules import stored_files
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, FOLDERS, FileRow, FolderRow
from chalicelib.engine.listing import counters
from chalicelib.engine.reading import fetch


def _drop_path(name: str) -> str:
    base = stored_files.base_name(name)
    if not base:
        raise PydanticCustomError("path", "expected a file name, not only a path")
    return base


FileName = Annotated[Title, AfterValidator(_drop_path)]  # without the folders in the sender's path


class FileOut(Wire):
    """A file."""

    id: Id = Field(description="File id.")
    name: str = Field(description="File name.")
    url: str = Field(description="Public URL; it does not change.")
    thumbnail_url: str | None = Field(description="Small version of an image, or null.")
    mime_type: str = Field(description="Type, detected from the content; for texts, from the name.")
    size: int = Field(description="Size in bytes.")
    width: int | None = Field(description="Width of an image in pixels.")
    height: int | None = Field(description="Height of an image in pixels.")
    folder_id: Id | None = Field(description="Folder, or null for the root.")
    created_at: Timestamp = Field(description="When it was uploaded.")
    updated_at: Timestamp = Field(description="When it was last renamed, moved or replaced.")

    @classmethod
    def from_record(cls, file: FileRow) -> Self:
        thumbnail = file.thumbnail_key
        return cls.from_row(
            file.values,
            size=file.bytes,
            url=public_url(file.key),
            thumbnail_url=public_url(thumbnail) if thumbnail else None,
        )


class FileResult(Wire):
    """One file."""

    file: FileOut = Field(description="The file.")


class FileListQuery(SortedListQuery):
    """Filters for listing files."""

    folder_id: Id | None = optional("Default: the root folder.")
    q: SearchText | None = optional("Part of the name; searches all folders.")
    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=10, ge=1, le=100, description="Files per page.")

    @property
    def covers_all_folders(self) -> bool:
        # By changes, too: a file that was moved would be in neither folder's list.
        by_changes = self.updated_since is not None or self.sorts_by_update
        return bool(self.q) or (by_changes and self.folder_id is None)


class FileList(ListResult):
    """A page of a folder's files with its subfolders, or a page of search results."""

    folders: list[FolderOut] = Field(description="Subfolders, or folders found, by name.")
    files: list[FileOut] = Field(description="The files of this page, newest first.")
    current_folder: FolderOut | None = Field(description="This folder, or null for the root.")


@operation(
    tool=True,
    rest="GET /api/files/list",
    scope=Scope.FILES_READ,
    example={"folderId": "FOLDER_ID"},
    role=Role.MANAGER,
)
def list_files(ctx: Context, args: FileListQuery) -> FileList:
    """List a folder's files, newest first, and its subfolders. Only files are paged."""
    query = FILES.query(
        args,
        filters={"place": None if args.covers_all_folders else args.folder_id or files.ROOT},
        search=args.q or None,
        charge=ctx.charge,
    )
    with deadline.side_by_side() as start:
        reading_folders = start(partial(files.folders, ctx.workspace_id))
        counting = start(partial(counters.read_all, ctx.workspace_id, noun=FILES.noun))
        listing = partial(FILES.page, ctx.workspace_id, query, counting.result)
        # A search may be charged for, so the folder must be found first.
        reading_page = None if args.q else start(listing)
        folders = reading_folders.result()
        current = next((folder for folder in folders if folder.id == args.folder_id), None)
        if args.folder_id is not None and current is None:
            raise FOLDERS.not_found()
        page = reading_page.result() if reading_page else listing()
        counts = counting.result()
    if args.q and current is not None:
        ctx.warn(
            "folderId was ignored, because q searches all folders.",
            code=WarningCode.FIELD_IGNORED,
            field="folderId",
        )
        current = None
    inside = [
        folder
        for folder in folders
        if (matches_search([folder.name], args.q) if args.q else folder.parent_id == args.folder_id)
    ]
    return FileList(
        folders=[FolderOut.from_record(folder, counts) for folder in inside],
        files=[FileOut.from_record(file) for file in page.records],
        current_folder=FolderOut.from_record(current, counts) if current else None,
        **args.counted(page.total),
    )


class FilePatch(Patch):
    """Changes to a file."""

    id: Id = Field(description="File id, from the file list.")
    name: FileName = optional("New name; the URL does not change.")
    folder_id: Id | None = optional("Folder to move it to; null is the root.")


@operation(
    rest="POST /api/files/update",
    scope=Scope.FILES_WRITE,
    idempotent=True,
    example={"id": "FILE_ID", "name": "price-list.txt", "folderId": "FOLDER_ID"},
    role=Role.MANAGER,
)
def update_file(ctx: Context, args: FilePatch) -> FileResult:
    """Rename a file, or move it to another folder. Its URL does not change."""
    changes = args.provided("id")
    folder_id = changes.get("folder_id")
    keys = [FILES.key(ctx.workspace_id, record_id=args.id)]
    keys += [FOLDERS.key(ctx.workspace_id, record_id=folder_id)] if folder_id is not None else []
    rows = fetch(keys)
    file = FILES.found(next((row for row in rows if isinstance(row, FileRow)), None))
    if folder_id is not None:
        folder = next((row for row in rows if isinstance(row, FolderRow)), None)
        ctx.unit.require(FOLDERS.found(folder))
    for name, value in changes.items():
        setattr(file, name, value)
    ctx.unit.save(file)
    return FileResult(file=FileOut.from_record(file))

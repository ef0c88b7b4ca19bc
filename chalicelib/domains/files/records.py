"""Files as such: listing and deletion (spec, File listing, Files)."""

from typing import Self

from pydantic import Field

from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.schema import (
    DeletedResult,
    Id,
    PageNumber,
    Pagination,
    Timestamp,
    Wire,
    optional,
)
from chalicelib.core.scopes import Scope
from chalicelib.domains.files.folders import FolderOut, unknown_folder
from chalicelib.flows import rehosting
from chalicelib.flows.invoke import Context
from chalicelib.flows.rehosting import public_url
from chalicelib.store import counters, files, jobs
from chalicelib.store.files import FILES, FileRow
from chalicelib.store.queries import Query

PURGE = "file-purge"


class FileOut(Wire):
    """A file."""

    id: Id = Field(description="File id.")
    name: str = Field(description="Name.")
    url: str = Field(description="Public URL; it does not change.")
    thumbnail_url: str | None = Field(description="Small version of an image, or null.")
    mime_type: str = Field(description="Type, by its content.")
    size: int = Field(description="Bytes.")
    width: int | None = Field(description="Pixels, of an image.")
    height: int | None = Field(description="Pixels, of an image.")
    folder_id: Id | None = Field(description="Folder, or null for the root.")
    created_at: Timestamp = Field(description="When it came.")

    @classmethod
    def of(cls, file: FileRow) -> Self:
        """Return the wire form of a stored file."""
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


class FileListQuery(Wire):
    """Which files to list."""

    folder_id: Id | None = optional("Folder; the root when omitted.")
    page: PageNumber = Field(default=1, description="Page, from 1; it counts files only.")
    size: int = Field(default=10, ge=1, le=100, description="Files a page.")


class FileList(Wire):
    """One page of a folder's files, and its folders."""

    folders: list[FolderOut] = Field(description="The folders in this one, by name.")
    files: list[FileOut] = Field(description="The files of this page, newest first.")
    current_folder: FolderOut | None = Field(description="This folder; null is the root.")
    pagination: Pagination = Field(description="Where this page stands.")


@operation(
    tool="svc_list_files", rest="GET /api/files/list", scope=Scope.FILES_READ, title="List files"
)
def list_files(ctx: Context, args: FileListQuery) -> FileList:
    """List the files and folders in a folder, newest files first; pages count files only."""
    folders = files.folders(ctx.workspace_id)
    current = next((folder for folder in folders if folder.id == args.folder_id), None)
    if args.folder_id is not None and current is None:
        raise unknown_folder()
    counts = counters.read_all(ctx.workspace_id, FILES.noun)
    found = FILES.page(
        ctx.workspace_id,
        Query(
            args.page,
            args.size,
            "createdAt",
            descending=True,
            filters={"place": args.folder_id or files.ROOT},
        ),
        counts,
    )
    return FileList(
        folders=[FolderOut.of(f, counts) for f in folders if f.parent_id == args.folder_id],
        files=[FileOut.of(file) for file in found.records],
        current_folder=FolderOut.of(current, counts) if current else None,
        pagination=Pagination(total=found.total, page=args.page, limit=args.size),
    )


class FileDelete(Wire):
    """Which file to delete."""

    id: Id = Field(description="File id, from the file list.")
    dry_run: bool = Field(default=False, description="Only report what would be deleted.")


@operation(
    tool=None,
    rest="POST /api/files/delete",
    scope=Scope.FILES_WRITE,
    title="Delete a file",
    destructive=True,
    idempotent=True,
)
def delete_file(ctx: Context, args: FileDelete) -> DeletedResult:
    """Delete a file for good, and free its bytes. Pages and cards that show it lose it."""
    file = FILES.find(ctx.workspace_id, args.id)
    if file is None:
        raise NotFoundError.of("file", "List the files (svc_list_files) for valid ids.")
    ctx.unit.delete(file)
    files.give_back(ctx.unit, int(file.size))
    job = jobs.row(PURGE, ctx.workspace_id, {"keys": [file.key, file.thumbnail_key]})
    ctx.unit.create(job)
    ctx.unit.after_commit(lambda: jobs.attempt(job, purge_file))
    return DeletedResult(id=file.id, deleted=not args.dry_run)


@job_handler(PURGE)
def purge_file(job: Job) -> None:
    """Remove the objects of a deleted file."""
    rehosting.delete_objects(*job.payload["keys"])

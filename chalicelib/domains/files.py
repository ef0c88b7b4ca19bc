"""Files and folders: listing, uploads small and large, and deletion (spec, File listing, Files)."""

import base64
import binascii
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.core import clock
from chalicelib.core.errors import (
    ConflictError,
    NotFoundError,
    PayloadTooLargeError,
    QuotaExceededError,
    ValidationError,
)
from chalicelib.core.ids import new_id
from chalicelib.core.operations import Context, operation
from chalicelib.core.parsing import parse
from chalicelib.core.retry import until_won
from chalicelib.core.schedule import Due, due_work
from chalicelib.core.schema import (
    DeletedResult,
    Id,
    PageInfo,
    PageNumber,
    Timestamp,
    Wire,
    omitted,
    readable,
)
from chalicelib.core.scopes import Scope
from chalicelib.core.unit import Unit
from chalicelib.flows import rehosting
from chalicelib.flows.rehosting import StoredObject, public_url
from chalicelib.gateways.object_store import object_store
from chalicelib.rules import images, stored_files
from chalicelib.store import counters, due, files
from chalicelib.store.files import FILES, FOLDERS, FileRow, FolderRow, UploadRow, folder_claim
from chalicelib.store.listing import Query
from chalicelib.store.unit import UnitOfWork

MAX_DIRECT_BYTES = 4_000_000
"""Of a file sent with its call: Lambda takes 6 MB, base64 included (contract, Envelope)."""
MAX_LARGE_BYTES = 20_000_000
UPLOAD_SECONDS = 1800
LAPSE = timedelta(hours=1)
"""After it an announced upload is forgotten, and its bytes are free again."""
LAPSED = "upload-lapsed"
PURGE = "file-purge"
MAX_FOLDERS = 1_000
MAX_DEPTH = 10

FileName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(readable),
]


def _plain(name: str) -> str:
    if "/" in name or "\\" in name:
        raise PydanticCustomError("slash", "expected a name without / and \\")
    return name


FolderName = Annotated[FileName, StringConstraints(max_length=100), AfterValidator(_plain)]


class FileOut(Wire):
    """A file."""

    id: Id = Field(description="File id.")
    name: str = Field(description="Name.")
    url: str = Field(description="Public address; it does not change.")
    thumbnail_url: str | None = Field(description="Small version of a picture, or null.")
    mime_type: str = Field(description="Type, by its content.")
    size: int = Field(description="Bytes.")
    width: int | None = Field(description="Pixels, of a picture.")
    height: int | None = Field(description="Pixels, of a picture.")
    folder_id: Id | None = Field(description="Folder, or null for the root.")
    created_at: Timestamp = Field(description="When it came.")

    @classmethod
    def of(cls, file: FileRow) -> Self:
        """Return the wire form of a stored file."""
        thumbnail = file.thumbnail_key
        return cls.reading(
            file.values,
            size=file.bytes,
            url=public_url(file.key),
            thumbnail_url=public_url(thumbnail) if thumbnail else None,
        )


class FolderOut(Wire):
    """A folder."""

    id: Id = Field(description="Folder id.")
    name: str = Field(description="Name.")
    parent_id: Id | None = Field(description="The folder it is in, or null.")
    files_count: int = Field(description="Files in it, not counting its folders'.")


class FolderTree(FolderOut):
    """A folder with those in it."""

    children: Annotated[
        list["FolderTree"],
        WithJsonSchema({"type": "array", "items": {"type": "object"}}),
    ] = Field(description="The folders in it, of the same shape.")


class FileListQuery(Wire):
    """Which files to list."""

    folder_id: Id | None = omitted("Folder; the root when omitted.")
    page: PageNumber = Field(default=1, description="Page, from 1; it counts files only.")
    size: int = Field(default=10, ge=1, le=100, description="Files a page.")


class FileList(Wire):
    """One page of a folder's files, and its folders."""

    folders: list[FolderOut] = Field(description="The folders in this one, by name.")
    files: list[FileOut] = Field(description="The files of this page, newest first.")
    current_folder: FolderOut | None = Field(description="This folder; null is the root.")
    pagination: PageInfo = Field(description="Where this page stands.")


class FolderListQuery(Wire):
    """The folder tree takes no input."""


class FolderList(Wire):
    """The folder tree."""

    folders: list[FolderTree] = Field(description="The folders at the root, by name.")


class FileUpload(Wire):
    """A file of up to 4 MB; larger ones go in two steps."""

    name: FileName = Field(description="File name.")
    content: str = Field(
        description="The bytes in base64. As multipart/form-data: the file itself.",
        json_schema_extra={"contentEncoding": "base64"},
    )
    folder_id: Id | None = omitted("Folder; the root when omitted.")


class FileResult(Wire):
    """One file."""

    file: FileOut = Field(description="The file.")


class UploadCreate(Wire):
    """A file that is to come."""

    name: FileName = Field(description="File name.")
    size: int = Field(ge=1, le=MAX_LARGE_BYTES, description="Bytes, exactly.")
    folder_id: Id | None = omitted("Folder; the root when omitted.")


class UploadOut(Wire):
    """Where to send a file."""

    id: Id = Field(description="Upload id, to complete it with.")
    url: str = Field(description="Send the bytes here, without a key.")
    method: str = Field(description="With this HTTP method.")
    expires_at: Timestamp = Field(description="Until then.")


class UploadResult(Wire):
    """One announced upload."""

    upload: UploadOut = Field(description="The upload.")


class UploadRef(Wire):
    """Which upload has been sent."""

    id: Id = Field(description="Upload id.")


class FolderCreate(Wire):
    """A new folder."""

    name: FolderName = Field(description="Name, unique beside its siblings.")
    parent_id: Id | None = omitted("The folder to put it in; the root when omitted.")


class FolderResult(Wire):
    """One folder."""

    folder: FolderOut = Field(description="The folder.")


class FileDelete(Wire):
    """Which file to delete."""

    id: Id = Field(description="File id, from the file list.")
    dry_run: bool = Field(default=False, description="Only report what would be deleted.")


class NameTakenError(ConflictError):
    """A folder of this name lies beside it."""

    code = "name_taken"


def _unknown_folder() -> NotFoundError:
    return NotFoundError.of("folder", "List the folders (svc_list_folders) for valid ids.")


def _folder_out(folder: FolderRow, counts: dict[str, int]) -> FolderOut:
    count = counts.get(counters.name("place", folder.id), 0)
    return FolderOut.reading(folder.values, files_count=count)


@operation(
    tool="svc_list_files", rest="GET /api/files/list", scope=Scope.FILES_READ, title="List files"
)
def list_files(ctx: Context, args: FileListQuery) -> FileList:
    """List the files and folders in a folder, newest files first; pages count files only."""
    folders = files.folders(ctx.workspace_id)
    current = next((folder for folder in folders if folder.id == args.folder_id), None)
    if args.folder_id is not None and current is None:
        raise _unknown_folder()
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
        folders=[_folder_out(f, counts) for f in folders if f.parent_id == args.folder_id],
        files=[FileOut.of(file) for file in found.records],
        current_folder=_folder_out(current, counts) if current else None,
        pagination=PageInfo(total=found.total, page=args.page, limit=args.size),
    )


@operation(
    tool="svc_list_folders",
    rest="GET /api/file-folders",
    scope=Scope.FILES_READ,
    title="List folders",
)
def list_folders(ctx: Context, args: FolderListQuery) -> FolderList:  # noqa: ARG001  it takes none
    """Return the workspace's whole folder tree with the number of files in each folder."""
    counts = counters.read(ctx.workspace_id, FILES.noun, "place")
    inside: defaultdict[str | None, list[FolderRow]] = defaultdict(list)
    for folder in files.folders(ctx.workspace_id):
        inside[folder.parent_id].append(folder)

    def tree(parent_id: str | None) -> list[FolderTree]:
        return [
            FolderTree(**_folder_out(folder, counts).model_dump(), children=tree(folder.id))
            for folder in inside[parent_id]
        ]

    return FolderList(folders=tree(None))


@operation(
    tool=None,
    rest="POST /api/files/upload",
    scope=Scope.FILES_WRITE,
    title="Upload a file",
    file_field="content",
)
def upload_file(ctx: Context, args: FileUpload) -> FileResult:
    """Store a file of up to 4 MB, sent as multipart/form-data or as JSON with base64.

    Its type is told by its content. Pictures are written anew, without metadata, at most 4096
    pixels a side. Larger files: POST /api/files/uploads/create.
    """
    body = _decoded(args.content)
    _require_folder(ctx, args.folder_id)
    sent = _Sent(args.name, body, args.folder_id, "content")
    return FileResult(file=_stage(ctx.unit, ctx.plan, sent))


def add_file(unit: Unit, plan: str, folder: str, name: str, body: bytes) -> FileOut:
    """Stage a file for the operator, in a folder at the root that is made when first needed.

    Raises:
        AppError: as an upload does.
    """
    folder = parse(FolderCreate, {"name": folder}).name
    size = len(body)
    name = parse(UploadCreate, {"name": name, "size": size}).name
    return _stage(unit, plan, _Sent(name, body, rehosting.folder_at_root(unit, folder), "path"))


def _decoded(content: str) -> bytes:
    try:
        body = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise ValidationError.of("content", "expected the file's bytes in base64") from None
    if not body:
        raise ValidationError.of("content", "expected at least one byte, received an empty file")
    if len(body) > MAX_DIRECT_BYTES:
        msg = (
            f"The file has {len(body):,} bytes; a call takes {MAX_DIRECT_BYTES:,}. Announce it by "
            "POST /api/files/uploads/create, which takes 20 MB."
        )
        raise PayloadTooLargeError(msg)
    return body


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is to become a file; ``field`` is to blame for a picture that cannot be read."""

    name: str
    body: bytes
    folder_id: str | None
    field: str


def _stored(sent: _Sent) -> StoredObject:
    try:
        return rehosting.stored_object(sent.body, sent.name)
    except images.ImageError as error:
        raise ValidationError.of(sent.field, error.reason) from None


def _require_folder(ctx: Context, folder_id: str | None) -> None:
    """Demand that a folder exists now and when the unit commits."""
    if folder_id is not None:
        folder = FOLDERS.find(ctx.workspace_id, folder_id)
        if folder is None:
            raise _unknown_folder()
        ctx.unit.require(folder)


def _stage(unit: Unit, plan: str, sent: _Sent, *, taken: int = 0) -> FileOut:
    """Store bytes, of which some are taken already, and stage their file."""
    stored = unit.once("stored", lambda: _stored(sent))
    unit.on_failure(lambda: rehosting.delete_objects(*stored.keys))
    file = rehosting.file_row(unit.workspace_id, stored, sent.name, sent.folder_id)
    unit.create(file)
    _take(unit, plan, stored.size - taken)
    return FileOut.of(file)


def _take(unit: Unit, plan: str, size: int) -> None:
    """Take bytes of the quota, or give back what was taken too much."""
    quota = stored_files.QUOTA_BYTES[plan]
    over = QuotaExceededError(
        f"The files of the workspace may take {quota // 1_000_000:,} MB in all on its plan; "
        f"{size:,} bytes more do not fit. Delete files or upgrade."
    )
    if size > 0:
        files.take(unit, size, quota, otherwise=over)
    elif size < 0:
        files.give_back(unit, -size)


@operation(
    tool=None,
    rest="POST /api/files/uploads/create",
    scope=Scope.FILES_WRITE,
    title="Announce a large file",
)
def create_upload(ctx: Context, args: UploadCreate) -> UploadResult:
    """Get an address to send a file of up to 20 MB to: PUT its bytes there within half an hour.

    Then call POST /api/files/uploads/complete. Its bytes count against the quota from now on, and
    are free again if it is not completed within the hour.
    """
    _require_folder(ctx, args.folder_id)
    upload_id = ctx.unit.once("id", new_id)
    row = files.upload(
        ctx.workspace_id,
        upload_id,
        key=f"{ctx.workspace_id}/uploads/{upload_id}",
        name=args.name,
        size=args.size,
        folder_id=args.folder_id,
    )
    ctx.unit.create(row)
    _take(ctx.unit, ctx.plan, args.size)
    payload = {"uploadId": row.id, "key": row.key}
    ctx.unit.create(due.row(LAPSED, ctx.workspace_id, payload, clock.now() + LAPSE))
    request = object_store().upload_request(row.key, args.size, UPLOAD_SECONDS)
    return UploadResult(
        upload=UploadOut(id=row.id, url=request.url, method="PUT", expires_at=_in(UPLOAD_SECONDS))
    )


def _in(seconds: int) -> datetime:
    return clock.now() + timedelta(seconds=seconds)


@operation(
    tool=None,
    rest="POST /api/files/uploads/complete",
    scope=Scope.FILES_WRITE,
    title="Complete a large upload",
)
def complete_upload(ctx: Context, args: UploadRef) -> FileResult:
    """Make a file of the bytes that were sent to an announced upload's address.

    They are checked as those of a direct upload are.
    """
    row = _announced(ctx, args.id)
    key, size = row.key, int(row.size)
    body = object_store().get(key)
    if body is None:
        _announced(ctx, args.id)  # a rival that completed it removed the bytes, too
        message = f"nothing was sent yet; PUT the {size:,} bytes to the upload's address first"
        raise ValidationError.of("id", message)
    if len(body) != size:
        message = f"{size:,} bytes were announced, {len(body):,} were sent; send them again"
        raise ValidationError.of("id", message)
    if row.folder_id is not None:
        _require_folder(ctx, row.folder_id)
    sent = _Sent(row.name, body, row.folder_id, "id")
    out = _stage(ctx.unit, ctx.plan, sent, taken=size)
    ctx.unit.delete(row, if_there=True)
    ctx.unit.after_commit(lambda: object_store().delete(key))
    return FileResult(file=out)


def _announced(ctx: Context, upload_id: str) -> UploadRow:
    row = files.find_upload(ctx.workspace_id, upload_id)
    if row is None:
        raise NotFoundError.of("upload", "Announce it anew: POST /api/files/uploads/create.")
    return row


@due_work(LAPSED)
def forget_upload(work: Due) -> None:
    """Give back the bytes of an upload that was not completed; remove whatever was sent."""

    def forget() -> None:
        row = files.find_upload(work.workspace_id, work.payload["uploadId"])
        if row is not None:
            unit = UnitOfWork(work.workspace_id, "upload-lapsed")
            unit.delete(row, if_there=True)
            files.give_back(unit, int(row.size))
            unit.commit()

    until_won(forget)
    object_store().delete(work.payload["key"])


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
    if args.dry_run:
        return DeletedResult(id=file.id, deleted=False)
    ctx.unit.delete(file)
    files.give_back(ctx.unit, int(file.size))
    work = due.row(PURGE, ctx.workspace_id, {"keys": [file.key, file.thumbnail_key]})
    ctx.unit.create(work)
    ctx.unit.after_commit(lambda: due.attempt(work, purge_file))
    return DeletedResult(id=file.id, deleted=True)


@due_work(PURGE)
def purge_file(work: Due) -> None:
    """Remove the objects of a deleted file."""
    rehosting.delete_objects(*work.payload["keys"])


@operation(
    tool=None,
    rest="POST /api/file-folders",
    scope=Scope.FILES_WRITE,
    title="Create a folder",
)
def create_folder(ctx: Context, args: FolderCreate) -> FolderResult:
    """Create a folder for files, at the root or in another folder."""
    folders = {folder.id: folder for folder in files.folders(ctx.workspace_id)}
    if len(folders) >= MAX_FOLDERS:
        msg = f"A workspace has at most {MAX_FOLDERS:,} folders. Use those there are."
        raise ConflictError(msg)
    depth, above = 1, args.parent_id
    while above is not None:
        if above not in folders:
            raise _unknown_folder()
        depth, above = depth + 1, folders[above].parent_id
    if depth > MAX_DEPTH:
        message = f"folders lie at most {MAX_DEPTH} deep; choose one nearer to the root"
        raise ValidationError.of("parentId", message)
    if args.parent_id is not None:
        ctx.unit.require(folders[args.parent_id])
    folder = FOLDERS.new(ctx.workspace_id, name=args.name, parent_id=args.parent_id)
    ctx.unit.create(folder)
    ctx.unit.create(
        folder_claim(folder, ctx.workspace_id),
        otherwise=NameTakenError(f'A folder "{args.name}" is there. Use it, or choose a name.'),
    )
    return FolderResult(folder=_folder_out(folder, {}))

"""Upload small files in one call and large files in two steps."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import NotFoundError, PayloadTooLargeError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.files.flows import rehosting, storage
from chalicelib.domains.files.flows.rehosting import StoredObject
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.files.operations.files import FileName, FileOut, FileResult
from chalicelib.domains.files.operations.folders import FolderName, require_folder
from chalicelib.domains.files.rules import file_types, images
from chalicelib.domains.files.rules.job_kinds import UPLOAD_LAPSED
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, FOLDERS, UploadRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways.object_store import object_store

MAX_DIRECT_BYTES = 4_000_000  # within a call. Lambda accepts payloads of 6 MB, in base64.
MAX_LARGE_BYTES = 20_000_000
UPLOAD_SECONDS = 1800
UPLOAD_TTL = timedelta(hours=1)  # An announced upload then expires, and its bytes are free again.
PRIVATE_TTL = timedelta(days=1)
"""How long a member may look at what a private file would bring."""
IN_TWO_STEPS = (
    "Send a file of up to 20 MB in two steps: announce it with POST /api/files/uploads/create, then"
    " PUT its bytes to the returned URL."
)


class FileUpload(Wire):
    """A file of up to 4 MB. Larger files are sent in two steps."""

    name: FileName = Field(description="File name; a path before it is removed.")
    content: str = Field(
        description="The bytes in base64. As multipart/form-data: the file itself.",
        json_schema_extra={"contentEncoding": "base64"},
    )
    folder_id: Id | None = optional("Folder; the root if omitted.")


class UploadCreate(Wire):
    """Announcement of a large file."""

    name: FileName = Field(description="File name; a path before it is removed.")
    size: int = Field(ge=1, le=MAX_LARGE_BYTES, description="Exact size in bytes.")
    folder_id: Id | None = optional("Folder; the root if omitted.")


class UploadOut(Wire):
    """URL and method with which to send a file."""

    id: Id = Field(description="Upload id, for completing the upload.")
    url: str = Field(description="URL to send the bytes to, without a key.")
    method: str = Field(description="HTTP method to use.")
    expires_at: Timestamp = Field(description="When the URL expires.")


class PrivateUpload(Wire):
    """A file of up to 4 MB without a public URL."""

    name: FileName = Field(description="File name; a path before it is removed.")
    content: str = Field(description="The bytes in base64.")


class UploadResult(Wire):
    """One announced upload."""

    upload: UploadOut = Field(description="The upload.")


class UploadRef(Wire):
    """Reference to an upload that has been sent."""

    id: Id = Field(description="Upload id.")


@operation(
    rest="POST /api/files/upload",
    scope=Scope.FILES_WRITE,
    file_field="content",
    if_too_large=IN_TWO_STEPS,
    example={"name": "note.txt", "content": "UnllIGJyZWFk", "folderId": "FOLDER_ID"},
    errors=(QuotaExceededError,),
    role=Role.MANAGER,
)
def upload_file(ctx: Context, args: FileUpload) -> FileResult:
    """Store a file of up to 4 MB, sent as multipart/form-data or as JSON with base64.

    The type is detected from the content. JPEG, PNG, GIF, WebP, AVIF and BMP images are re-encoded
    without metadata, at most 4096 pixels a side. HEIC, TIFF and camera raw are rejected. Other
    files are stored unchanged. For larger files call POST /api/files/uploads/create.
    """
    body = decode(args.content)
    _warn_of_page_code(ctx, args.name)
    require_folder(ctx, args.folder_id)
    new_file = _NewFile(args.name, body, args.folder_id, "content")
    return FileResult(file=_stage(ctx.unit, ctx.principal.plan, new_file))


class FileAdd(Wire):
    """A file that the operator adds to a workspace."""

    workspace_id: Id = Field(description="Workspace id.")
    folder: FolderName = Field(description="Folder at the root; created if missing.")
    name: FileName = Field(description="File name; a path before it is removed.")
    content: str = Field(description="The bytes in base64.")


def _workspace(args: FileAdd) -> str:
    return args.workspace_id


@operation(
    audience=OPERATOR,
    resolve=_workspace,
    example={
        "workspaceId": "WORKSPACE_ID",
        "folder": "Papers",
        "name": "c.txt",
        "content": "aGVsbG8=",
    },
)
def add_file(ctx: Context, args: FileAdd) -> FileResult:
    """Add a file of up to 20 MB to a workspace, within its quota."""
    plan = workspaces.get(args.workspace_id).plan
    body = decode(args.content, MAX_LARGE_BYTES)
    folder_id = rehosting.folder_at_root(ctx.unit, args.folder)
    return FileResult(file=_stage(ctx.unit, plan, _NewFile(args.name, body, folder_id, "path")))


def decode(content: str, limit: int = MAX_DIRECT_BYTES) -> bytes:
    """Return the bytes of a file in a call; raise AppError if there are none or too many."""
    try:
        body = base64.b64decode("".join(content.splitlines()), validate=True)
    except (binascii.Error, ValueError):
        raise ValidationError.of("content", message="expected the file's bytes in base64") from None
    if not body:
        raise ValidationError.of(
            "content", message="expected at least one byte, received an empty file", key="blank"
        )
    if len(body) > limit:
        msg = (
            f"The file has {len(body):,} bytes, but the maximum for one call is {limit:,}. "
            f"{IN_TWO_STEPS}"
        )
        raise PayloadTooLargeError(msg, key="file")
    return body


@dataclass(frozen=True, slots=True)
class _NewFile:
    name: str
    body: bytes
    folder_id: str | None
    field: str  # the input field that an image error names
    file_id: str | None = None  # None: a new id


def _store(workspace_id: str, new_file: _NewFile) -> StoredObject:
    try:
        return rehosting.stored_object(workspace_id, new_file.body, new_file.name, new_file.file_id)
    except images.ImageError as error:
        raise ValidationError.of(new_file.field, message=error.reason, key=error.key) from None


def _stage(unit: UnitOfWork, plan: str, new_file: _NewFile, *, charged: int = 0) -> FileOut:
    # ``charged`` bytes are already charged to the quota.
    stored_file = unit.run_side_effect_once("stored", lambda: _store(unit.workspace_id, new_file))
    unit.on_failure(lambda: rehosting.remove_objects([stored_file]))
    file = rehosting.file_row(unit.workspace_id, stored_file, new_file.name, new_file.folder_id)
    unit.create(file)
    storage.charge(unit, plan, stored_file.size - charged)
    return FileOut.from_record(file)


@operation(
    rest="POST /api/files/uploads/create",
    scope=Scope.FILES_WRITE,
    title="Announce a large file",
    example={"name": "tour.mp4", "size": 12_000_000, "folderId": "FOLDER_ID"},
    errors=(QuotaExceededError,),
)
def create_upload(ctx: Context, args: UploadCreate) -> UploadResult:
    """Get a URL for a file of up to 20 MB. PUT the bytes to it within half an hour.

    Then call POST /api/files/uploads/complete. The bytes count against the quota immediately. They
    are released if the upload is not completed within an hour.
    """
    require_folder(ctx, args.folder_id)
    _warn_of_page_code(ctx, args.name)
    row = _upload(ctx, args.name, args.size, UPLOAD_TTL, folder_id=args.folder_id)
    request = object_store().upload_request(row.key, args.size, seconds=UPLOAD_SECONDS)
    return UploadResult(
        upload=UploadOut(
            id=row.id, url=request.url, method="PUT", expires_at=_time_from_now(UPLOAD_SECONDS)
        )
    )


@operation(
    role=Role.MANAGER,
    accepts_idempotency_key=True,
    title="Upload a file for an import",
    example={"name": "clients.csv", "content": "bmFtZSxwaG9uZQo="},
    errors=(QuotaExceededError,),
)
def upload_privately(ctx: Context, args: PrivateUpload) -> UploadRef:
    """Store a file of up to 4 MB that has no public URL, and return its id for an import.

    It is deleted when the import starts, or after a day.
    """
    body = decode(args.content)
    row = _upload(ctx, args.name, len(body), PRIVATE_TTL)
    store = object_store()
    ctx.unit.run_side_effect_once(
        "stored", lambda: store.put(row.key, body, "application/octet-stream")
    )
    ctx.unit.on_failure(lambda: store.delete(row.key))
    return UploadRef(id=row.id)


def _upload(
    ctx: Context, name: str, size: int, kept_for: timedelta, folder_id: str | None = None
) -> UploadRow:
    """Stage an upload, which is no file yet. Its object has no public URL."""
    upload_id = ctx.unit.run_side_effect_once("id", new_id)
    row = files.upload(
        ctx.workspace_id,
        upload_id=upload_id,
        key=f"{ctx.workspace_id}/uploads/{upload_id}",
        name=name,
        size=size,
        folder_id=folder_id,
    )
    ctx.unit.create(row)
    storage.charge(ctx.unit, ctx.principal.plan, size)
    payload = {"uploadId": row.id, "key": row.key}
    ctx.unit.create(jobs.row(UPLOAD_LAPSED, ctx.workspace_id, payload, clock.now() + kept_for))
    return row


def _warn_of_page_code(ctx: Context, name: str) -> None:
    if file_types.is_page_code(name):
        ctx.warn(
            f"Browsers do not use {name} from its URL in a page, because files are served as text. "
            "Put CSS into <style> and scripts into <script> in the HTML of the page.",
            code=WarningCode.SERVED_AS_TEXT,
            name=name,
        )


def _time_from_now(seconds: int) -> datetime:
    return clock.now() + timedelta(seconds=seconds)


@operation(
    rest="POST /api/files/uploads/complete",
    scope=Scope.FILES_WRITE,
    title="Complete a large upload",
    idempotent=True,
    example={"id": "UPLOAD_ID"},
    errors=(QuotaExceededError,),
)
def complete_upload(ctx: Context, args: UploadRef) -> FileResult:
    """Create a file from the bytes that were sent to an announced upload's URL.

    The bytes are checked like those of a direct upload. A repeated call returns the same file.
    """
    row = files.find_upload(ctx.workspace_id, upload_id=args.id)
    if row is None:
        return _find_completed(ctx, args.id)
    body = object_store().get(row.key)
    if body is None and files.find_upload(ctx.workspace_id, upload_id=args.id) is None:
        # A concurrent call completed the upload and removed its bytes.
        return _find_completed(ctx, args.id)
    body = check_sent(row, body, "id")
    folder_id: str | None = row.folder_id
    if folder_id is not None and FOLDERS.find(ctx.workspace_id, record_id=folder_id) is None:
        ctx.warn(
            "The folder of this upload was deleted, so the file is in the root folder.",
            code=WarningCode.FOLDER_DELETED,
        )
        folder_id = None
    require_folder(ctx, folder_id)
    _warn_of_page_code(ctx, row.name)
    new_file = _NewFile(row.name, body, folder_id, "id", row.id)
    file = _stage(ctx.unit, ctx.principal.plan, new_file, charged=int(row.size))
    stage_end(ctx.unit, row)
    return FileResult(file=file)


def check_sent(row: UploadRow, body: bytes | None, field: str) -> bytes:
    """Return the bytes sent for an announced upload, which the input names in ``field``.

    Raises:
        ValidationError: none were sent, or another number than announced.
    """
    size = int(row.size)
    if body is None:
        message = f"expected {size:,} bytes at the upload's URL, received none; PUT the bytes first"
        raise ValidationError.of(field, message=message)
    if len(body) != size:
        message = (
            f"expected the {size:,} announced bytes, received {len(body):,}; send the bytes again"
        )
        raise ValidationError.of(field, message=message)
    return body


def stage_end(unit: UnitOfWork, row: UploadRow) -> None:
    """Stage the end of an announced upload, whose bytes were taken. Its quota is not changed."""
    key = row.key
    unit.delete(row, if_there=True)
    unit.after_commit(lambda: object_store().delete(key))


def _find_completed(ctx: Context, upload_id: str) -> FileResult:
    # The file has the upload's id.
    file = FILES.find(ctx.workspace_id, record_id=upload_id)
    if file is None:
        raise upload_not_found()
    ctx.unit.undo()  # discard what this call stored: a concurrent call was first
    return FileResult(file=FileOut.from_record(file))


def upload_not_found() -> NotFoundError:
    """Return the error of an upload that does not exist (any more)."""
    msg = (
        "The workspace has no upload with this id. Announce the file again with POST "
        "/api/files/uploads/create."
    )
    return NotFoundError(msg, key="upload")


@job_handler(UPLOAD_LAPSED)
def expire_upload(job: Job) -> None:
    """Free the bytes of an upload that was not completed, and remove any sent object."""

    def stage(unit: UnitOfWork) -> None:
        row = files.find_upload(unit.tenant, upload_id=job.payload["uploadId"])
        if row is not None:
            unit.delete(row, if_there=True)
            files.release_bytes(unit, int(row.size))

    run_job_unit(job, stage)
    object_store().delete(job.payload["key"])

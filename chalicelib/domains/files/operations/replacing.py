"""Replace the content of a file, whose id, name and URLs stay (ADR 126)."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from chalicelib.application.context import Context
from chalicelib.core.errors import ValidationError
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire, exactly_one, optional
from chalicelib.domains.files.flows import publishing, rehosting, storage
from chalicelib.domains.files.flows.rehosting import StoredObject
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.files.operations import uploads
from chalicelib.domains.files.operations.deletion import read_records
from chalicelib.domains.files.operations.files import FileName, FileOut, FileResult
from chalicelib.domains.files.rules import file_types, images
from chalicelib.domains.files.rules.job_kinds import REPLACED
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, FileRow, UploadRow, is_image
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.unit import UnitOfWork, cascade_over
from chalicelib.gateways.object_store import object_store

RECORDS_PER_TRANSACTION = 10  # Each adds its own row, rows of its lists, and at most one job.


class FileReplacement(Wire):
    """New content of a file: bytes of up to 4 MB, or a large upload that was sent."""

    EXACTLY_ONE_OF = (("content", "upload_id"),)

    id: Id = Field(description="File id, from the file list.")
    content: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})] = optional(
        "The bytes in base64. As multipart/form-data: the file itself."
    )
    upload_id: Id = optional("Or the id of an announced upload whose bytes were sent.")
    name: FileName | None = optional(
        "Name of the new file, which gives the type of a text. The file keeps its own name."
    )

    @model_validator(mode="after")
    def _check_one_source(self) -> Self:
        exactly_one(self)
        return self


@operation(
    rest="POST /api/files/replace",
    scope=Scope.FILES_WRITE,
    file_field="content",
    if_too_large=(
        "Announce a file of up to 20 MB with POST /api/files/uploads/create, PUT its bytes to the"
        " returned URL, and send its uploadId here."
    ),
    destructive=True,
    example={"id": "FILE_ID", "content": "UnllIGJyZWFk"},
    errors=(QuotaExceededError,),
    role=Role.MANAGER,
)
def replace_file(ctx: Context, args: FileReplacement) -> FileResult:
    """Replace the content of a file. Its id, name and URL stay, so whatever shows it shows the new.

    An image is replaced by an image, another file by one of its type. The former content is not
    kept. Caches may show it for up to five minutes. Bots that know the file read it again. For
    content over 4 MB send uploadId instead of completing the upload.
    """
    file = FILES.require(ctx.workspace_id, record_id=args.id)
    upload = _announced(ctx, args.upload_id) if args.content is None else None
    stored = ctx.unit.run_side_effect_once(
        "stored", lambda: _store(ctx.workspace_id, file, args, upload)
    )
    ctx.unit.on_failure(lambda: rehosting.remove_objects([stored]))
    # The upload's bytes are charged already.
    charged = int(file.size) + (int(upload.size) if upload else 0)
    storage.charge(ctx.unit, ctx.principal.plan, stored.size - charged)
    file.content_key, file.content_thumbnail_key = stored.key, stored.thumbnail_key
    file.mime_type, file.bytes, file.size = stored.mime_type, stored.bytes, stored.size
    file.width, file.height = stored.width, stored.height
    ctx.unit.save(file)
    if upload:
        uploads.stage_end(ctx.unit, upload)
    payload = {"fileId": file.id, "keys": [file.key, file.thumbnail_key]}
    ctx.unit.create_job(jobs.row(REPLACED, ctx.workspace_id, payload))
    return FileResult(file=FileOut.from_record(file))


def _announced(ctx: Context, upload_id: str) -> UploadRow:
    upload = files.find_upload(ctx.workspace_id, upload_id=upload_id)
    if upload is None:
        raise uploads.upload_not_found()
    return upload


def _store(
    workspace_id: str, file: FileRow, args: FileReplacement, upload: UploadRow | None
) -> StoredObject:
    # The content gets keys of its own first, as a new file does, so that the URLs show the former
    # content until the row names the new one.
    field, name = "content", args.name or file.name
    if upload is None:
        body = uploads.decode(args.content)
    else:
        field, name = "uploadId", args.name or upload.name
        body = uploads.check_sent(upload, object_store().get(upload.key), field)
    try:
        kind = file_types.file_type(body, name)
        images.check_storable(kind)
        _check_kind(file, kind, field)
        return rehosting.stored_object(workspace_id, body, name, file.id)
    except images.ImageError as error:
        raise ValidationError.of(field, message=error.reason, key=error.key) from None


def _check_kind(file: FileRow, kind: str, field: str) -> None:
    # What shows an image cannot show anything else, and a link to a text must not begin to lead to
    # a program.
    if is_image(file):
        if kind not in images.READ:
            message = f"expected an image like the file that it replaces, received {kind}"
            raise ValidationError.of(field, message=message, key="other_kind")
    elif kind != file.mime_type:
        message = f"expected {file.mime_type} like the file that it replaces, received {kind}"
        raise ValidationError.of(field, message=message, key="other_kind")


@job_handler(REPLACED)
def show_replacement(job: Job) -> None:
    """Show a file's new content at its URLs, and adapt the records that show it."""
    file_id = job.payload["fileId"]
    file = publishing.publish(job.workspace_id, file_id, job.payload["keys"])
    if file is None:
        return
    names = file_uses.records_showing(job.workspace_id, file_id=file_id)

    def step(unit: UnitOfWork, batch: Sequence[str]) -> None:
        # Read again, because another replacement may have been first.
        latest = FILES.find(unit.tenant, record_id=file_id)
        for listing, record in read_records(unit.tenant, batch).values():
            shown_files = listing.files
            if latest is None or shown_files is None or shown_files.adapt is None:
                continue
            if file_id in shown_files.ids(record):
                shown_files.adapt(unit, record, latest)
                if record.changes():
                    unit.save(record)

    cascade_over(job, names, RECORDS_PER_TRANSACTION, step)

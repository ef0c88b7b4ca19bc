"""Delete files permanently, which records that show a file block or accept (ADR 18)."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConflictError
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.reading import fetch
from chalicelib.engine.tables import Record
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways.object_store import delete_unused

PURGE = JobKind("file-purge")
MAX_LISTED_USES = 20  # records in the error; the total counts all
# Records that lose a file. Each adds its own row and the row of its use.
RECORDS_PER_TRANSACTION = 20


class FileDelete(Wire):
    """Arguments of a file's deletion."""

    id: Id = Field(description="File id, from the file list.")
    force: bool = Field(default=False, description="Delete it even if records show it.")
    dry_run: bool = Field(default=False, description="Only report what would be deleted.")


class FileUse(Wire):
    """A record that shows a file."""

    type: str = Field(description="Kind of record, such as product or page.")
    id: Id = Field(description="Id of the record.")
    name: str = Field(description="Name or title of the record.")


class FileDeleted(DeletedResult):
    """Result of a deletion, with the records that showed the file."""

    used_by: list[FileUse] = Field(description=f"The first {MAX_LISTED_USES} records that show it.")
    used_by_total: int = Field(description="Number of records that show it.")


class FileInUseError(ConflictError):
    """Records show the file: ``usedByTotal`` in all. ``usedBy`` lists the first of them."""

    code = "file_in_use"

    def __init__(self, message: str, *, used_by: Sequence[FileUse], used_by_total: int) -> None:
        uses = [use.model_dump(by_alias=True) for use in used_by]
        super().__init__(message, details={"usedBy": uses, "usedByTotal": used_by_total})


@operation(
    rest="POST /api/files/delete",
    scope=Scope.FILES_WRITE,
    example={"id": "FILE_ID"},
    errors=(FileInUseError,),
    role=Role.MANAGER,
)
def delete_file(ctx: Context, args: FileDelete) -> FileDeleted:
    """Delete a file permanently. A file that records show is not deleted (409 file_in_use).

    With force it is deleted anyway: products lose the image, and pages keep their HTML unchanged.
    Try dryRun first to see which records show it.
    """
    file = FILES.require(ctx.workspace_id, record_id=args.id)
    records = file_uses.records_showing(ctx.workspace_id, file_id=file.id)
    used_by = list_uses(ctx.workspace_id, records[:MAX_LISTED_USES])
    if records and not args.force:
        msg = (
            f"{len(records)} record(s) use this file (usedBy). Change these records, or send "
            "force: true."
        )
        if not args.dry_run:
            raise FileInUseError(msg, used_by=used_by, used_by_total=len(records))
        ctx.warn(
            f"Without force, this call would be refused: {msg}",
            code=WarningCode.FORCE_REQUIRED,
            error=FileInUseError.code,
            count=len(records),
        )
    ctx.unit.delete(file)
    files.release_bytes(ctx.unit, int(file.size))
    _stage_removal(ctx.unit, file.id, records[:RECORDS_PER_TRANSACTION])
    payload = {"fileId": file.id, "keys": file.object_keys}
    ctx.unit.create_job(jobs.row(PURGE, ctx.workspace_id, payload))
    return FileDeleted(
        id=file.id, deleted=not args.dry_run, used_by=used_by, used_by_total=len(records)
    )


def read_records(workspace_id: str, names: Iterable[str]) -> dict[str, tuple[Listing[Any], Record]]:
    """Return the records with names such as ``PRODUCT#<id>``, by name, as far as they exist."""
    keys = {}
    for name in names:
        noun, _, record_id = name.partition("#")
        listing = listing_of(noun)
        keys[name] = (listing, listing.key(workspace_id, record_id=record_id))
    rows = {(row.pk, row.sk): row for row in fetch(key for _, key in keys.values())}
    return {
        name: (listing, row)
        for name, (listing, key) in keys.items()
        if isinstance(row := rows.get((key.pk, key.sk)), Record)
    }


def list_uses(workspace_id: str, names: Iterable[str]) -> list[FileUse]:
    """Return the records that show a file, by names such as ``PRODUCT#<id>``."""
    return [
        FileUse(type=listing.noun.lower(), id=record.id, name=listing.text(record)[0])
        for listing, record in read_records(workspace_id, names).values()
    ]


def _stage_removal(unit: UnitOfWork, file_id: str, names: Sequence[str]) -> None:
    # Nouns that cannot drop a file are left unchanged.
    records_by_name = read_records(unit.tenant, names)
    for name in names:
        listing, record = records_by_name.get(name, (None, None))
        shown_files = listing.files if listing else None
        if record and shown_files and shown_files.remove and file_id in shown_files.ids(record):
            shown_files.remove(record, file_id)
            unit.save(record)
        else:
            unit.delete(file_uses.use_row(unit.tenant, file_id=file_id, record=name))


@job_handler(PURGE)
def purge_file(job: Job) -> None:
    """Remove a deleted file from the records that still show it, and remove its objects."""
    file_id = job.payload["fileId"]
    while records := file_uses.records_showing(job.workspace_id, file_id=file_id):
        stage = partial(_stage_removal, file_id=file_id, names=records[:RECORDS_PER_TRANSACTION])
        run_job_unit(job, stage)
    delete_unused(job.payload["keys"])

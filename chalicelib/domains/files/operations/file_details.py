"""Read one file with the records that show it."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.files.operations.deletion import MAX_LISTED_USES, FileUse, list_uses
from chalicelib.domains.files.operations.files import FileOut, FileResult
from chalicelib.domains.files.store.files import FILES
from chalicelib.engine import file_uses


class FileRef(Wire):
    """Reference to a file."""

    id: Id = Field(description="File id, from the file list.")


class FileDetails(FileResult):
    """One file, with the records that show it."""

    used_by: list[FileUse] = Field(description=f"The first {MAX_LISTED_USES} records that show it.")
    used_by_total: int = Field(description="Number of records that show it.")


@operation(
    rest="GET /api/files/{id}",
    scope=Scope.FILES_READ,
    example={"id": "FILE_ID"},
    role=Role.MANAGER,
)
def get_file(ctx: Context, args: FileRef) -> FileDetails:
    """Return one file, with the records that show it, such as products and pages."""
    file = FILES.require(ctx.workspace_id, record_id=args.id)
    records = file_uses.records_showing(ctx.workspace_id, file_id=file.id)
    return FileDetails(
        file=FileOut.from_record(file),
        used_by=list_uses(ctx.workspace_id, records[:MAX_LISTED_USES]),
        used_by_total=len(records),
    )

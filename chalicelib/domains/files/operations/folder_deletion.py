"""Delete folders, whose content is never deleted but moves elsewhere."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Annotated

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import ConflictError, CycleError, ValidationError
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.text import fold
from chalicelib.core.wire.schema import NULL_IS_A_VALUE, DeletedResult, Id, optional
from chalicelib.domains.files.operations.folders import (
    TOO_DEEP,
    FolderForest,
    FolderRef,
    NameTakenError,
    name_taken_error,
)
from chalicelib.domains.files.store.files import FILES, FOLDERS, FileRow, FolderRow
from chalicelib.engine import jobs
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.query import Query
from chalicelib.engine.unit import UnitOfWork, cascade, run_job_unit
from chalicelib.lib import trees

CASCADE = JobKind("folder-cascade")
MAX_MOVES_IN_CALL = 2_000  # files; a scheduled job moves the others
# A folder adds its record and the look-up rows of both its names.
FOLDERS_PER_TRANSACTION = 25
FILES_PER_TRANSACTION = 80
MOVES_IN_DELETION = 10  # files, and folders, in the deletion's own transaction


class FolderDelete(FolderRef):
    """Arguments of a folder's deletion, with the new place of its content."""

    move_to: Annotated[Id | None, NULL_IS_A_VALUE] = optional(
        "Folder that its files and folders move to; null is the root. Without it, only an empty "
        "folder is deleted."
    )
    dry_run: bool = Field(default=False, description="Only report what would happen.")


class FolderDeleted(DeletedResult):
    """Result of a deletion, with the number of moved files and folders."""

    moved_files: int = Field(description="Number of files moved out of the folder.")
    moved_folders: int = Field(description="Number of folders moved out of it, with their content.")


class FolderNotEmptyError(ConflictError):
    """The folder is not empty. It contains ``files`` files and ``folders`` folders."""

    code = "folder_not_empty"

    def __init__(self, message: str, *, files: int, folders: int) -> None:
        super().__init__(message, details={"files": files, "folders": folders})


@operation(
    rest="POST /api/file-folders/delete",
    scope=Scope.FILES_WRITE,
    example={"id": "FOLDER_ID", "moveTo": None},
    errors=(CycleError, FolderNotEmptyError, NameTakenError),
)
def delete_folder(ctx: Context, args: FolderDelete) -> FolderDeleted:
    """Delete a folder and move its content to moveTo. Without moveTo the folder must be empty.

    Files are never deleted and keep their URLs. Try dryRun first to see what would move.
    """
    with deadline.side_by_side() as start:
        counting = start(
            partial(
                counters.read_shards,
                ctx.workspace_id,
                noun=FILES.noun,
                facet="place",
                value=args.id,
            )
        )
        reading = start(
            partial(_files_in, ctx.workspace_id, folder_id=args.id, size=MOVES_IN_DELETION)
        )
        forest = FolderForest(ctx.workspace_id)
        shards, moved_files = counting.result(), reading.result()
    folder, subfolders, files = (
        forest.folder(args.id),
        forest.children(args.id),
        sum(shards.values()),
    )
    if "move_to" in args.model_fields_set:
        _check_target(forest, folder, subfolders, args.move_to)
    elif files or subfolders:
        msg = (
            f"The folder has {files} file(s) and {len(subfolders)} subfolder(s). To move them, "
            "send moveTo: a folder id, or null for the root."
        )
        raise FolderNotEmptyError(msg, files=files, folders=len(subfolders))
    ctx.unit.delete(folder)
    ctx.unit.save(forest.lock)
    if files == len(moved_files) and len(subfolders) <= MOVES_IN_DELETION:
        _stage_folders(ctx.unit, forest, subfolders, args.move_to)
        _stage_files(ctx.unit, moved_files, args.move_to)
        ctx.unit.delete_counter(FILES.noun, facet="place", value=folder.id, as_read=shards)
    else:
        job = jobs.row(CASCADE, ctx.workspace_id, {"folderId": folder.id, "moveTo": args.move_to})
        ctx.unit.create_job(job, at_once=files <= MAX_MOVES_IN_CALL)
    return FolderDeleted(
        id=folder.id, deleted=not args.dry_run, moved_files=files, moved_folders=len(subfolders)
    )


def _check_target(
    forest: FolderForest, folder: FolderRow, subfolders: list[FolderRow], target: str | None
) -> None:
    if target is not None:
        forest.folder(target)
    if trees.is_cycle(forest.parents, folder.id, target):
        raise CycleError.of(
            "moveTo", message="expected a folder outside the deleted one", key="cycle"
        )
    taken_names = {fold(sibling.name) for sibling in forest.children(target)}
    for subfolder in subfolders:
        if fold(subfolder.name) in taken_names:
            raise name_taken_error(subfolder.name)
        if forest.problem(subfolder.id, parent_id=target) == "depth":
            raise ValidationError.of("moveTo", message=TOO_DEEP, key="too_deep")


@job_handler(CASCADE)
def empty_folder(job: Job) -> None:
    """Move the content of a deleted folder, if it was too much for the deletion's transaction."""
    # Nothing new can be added. The job runs right after the deletion, or else in the scheduled
    # runner.
    deleted_id, target = job.payload["folderId"], job.payload["moveTo"]
    for move in (_move_folders, _move_files):
        cascade(job, partial(move, deleted_id=deleted_id, target=target))
    run_job_unit(job, lambda unit: unit.delete_counter(FILES.noun, facet="place", value=deleted_id))


def _move_folders(unit: UnitOfWork, deleted_id: str, target: str | None) -> bool:
    forest = FolderForest(unit.tenant)
    subfolders = forest.children(deleted_id)[:FOLDERS_PER_TRANSACTION]
    _stage_folders(unit, forest, subfolders, target)
    if subfolders:
        unit.save(forest.lock)
    return bool(subfolders)


def _stage_folders(
    unit: UnitOfWork, forest: FolderForest, subfolders: list[FolderRow], target: str | None
) -> None:
    # If a folder no longer fits in the target, because the tree has changed, it moves to the root.
    # If its name is taken there, it is renamed.
    names: dict[str | None, set[str]] = {}
    for folder in subfolders:
        parent = None if forest.problem(folder.id, parent_id=target) else target
        taken_names = names.setdefault(
            parent, {fold(sibling.name) for sibling in forest.children(parent)}
        )
        folder.parent_id, folder.name = parent, _free_name(folder.name, taken_names)
        taken_names.add(fold(folder.name))
        unit.save(folder)


def _free_name(name: str, taken_names: set[str]) -> str:
    options = (name if number == 1 else f"{name[:90]} ({number})" for number in count(1))
    return next(option for option in options if fold(option) not in taken_names)


def _move_files(unit: UnitOfWork, deleted_id: str, target: str | None) -> bool:
    # If the target is gone, the files move to the root.
    moved_files = _files_in(unit.tenant, folder_id=deleted_id, size=FILES_PER_TRANSACTION)
    exists = target is not None and FOLDERS.find(unit.tenant, record_id=target) is not None
    _stage_files(unit, moved_files, target if exists else None)
    return bool(moved_files)


def _files_in(workspace_id: str, *, folder_id: str, size: int) -> list[FileRow]:
    query = Query(1, size, "createdAt", filters={"place": folder_id})
    return FILES.page(workspace_id, query, counts=Counter).records


def _stage_files(unit: UnitOfWork, moved_files: Sequence[FileRow], target: str | None) -> None:
    if moved_files and target is not None:
        unit.require(FOLDERS.row(FOLDERS.partition(unit.tenant), target))
    for file in moved_files:
        file.folder_id = target
        unit.save(file)

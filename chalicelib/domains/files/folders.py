"""Folders for files: their tree and their creation (spec, File listing, Files)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.schema import Id, Title, Wire, optional
from chalicelib.core.scopes import Scope
from chalicelib.flows.invoke import Context
from chalicelib.store import counters, files, locks
from chalicelib.store.files import FILES, FOLDERS, FolderRow

MAX_FOLDERS = 1_000
MAX_DEPTH = 10


def _plain(name: str) -> str:
    if "/" in name or "\\" in name:
        raise PydanticCustomError("slash", "expected a name without / and \\")
    return name


FolderName = Annotated[Title, StringConstraints(max_length=100), AfterValidator(_plain)]


class FolderOut(Wire):
    """A folder."""

    id: Id = Field(description="Folder id.")
    name: str = Field(description="Name.")
    parent_id: Id | None = Field(description="The folder it is in, or null.")
    files_count: int = Field(description="Files in it, not counting its folders'.")

    @classmethod
    def of(cls, folder: FolderRow, counts: Mapping[str, int]) -> Self:
        """Return the wire form of a folder; ``counts`` are the counters of the files."""
        count = counts.get(counters.name("place", folder.id), 0)
        return cls.from_row(folder.values, files_count=count)


class FolderTree(FolderOut):
    """A folder with those in it."""

    children: Annotated[
        list["FolderTree"],
        WithJsonSchema({"type": "array", "items": {"type": "object"}}),
    ] = Field(description="The folders in it, of the same shape.")


class FolderListQuery(Wire):
    """The folder tree takes no input."""


class FolderList(Wire):
    """The folder tree."""

    folders: list[FolderTree] = Field(description="The folders at the root, by name.")


class FolderCreate(Wire):
    """A new folder."""

    name: FolderName = Field(description="Name, unique beside its siblings.")
    parent_id: Id | None = optional("The folder to put it in; the root when omitted.")


class FolderResult(Wire):
    """One folder."""

    folder: FolderOut = Field(description="The folder.")


class NameTakenError(ConflictError):
    """A folder of this name lies beside it."""

    code = "name_taken"


def unknown_folder() -> NotFoundError:
    """Return the error of a folder that is not there."""
    return NotFoundError.of("folder", "List the folders (svc_list_folders) for valid ids.")


def require_folder(ctx: Context, folder_id: str | None) -> None:
    """Demand that a folder exists now and when the unit commits."""
    if folder_id is not None:
        folder = FOLDERS.find(ctx.workspace_id, folder_id)
        if folder is None:
            raise unknown_folder()
        ctx.unit.require(folder)


@operation(
    tool="svc_list_folders",
    rest="GET /api/file-folders",
    scope=Scope.FILES_READ,
    title="List folders",
)
def list_folders(ctx: Context, args: FolderListQuery) -> FolderList:  # noqa: ARG001  it takes none
    """Return the workspace's whole folder tree with the number of files in each folder."""
    counts = counters.read_facet(ctx.workspace_id, FILES.noun, "place")
    inside: defaultdict[str | None, list[FolderRow]] = defaultdict(list)
    for folder in files.folders(ctx.workspace_id):
        inside[folder.parent_id].append(folder)

    def tree(parent_id: str | None) -> list[FolderTree]:
        return [
            FolderTree(**FolderOut.of(folder, counts).model_dump(), children=tree(folder.id))
            for folder in inside[parent_id]
        ]

    return FolderList(folders=tree(None))


@operation(
    tool=None,
    rest="POST /api/file-folders",
    scope=Scope.FILES_WRITE,
    title="Create a folder",
)
def create_folder(ctx: Context, args: FolderCreate) -> FolderResult:
    """Create a folder for files, at the root or in another folder."""
    lock = locks.lock_row(ctx.workspace_id, "folders")  # of two at once, one sees the other's
    folders = {folder.id: folder for folder in files.folders(ctx.workspace_id)}
    if len(folders) >= MAX_FOLDERS:
        msg = f"A workspace has at most {MAX_FOLDERS:,} folders. Use those there are."
        raise ConflictError(msg)
    depth, above = 1, args.parent_id
    while above is not None:
        if above not in folders:
            raise unknown_folder()
        depth, above = depth + 1, folders[above].parent_id
    if depth > MAX_DEPTH:
        message = f"folders lie at most {MAX_DEPTH} deep; choose one nearer to the root"
        raise ValidationError.of("parentId", message)
    if args.parent_id is not None:
        ctx.unit.require(folders[args.parent_id])
    folder = FOLDERS.new(ctx.workspace_id, name=args.name, parent_id=args.parent_id)
    ctx.unit.save(lock)
    taken = NameTakenError(f'A folder "{args.name}" is there. Use it, or choose a name.')
    ctx.unit.create(folder, taken={"name": taken})
    return FolderResult(folder=FolderOut.of(folder, {}))

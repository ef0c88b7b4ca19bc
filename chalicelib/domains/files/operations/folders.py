"""List, create, rename and move folders."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import ConflictError, CycleError, ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import ListResult, WholeListQuery
from chalicelib.core.wire.schema import Id, Patch, Timestamp, Title, Wire, optional
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, FOLDERS, FolderRow
from chalicelib.engine import locks
from chalicelib.engine.listing import counters
from chalicelib.lib import trees

MAX_FOLDERS = 1_000
MAX_DEPTH = 10
TOO_DEEP = f"expected at most {MAX_DEPTH} levels of folders; choose a folder on a higher level"


def _check_folder_name(name: str) -> str:
    if "/" in name or "\\" in name:
        raise PydanticCustomError("slash", "expected a name without / and \\")
    return name


FolderName = Annotated[Title, StringConstraints(max_length=100), AfterValidator(_check_folder_name)]


class FolderRef(Wire):
    """Reference to a folder."""

    id: Id = Field(description="Folder id.")


class FolderOut(FolderRef):
    """A folder."""

    name: str = Field(description="Name of the folder.")
    parent_id: Id | None = Field(description="Parent folder, or null at the root.")
    files_count: int = Field(description="Files directly in the folder.")
    updated_at: Timestamp = Field(description="When it was last renamed or moved.")

    @classmethod
    def from_record(cls, folder: FolderRow, counts: Mapping[str, int]) -> Self:
        count = counts.get(counters.name("place", value=folder.id), 0)
        return cls.from_row(folder.values, files_count=count)


class FolderTree(FolderOut):
    """A folder with its subfolders."""

    children: list["FolderTree"] = Field(description="Subfolders, in the same form.")


class FolderListQuery(WholeListQuery):
    """Page of the folder tree, or of a list of folders by the time of changes."""


class FolderList(ListResult):
    """The folder tree."""

    folders: list[FolderTree] = Field(
        description="The folders at the root, by name. With updatedSince or sort, all folders that "
        "match, each without children."
    )


class FolderCreate(Wire):
    """A new folder."""

    name: FolderName = Field(description="Name, unique within the parent folder.")
    parent_id: Id | None = optional("Parent folder; the root if omitted.")


class FolderResult(Wire):
    """One folder."""

    folder: FolderOut = Field(description="The folder.")


class FolderPatch(Patch, FolderCreate, FolderRef):
    """Changes to a folder."""

    parent_id: Id | None = optional("New parent folder; null is the root.")


class NameTakenError(ConflictError):
    """The parent folder already has a folder of this name."""

    code = "name_taken"


def name_taken_error(name: str) -> NameTakenError:
    """Return the error for a name that another folder with the same parent has."""
    return NameTakenError(
        f'The folder already contains a folder named "{name}". Use that folder, or choose '
        "another name."
    )


class FolderForest:
    """All folders of a workspace, and the lock row that serialises changes of the tree's shape.

    Every change of the tree saves the lock row. Otherwise two concurrent changes, each valid by
    itself, could together make a cycle or a level that is too deep.
    """

    def __init__(self, workspace_id: str) -> None:
        # The lock row is read before the folders.
        self.lock = locks.lock_row(workspace_id, what="folders")
        self.rows = {folder.id: folder for folder in files.folders(workspace_id)}
        self.parents = {folder.id: folder.parent_id for folder in self.rows.values()}

    def folder(self, folder_id: str) -> FolderRow:
        """Return a folder, or raise NotFoundError."""
        if folder_id not in self.rows:
            raise FOLDERS.not_found()
        return self.rows[folder_id]

    def children(self, parent_id: str | None) -> list[FolderRow]:
        return [folder for folder in self.rows.values() if folder.parent_id == parent_id]

    def problem(self, node: str | None, *, parent_id: str | None) -> str | None:
        """Return why a folder, or a new one (None), cannot be in a parent (``lib.trees``)."""
        return trees.problem(self.parents, node, parent=parent_id, max_depth=MAX_DEPTH)

    def check_parent(self, node: str | None, *, parent_id: str | None) -> None:
        """Raise NotFoundError, CycleError or ValidationError (too deep) for a wrong parent."""
        match self.problem(node, parent_id=parent_id):
            case "missing":
                raise FOLDERS.not_found()
            case "cycle":
                raise CycleError.of(
                    "parentId", message="a folder cannot be moved into itself", key="cycle"
                )
            case "depth":
                raise ValidationError.of("parentId", message=TOO_DEEP, key="too_deep")


def require_folder(ctx: Context, folder_id: str | None) -> None:
    """Require that a folder exists now and when the unit commits."""
    if folder_id is not None:
        ctx.unit.require(FOLDERS.require(ctx.workspace_id, record_id=folder_id))


@operation(
    tool=True,
    rest="GET /api/file-folders",
    scope=Scope.FILES_READ,
    example={},
)
def list_folders(ctx: Context, args: FolderListQuery) -> FolderList:
    """Return the whole folder tree with the number of files in each."""
    with deadline.side_by_side() as start:
        counting = start(
            partial(counters.read_facet, ctx.workspace_id, noun=FILES.noun, facet="place")
        )
        folders = files.folders(ctx.workspace_id)
        counts = counting.result()
    inside: defaultdict[str | None, list[FolderRow]] = defaultdict(list)
    for folder in folders:
        inside[folder.parent_id].append(folder)

    def tree(folder: FolderRow) -> FolderTree:
        values = FolderOut.from_record(folder, counts).model_dump()
        return FolderTree(**values, children=list(map(tree, inside[folder.id])))

    if args.updated_since is not None or args.sorts_by_update:
        inside.clear()  # A changed folder may be in one that has not changed.
        page, total = FOLDERS.select(folders, args)
    else:
        page, total = FOLDERS.select(inside[None], args)
    return FolderList(folders=list(map(tree, page)), **args.counted(total))


@operation(
    rest="POST /api/file-folders",
    scope=Scope.FILES_WRITE,
    example={"name": "Invoices", "parentId": "FOLDER_ID"},
    errors=(ConflictError, NameTakenError),
)
def create_folder(ctx: Context, args: FolderCreate) -> FolderResult:
    """Create a folder for files, at the root or in another folder."""
    tree = FolderForest(ctx.workspace_id)
    if len(tree.rows) >= MAX_FOLDERS:
        msg = (
            f"The workspace has {MAX_FOLDERS:,} folders, which is the maximum. Use an existing "
            "folder."
        )
        raise ConflictError(msg, key="too_many_folders", details={"maximum": MAX_FOLDERS})
    tree.check_parent(None, parent_id=args.parent_id)
    if args.parent_id is not None:
        ctx.unit.require(tree.rows[args.parent_id])
    folder = FOLDERS.new(ctx.workspace_id, name=args.name, parent_id=args.parent_id)
    ctx.unit.save(tree.lock)
    ctx.unit.create(folder, claim_errors={"name": name_taken_error(args.name)})
    return FolderResult(folder=FolderOut.from_record(folder, {}))


@operation(
    rest="POST /api/file-folders/update",
    scope=Scope.FILES_WRITE,
    idempotent=True,
    example={"id": "FOLDER_ID", "name": "Papers of 2027"},
    errors=(CycleError, NameTakenError),
)
def update_folder(ctx: Context, args: FolderPatch) -> FolderResult:
    """Rename a folder, or move it with its content."""
    tree = FolderForest(ctx.workspace_id)
    folder = tree.folder(args.id)
    changes = args.provided("id")
    if changes.get("parent_id", folder.parent_id) != folder.parent_id:
        tree.check_parent(folder.id, parent_id=changes["parent_id"])
        ctx.unit.save(tree.lock)
    for name, value in changes.items():
        setattr(folder, name, value)
    ctx.unit.save(folder, claim_errors={"name": name_taken_error(folder.name)})
    counts = counters.read_facet(ctx.workspace_id, noun=FILES.noun, facet="place")
    return FolderResult(folder=FolderOut.from_record(folder, counts))

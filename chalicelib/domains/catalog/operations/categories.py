"""Manage the tree of product categories and the tree of service categories."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

from pydantic import Field

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import (
    ConflictError,
    CycleError,
    ExternalIdTakenError,
    NotFoundError,
    SlugTakenError,
    ValidationError,
)
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    BY_EXTERNAL_ID,
    EXTERNAL_ID,
    EXTERNAL_ID_OUT,
    METADATA,
    METADATA_OUT,
    Metadata,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.lists import ListResult, WholeListQuery
from chalicelib.core.wire.schema import (
    DeletedResult,
    Id,
    Patch,
    Slug,
    SortOrder,
    Timestamp,
    Title,
    Wire,
    optional,
)
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.categories import CATEGORIES, KINDS, CategoryRow
from chalicelib.engine import jobs, locks
from chalicelib.engine.listing import counters, ordering
from chalicelib.engine.listing.index_entries import IndexEntry
from chalicelib.engine.unit import UnitOfWork, cascade, cascade_over, run_job_unit
from chalicelib.lib import slugs, trees

MAX_DEPTH = 5
# Maximum number of categories of one kind in a workspace. The list has no pages and returns all
# categories.
MAX_CATEGORIES = 1000
# Items or subcategories that one transaction moves when a category is deleted.
MOVES_PER_TRANSACTION = 20
# Maximum number of records that the call itself moves. A scheduled job moves the records of larger
# categories.
MAX_MOVES_IN_CALL = 1000
CASCADE = JobKind("category-cascade")

Kind = Literal["product", "service"]


class CategoryRef(Wire):
    """Reference to a category."""

    id: Id = Field(description="Category id.")


class CategoryOut(CategoryRef):
    """A category."""

    name: str = Field(description="Name of the category.")
    slug: str = Field(description="Short name, unique within its kind.")
    parent_id: Id | None = Field(description="Id of the parent category, or null at the top.")
    kind: str = Field(description="product or service.")
    sort_order: int = Field(description="Position in the list, ascending.")
    items_count: int = Field(description="Products or services directly in the category.")
    external_id: str | None = EXTERNAL_ID_OUT
    metadata: Metadata = METADATA_OUT
    updated_at: Timestamp = Field(description="When the category itself was last changed.")

    @classmethod
    def from_record(cls, category: CategoryRow, counts: Mapping[str, int]) -> Self:
        return cls.from_row(category.values, items_count=counts.get(category.id, 0))


class CategoryResult(Wire):
    """One category."""

    category: CategoryOut = Field(description="The category.")


class CategoryListQuery(WholeListQuery):
    """Filters for listing categories."""

    kind: Kind | None = optional("Only these; both if omitted.")
    parent_id: Id | None = optional("Only its direct children.")
    external_id: NewExternalId = BY_EXTERNAL_ID


class CategoryList(ListResult):
    """A flat list of categories."""

    categories: list[CategoryOut] = Field(
        description="Categories by sort order; parentId links them into a tree."
    )


class CategoryCreate(Wire):
    """A new category."""

    name: Title = Field(description="Name.")
    parent_id: Id | None = optional("Parent category; default: none.")
    slug: Slug | None = optional("Made from the name if omitted.")
    kind: Kind = Field(default="product", description="Kind of its items.")
    sort_order: SortOrder | None = optional("Position; default: last.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class CategoryPatch(Patch, CategoryRef):
    """Changes to a category."""

    name: Title = optional("Name.")
    slug: Slug = optional("Unique slug.")
    parent_id: Id | None = optional("Parent category; empty: none.")
    sort_order: SortOrder = optional("Position, ascending.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class CategoryDelete(CategoryRef):
    """Arguments of a category's deletion, with the new category of its items."""

    move_to: Id | None = optional("Category for its items; default: none.")
    dry_run: bool = Field(default=False, description="Only report.")


class CategoryDeleted(DeletedResult):
    """Result of a deletion, with the number of moved items."""

    moved_items: int = Field(description="Products or services moved out of the category.")


@operation(
    tool=True,
    rest="GET /api/categories/list",
    scope=Scope.PRODUCTS_READ,
    audience=(Audience.KEY, Audience.SESSION, Audience.OPERATOR),
    role=Role.MEMBER,
    example={"kind": "product"},
)
def list_categories(ctx: Context, args: CategoryListQuery) -> CategoryList:
    """List product and service categories, flat. Other calls take an id as categoryId."""
    kinds = [args.kind] if args.kind else ["product", "service"]
    with deadline.side_by_side() as start:
        counting = [
            start(partial(categories.count_items, ctx.workspace_id, kind=kind)) for kind in kinds
        ]
        matches = [
            category
            for category in categories.read_all(ctx.workspace_id)
            if category.kind in kinds
            and args.parent_id in {None, category.parent_id}
            and args.external_id in {None, category.external_id}
        ]
        counts = {
            name: count for count_task in counting for name, count in count_task.result().items()
        }
    page, total = CATEGORIES.select(matches, args)
    return CategoryList(
        categories=[CategoryOut.from_record(category, counts) for category in page],
        **args.counted(total),
    )


@operation(
    rest="GET /api/categories/{id}",
    scope=Scope.PRODUCTS_READ,
    example={"id": "CATEGORY_ID"},
)
def get_category(ctx: Context, args: CategoryRef) -> CategoryResult:
    """Return one category, with the number of its items."""
    category = CATEGORIES.require(ctx.workspace_id, record_id=args.id)
    counts = categories.count_items(ctx.workspace_id, kind=category.kind)
    return CategoryResult(category=CategoryOut.from_record(category, counts))


@operation(
    tool=True,
    rest="POST /api/categories/create",
    scope=Scope.PRODUCTS_WRITE,
    audience=(Audience.KEY, Audience.SESSION, Audience.OPERATOR),
    example={"name": "Rolls", "parentId": "CATEGORY_ID"},
    errors=(ConflictError, ExternalIdTakenError, SlugTakenError),
    role=Role.MANAGER,
)
def create_category(ctx: Context, args: CategoryCreate) -> CategoryResult:
    """Create a category of products or services, up to five levels deep."""
    tree = _Tree(ctx.workspace_id, kind=args.kind)
    if len(tree.rows) >= MAX_CATEGORIES:
        msg = (
            f"The workspace has {MAX_CATEGORIES} {args.kind} categories, which is the maximum. "
            "Delete a category first."
        )
        raise ConflictError(msg, key="too_many_categories", details={"maximum": MAX_CATEGORIES})
    _check_parent(tree, None, parent_id=args.parent_id)
    last = max((int(row.sort_order) for row in tree.rows.values()), default=0)
    number = last + ordering.STEP if args.sort_order is None else args.sort_order
    external_data: dict[str, Any] = {"external_id": args.external_id, "metadata": args.metadata}
    merge_metadata(external_data)
    category = CATEGORIES.new(
        ctx.workspace_id,
        name=args.name,
        slug=args.slug or _free_slug(ctx, tree, args.name),
        kind=args.kind,
        parent_id=args.parent_id,
        sort_order=number,
        **external_data,
    )
    ctx.unit.create(
        category, claim_errors={"slug": _slug_taken_error(args.slug)} if args.slug else {}
    )
    ctx.unit.save(tree.lock)
    return CategoryResult(category=CategoryOut.from_record(category, {}))


@operation(
    tool=True,
    rest="POST /api/categories/update",
    scope=Scope.PRODUCTS_WRITE,
    idempotent=True,
    example={"id": "CATEGORY_ID", "name": "Loaves"},
    errors=(CycleError, ExternalIdTakenError, SlugTakenError),
)
def update_category(ctx: Context, args: CategoryPatch) -> CategoryResult:
    """Rename a category, or move it with its subcategories."""
    category = CATEGORIES.require(ctx.workspace_id, record_id=args.id)
    changes = args.changes
    if changes.get("parent_id", category.parent_id) != category.parent_id:
        tree = _Tree(ctx.workspace_id, kind=category.kind)
        _check_parent(tree, category.id, parent_id=changes["parent_id"])
        ctx.unit.save(tree.lock)
    merge_metadata(changes, category.metadata)
    for name, value in changes.items():
        setattr(category, name, value)
    ctx.unit.save(category, claim_errors={"slug": _slug_taken_error(category.slug)})
    counts = categories.count_items(ctx.workspace_id, kind=category.kind)
    return CategoryResult(category=CategoryOut.from_record(category, counts))


@operation(
    tool=True,
    rest="POST /api/categories/delete",
    scope=Scope.PRODUCTS_WRITE,
    example={"id": "CATEGORY_ID"},
)
def delete_category(ctx: Context, args: CategoryDelete) -> CategoryDeleted:
    """Delete a category. Its items are kept; its subcategories move one level up."""
    category = CATEGORIES.require(ctx.workspace_id, record_id=args.id)
    with deadline.side_by_side() as start:
        reading = start(partial(_items_in, ctx.workspace_id, category))
        tree = _Tree(ctx.workspace_id, kind=category.kind)
        shards, items = reading.result()
    _check_target(tree, category, args.move_to)
    count = sum(shards.values())
    payload = {
        "categoryId": category.id,
        "kind": category.kind,
        "parentId": category.parent_id,
        "moveTo": args.move_to,
    }
    ctx.unit.delete(category)
    ctx.unit.save(tree.lock)
    _promote_children(ctx.unit, tree, category.id, category.parent_id)
    _move_items(ctx.unit, items, category.id, args.move_to)
    if len(items) == count and len(tree.children(category.id)) <= MOVES_PER_TRANSACTION:
        if category.kind in KINDS:
            ctx.unit.delete_counter(
                KINDS[category.kind], facet="category_id", value=category.id, as_read=shards
            )
    else:
        job = jobs.row(CASCADE, ctx.workspace_id, payload)
        ctx.unit.create_job(job, at_once=count <= MAX_MOVES_IN_CALL)
    return CategoryDeleted(id=category.id, deleted=not args.dry_run, moved_items=count)


def _items_in(workspace_id: str, category: CategoryRow) -> tuple[counters.Shards, list[Any]]:
    if category.kind not in KINDS:
        return {}, []
    listing = categories.listing_of_items(category.kind)
    shards = counters.read_shards(
        workspace_id, noun=listing.noun, facet="category_id", value=category.id
    )
    if not 0 < sum(shards.values()) <= MOVES_PER_TRANSACTION:
        return shards, []
    entries = listing.entries(workspace_id, category_id=category.id)[:MOVES_PER_TRANSACTION]
    rows = listing.fetch(workspace_id, [index_entry.id for index_entry in entries])
    return shards, [row for row in rows if row.category_id == category.id]


@job_handler(CASCADE)
def empty_category(job: Job) -> None:
    """Move what is left in a deleted category: it was too much for the deletion's transaction."""
    # The job runs right after the deletion, or else in the scheduled runner. New items can no
    # longer be added.
    workspace_id, deleted = job.workspace_id, job.payload
    listing = categories.listing_of_items(deleted["kind"]) if deleted["kind"] in KINDS else None

    def promote_some(unit: UnitOfWork) -> bool:
        tree = _Tree(workspace_id, kind=deleted["kind"])
        is_promoted = _promote_children(unit, tree, deleted["categoryId"], deleted["parentId"])
        if is_promoted:
            unit.save(tree.lock)
        return is_promoted

    cascade(job, promote_some)
    if listing:
        remaining = listing.entries(workspace_id, category_id=deleted["categoryId"])
        cascade_over(job, remaining, MOVES_PER_TRANSACTION, partial(_move_batch, deleted))
        noun = listing.noun
        run_job_unit(
            job,
            lambda unit: unit.delete_counter(
                noun, facet="category_id", value=deleted["categoryId"]
            ),
        )


def _move_batch(deleted: Mapping[str, Any], unit: UnitOfWork, rows: Sequence[IndexEntry]) -> None:
    target = deleted["moveTo"]
    if target is not None and CATEGORIES.find(unit.tenant, record_id=target) is None:
        target = None
    if target is not None:
        categories.require(unit, target, kind=deleted["kind"])
    listing = categories.listing_of_items(deleted["kind"])
    items = listing.fetch(unit.workspace_id, [row.id for row in rows])
    _move_items(unit, items, deleted["categoryId"], target)


def _move_items(
    unit: UnitOfWork, items: Sequence[Any], category_id: str, target: str | None
) -> None:
    for item in items:
        if item.category_id == category_id:
            item.category_id = target
            unit.save(item)


class _Tree:
    # Every change saves the lock row. Otherwise two concurrent changes, each valid by itself, could
    # together make a cycle or a level that is too deep.
    def __init__(self, workspace_id: str, *, kind: str) -> None:
        self.lock = locks.lock_row(workspace_id, what=categories.tree_lock(kind))
        rows = categories.read_all(workspace_id)
        self.rows = {row.id: row for row in rows if row.kind == kind}
        self.parents = {row.id: row.parent_id for row in self.rows.values()}

    def children(self, category_id: str) -> list[CategoryRow]:
        return [row for row in self.rows.values() if row.parent_id == category_id]

    def problem(self, node: str | None, *, parent_id: str | None) -> str | None:
        return trees.problem(self.parents, node, parent=parent_id, max_depth=MAX_DEPTH)


def _promote_children(
    unit: UnitOfWork, tree: _Tree, category_id: str, parent_id: str | None
) -> bool:
    # If a subcategory no longer fits one level up, because the tree has changed, it moves to the
    # top. Returns whether any were left to move.
    children = tree.children(category_id)
    for child in children[:MOVES_PER_TRANSACTION]:
        child.parent_id = None if tree.problem(child.id, parent_id=parent_id) else parent_id
        unit.save(child)
    return bool(children)


def _unknown_category_error() -> NotFoundError:
    label = "category of this kind"
    return NotFoundError.of(
        label, plural=CATEGORIES.plural, listed_by=CATEGORIES.listed_by, key="category"
    )


def _check_parent(tree: _Tree, node: str | None, *, parent_id: str | None) -> None:
    match tree.problem(node, parent_id=parent_id):
        case "missing":
            raise _unknown_category_error()
        case "cycle":
            raise CycleError.of(
                "parentId", message="a category cannot be moved below itself", key="cycle"
            )
        case "depth":
            message = f"expected at most {MAX_DEPTH} levels of categories"
            raise ValidationError.of("parentId", message=message, key="too_deep")


def _check_target(tree: _Tree, category: CategoryRow, move_to: str | None) -> None:
    if move_to == category.id:
        raise ValidationError.of("moveTo", message="expected another category than the deleted one")
    if move_to is not None and move_to not in tree.rows:
        raise _unknown_category_error()


def _free_slug(ctx: Context, tree: _Tree, name: str) -> str:
    options = list(slugs.candidates(slugs.slugify(name, fallback="category")))
    return new_slugs.choose(ctx, options, {row.slug for row in tree.rows.values()})


def _slug_taken_error(slug: str) -> SlugTakenError:
    return SlugTakenError(
        f'The slug "{slug}" is used by another category of this kind. Choose another slug.'
    )

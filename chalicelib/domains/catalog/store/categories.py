"""Store categories of products and services, with unique slugs."""

from collections.abc import Mapping
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import listing_of, register_listing
from chalicelib.engine.tables import ProgramRecord
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import trees

# Kind of a category -> noun of the records in such categories. These are counted by
# ``category_id``.
KINDS = {"product": "PRODUCT", "service": "SERVICE"}


class CategoryRow(ProgramRecord):
    """A category, whose parent, if any, is of the same kind."""

    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    kind = UnicodeAttribute()
    parent_id = UnicodeAttribute(null=True)
    sort_order = NumberAttribute()


CATEGORIES = register_listing(
    Listing(
        row=CategoryRow,
        noun="CATEGORY",
        plural="the categories",
        listed_by="svc_list_categories",
        text=lambda category: (category.name,),
        uncounted=True,
        sorts={"sortOrder": "n1"},
        numbers=("sort_order",),
        lookups=(Lookup("slug", lambda c: c.slug, unique=True, within=lambda c: c.kind),),
    )
)


def read_all(workspace_id: str) -> list[CategoryRow]:
    """Return all categories of a workspace, of both kinds, by sort order."""
    rows = CategoryRow.partition(CATEGORIES.partition(workspace_id))
    return sorted(rows, key=lambda category: (category.sort_order, category.id))


def read_by_id(workspace_id: str, *, kind: str) -> dict[str, CategoryRow]:
    """Return all categories of a kind by id."""
    return {row.id: row for row in read_all(workspace_id) if row.kind == kind}


def names_from_top(known: Mapping[str, CategoryRow], category: CategoryRow) -> list[str]:
    """Return the names of a category's parents and its own, from the top."""
    names, row = [category.name], category
    while (parent := known.get(row.parent_id or "")) is not None and len(names) <= len(known):
        names.append(parent.name)
        row = parent
    return names[::-1]


def subtree_ids(workspace_id: str, *, category_id: str, kind: str) -> list[str]:
    """Return the ids of a category and its descendants. An unknown category has its own id only."""
    rows = [row for row in read_all(workspace_id) if row.kind == kind]
    return [category_id, *trees.descendants({row.id: row.parent_id for row in rows}, category_id)]


def tree_lock(kind: str) -> str:
    """Return the name of the lock row that serialises changes of a category tree."""
    return f"category-tree#{kind}"


def not_found(kind: str) -> NotFoundError:
    """Return the error for an unknown category id."""
    tool = f"{CATEGORIES.listed_by} with kind {kind}"
    return NotFoundError.of(
        f"{kind} category", plural=CATEGORIES.plural, listed_by=tool, key="category"
    )


def check(workspace_id: str, *, category_id: str, kind: str) -> None:
    """Raise NotFoundError if no category of this kind exists now. ``require`` checks at commit."""
    category = CATEGORIES.find(workspace_id, record_id=category_id)
    if category is None or category.kind != kind:
        raise not_found(kind)


def require(
    unit: UnitOfWork, category_id: str, *, kind: str, on_conflict: AppError | None = None
) -> None:
    """Stage the requirement that a category of this kind exists when the unit commits."""
    key = CATEGORIES.key(unit.workspace_id, record_id=category_id)
    unit.require(CategoryRow(key.pk, key.sk), CategoryRow.kind == kind, on_conflict=on_conflict)


def listing_of_items(kind: str) -> Listing[Any]:
    """Return the listing of the records in categories of a kind."""
    return listing_of(KINDS[kind])


def count_items(workspace_id: str, *, kind: str) -> dict[str, int]:
    """Return the number of live records directly in each category of a kind, by category id."""
    if kind not in KINDS:
        return {}
    counts = counters.read_facet(workspace_id, noun=KINDS[kind], facet="category_id")
    return {name.partition(":")[2]: count for name, count in counts.items()}

"""Create or update up to 100 products in one call, by externalId, SKU or id. Imports use these.

Items without images share transactions. An item with images has a transaction of its own, because
its images add rows. All images of a call are fetched first, in parallel, under one deadline.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field

from chalicelib.application import descriptions
from chalicelib.application.batches import (
    MAX_ITEMS,
    OK,
    BatchSummary,
    commit_outcomes,
    sort_by_item,
)
from chalicelib.application.context import Context
from chalicelib.application.upserts import CREATED, UNCHANGED, UPDATED, UpsertedRecord
from chalicelib.core import deadline
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import (
    AppError,
    ExternalIdTakenError,
    ValidationError,
)
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.core.text import line_fold
from chalicelib.core.wire import batch_items
from chalicelib.core.wire.batch_items import FailsAlone, InvalidItem
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.catalog.operations.products import to_attributes
from chalicelib.domains.catalog.operations.upsert_items import (
    Item,
    ItemById,
    UpsertItem,
    external_id_of,
    keys_of,
    sku_of,
)
from chalicelib.domains.catalog.store import categories, products
from chalicelib.domains.catalog.store.categories import CATEGORIES, CategoryRow
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow, SkuTakenError
from chalicelib.domains.files.flows import record_images, rehosting
from chalicelib.domains.files.flows.rehosting import RejectedImage, StoredObject
from chalicelib.engine.indexing import ClaimErrors
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.reading import fetch
from chalicelib.engine.unit import UnitOfWork, split_batches

# Products in one transaction. DynamoDB allows 100 rows and 4 MB in a transaction. A product writes
# at most 9 rows and 200 KB.
PRODUCTS_PER_TRANSACTION = 10
IMAGE_SECONDS = 600.0
# Seconds of the request's time that are reserved for transactions, after images are fetched.
COMMIT_SECONDS = 8.0
# Number of items with images on other servers that count as one heavy call. The number of images of
# an item does not matter.
ITEMS_PER_HEAVY_CALL = 10

Fetched = Mapping[str, StoredObject | RejectedImage]
_STARTS_AGAIN: ClaimErrors = {EXTERNAL_ID.name: None}


class ProductUpsert(Wire):
    """Products to create or update."""

    items: Annotated[
        list[Annotated[UpsertItem | InvalidItem, FailsAlone(UpsertItem)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Products; each once. An invalid item does not fail the others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


class UpsertById(Wire):
    """Products to create or update, by their ids."""

    items: Annotated[
        list[Annotated[ItemById | InvalidItem, FailsAlone(ItemById)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Products; each id once. An invalid item does not fail the others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


class UpsertOutcome(UpsertedRecord):
    """Actual or expected outcome for one item."""

    sku: str = Field(description="The item's SKU; empty if it has none.")
    warnings: list[str] = Field(
        default=[], description="Images that were not imported, with reasons."
    )


class UpsertResult(Wire):
    """Outcomes of all items."""

    results: list[UpsertOutcome] = Field(
        description="One outcome per item, in the order of the items."
    )
    summary: BatchSummary = Field(description="Counts of the outcomes.")


def _weight(args: ProductUpsert) -> int:
    # A dry run fetches no images.
    items = 0 if args.dry_run else sum(map(record_images.weight_of, batch_items.valid(args.items)))
    return -(-items // ITEMS_PER_HEAVY_CALL)


@operation(
    rest="POST /api/products/upsert",
    scope=Scope.PRODUCTS_WRITE,
    audience=(Audience.KEY, Audience.OPERATOR),
    title="Create or update products",
    idempotent=True,
    open_world=True,
    accepts_idempotency_key=True,
    limit=HEAVY.weighed(_weight),
    example={
        "items": [{"sku": "R-1", "name": "Rye loaf", "price": 7000, "categoryId": "CATEGORY_ID"}]
    },
)
def upsert_products(ctx: Context, args: ProductUpsert) -> UpsertResult:
    """Create or update up to 100 products, each with its own outcome.

    externalId names a product, else the SKU does. A product that has the SKU and no externalId gets
    the item's. A repeated call changes nothing more. An image that cannot be imported in time adds
    a warning to its item. If no image can be imported, the product keeps its current images.
    """
    return _upsert(ctx, args.items, dry_run=args.dry_run)


@operation(
    title="Create or update products by id",
    audience=OPERATOR,
    idempotent=True,
    open_world=True,
    example={"workspaceId": "WORKSPACE_ID", "items": [{"id": "PRODUCT_ID", "name": "Rye"}]},
)
def upsert_products_by_id(ctx: Context, args: UpsertById) -> UpsertResult:
    """Create or update up to 100 products by their ids, each with its own outcome.

    A table of products without SKUs can then be imported again without duplicates.
    """
    return _upsert(ctx, args.items, dry_run=args.dry_run)


def _upsert(ctx: Context, items: Sequence[Item | InvalidItem], *, dry_run: bool) -> UpsertResult:
    keys = Counter(key for item in items for key in keys_of(item))
    unique: dict[int, Item] = {}
    results: dict[int, UpsertOutcome] = {}
    for number, item in enumerate(items):
        if isinstance(item, InvalidItem):
            results[number] = _failed(item, item.error)
        elif any(keys[key] > 1 for key in keys_of(item)):
            results[number] = _failed(item, _duplicate_error(item))
        else:
            unique[number] = item
    batches = {f"items from {numbers[0]}": numbers for numbers in _batches(unique)}
    images = _Images({} if dry_run else _fetch_images(ctx, unique, batches))
    for name, numbers in batches.items():
        batch = [unique[number] for number in numbers]
        outcomes = _dry_run_outcomes(ctx, batch) if dry_run else _commit(ctx, name, batch, images)
        results.update(zip(numbers, outcomes, strict=True))
    ordered = sort_by_item(results, ctx.naming)
    return UpsertResult(results=ordered, summary=BatchSummary.from_outcomes(ordered))


def _batches(items: Mapping[int, Item]) -> Iterator[list[int]]:
    with_images = {n for n, item in items.items() if "images" in item.model_fields_set}
    yield from split_batches((n for n in items if n not in with_images), PRODUCTS_PER_TRANSACTION)
    yield from ([n] for n in items if n in with_images)


def _fetch_images(
    ctx: Context, items: Mapping[int, Item], batches: Mapping[str, Sequence[int]]
) -> Fetched:
    urls = [
        image.url
        for name, (number, *_) in batches.items()
        if items[number].images and not ctx.unit.recalls_batch(name)
        for image in items[number].images or ()
        if image.url
    ]
    seconds = max(0.0, deadline.remaining(IMAGE_SECONDS) - COMMIT_SECONDS)

    def fetch_all() -> Fetched:
        images = rehosting.fetch_images(ctx.workspace_id, urls, seconds)
        if ctx.principal.audience is Audience.OPERATOR:
            # An operator may import products with images of another workspace.
            images |= rehosting.copy_images(ctx.workspace_id, urls)
        return images

    return ctx.unit.run_side_effect_once("images of all items", fetch_all)


@dataclass
class _Images:
    fetched: Fetched  # fetched images of the call
    # From source URLs to the URLs of stored files. If several items have the same image, the first
    # item to be committed stores it as a file. Later items refer to that file.
    files: dict[str, str] = field(default_factory=dict)

    def select(self, items: Sequence[Item]) -> dict[str, StoredObject | RejectedImage]:
        urls = {image.url for item in items for image in item.images or ()}
        return {url: self.fetched[url] for url in urls & self.fetched.keys()}

    def replace_urls(self, item: Item) -> Item:
        images = [
            image.model_copy(update={"url": self.files.get(image.url, image.url)})
            for image in item.images or ()
        ]
        return item.model_copy(update={"images": images}) if images else item


def _commit(ctx: Context, name: str, items: Sequence[Item], images: _Images) -> list[UpsertOutcome]:
    ready = [images.replace_urls(item) for item in items]
    fetched = images.select(ready)
    late = any(isinstance(one, RejectedImage) and one.late for one in fetched.values())

    def stage(part: UnitOfWork) -> list[UpsertOutcome]:
        if fetched:
            rehosting.preload_images(part, fetched)
        return _stage(replace(ctx, unit=part), ready, late=late)

    def failed(error: AppError) -> list[UpsertOutcome]:
        return [_failed(item, error) for item in items]

    outcomes = commit_outcomes(ctx.unit, name, UpsertOutcome, stage, failed)
    if not late and all(outcome.status == OK for outcome in outcomes):
        images.files |= {
            url: rehosting.public_url(one.key)
            for url, one in fetched.items()
            if isinstance(one, StoredObject)
        }
    return outcomes


def _dry_run_outcomes(ctx: Context, items: Sequence[Item]) -> list[UpsertOutcome]:
    without_images = [
        type(item).model_construct(item.model_fields_set - {"images"}, **item.provided("images"))
        for item in items
    ]
    outcomes = []
    for item, outcome in zip(items, _stage(ctx, without_images), strict=True):
        # Images are not fetched, so they count as a change.
        is_changed = item.images and outcome.status == OK and not outcome.created
        same_or_changed = outcome.model_copy(update={"code": UPDATED}) if is_changed else outcome
        outcomes.append(same_or_changed.expected())
    return outcomes


@dataclass
class _Rows:
    # Products by id, and the ids by externalId, SKU and id (``keys_of``). Existing categories.
    products: dict[str, ProductRow]
    ids: dict[tuple[str, str], str]
    categories: set[str]
    required_categories: set[str] = field(default_factory=set)
    # Products of items that are staged.
    staged: set[str] = field(default_factory=set)
    next_sort_order: int | None = None

    @classmethod
    def read(cls, workspace_id: str, items: Sequence[Item]) -> "_Rows":
        ids = {("id", item.id): item.id for item in items if isinstance(item, ItemById)}
        sent = {"sku": map(sku_of, items), "external_id": map(external_id_of, items)}
        for name, values in sent.items():
            if wanted := [value for value in values if value]:
                holders = PRODUCTS.find_unique(workspace_id, lookup=name, values=wanted)
                ids |= {_key(name, value): holders[value] for value in wanted if value in holders}
        category_ids = {item.category_id for item in items if item.category_id is not None}
        rows = fetch(
            [
                *(PRODUCTS.key(workspace_id, record_id=product_id) for product_id in ids.values()),
                *(
                    CATEGORIES.key(workspace_id, record_id=category_id)
                    for category_id in category_ids
                ),
            ]
        )
        return cls(
            {row.id: row for row in rows if isinstance(row, ProductRow)},
            ids,
            {row.id for row in rows if isinstance(row, CategoryRow) and row.kind == "product"},
        )

    def product_of(self, item: Item) -> ProductRow | None:
        """Return the product that an item names.

        A product that has the SKU, but no externalId, gets the item's.
        """
        product_ids = (self.ids.get(key) for key in keys_of(item))
        product = self.products.get(next(filter(None, product_ids), ""))
        if product is not None and product.id in self.staged:
            raise _duplicate_error(item)
        if not isinstance(item, UpsertItem) or product is None:
            return product
        wanted = item.external_id or product.external_id
        if product.external_id not in {None, wanted}:
            msg = "The product with this SKU has another externalId. Send another SKU."
            raise SkuTakenError(msg, product_id=product.id)
        return product

    def names_of(self, item: Item, product: ProductRow | None) -> dict[str, str]:
        """Return the SKU and the externalId that an item gives to its product.

        Raises SkuTakenError or ExternalIdTakenError if another product has one of them.
        """
        own_id = item.id if isinstance(item, ItemById) else product.id if product else ""
        names = {"sku": item.sku, "external_id": item.external_id}
        sent = {name: value for name, value in names.items() if value}
        holders = {name: self.ids.get(_key(name, value), own_id) for name, value in sent.items()}
        if holders.get("sku", own_id) != own_id:
            msg = "Another product has this SKU, ignoring case. Send another SKU."
            raise SkuTakenError(msg, product_id=holders["sku"])
        if holders.get("external_id", own_id) != own_id:
            raise ExternalIdTakenError(holders["external_id"])
        # An SKU that only names the product keeps its case.
        if isinstance(item, UpsertItem) and self.ids.get(_key("sku", item.sku or "")) == own_id:
            sent.pop("sku", None)
        return sent


def _key(name: str, value: str) -> tuple[str, str]:
    return name, line_fold(value) if name == "sku" else value


def _stage(ctx: Context, items: Sequence[Item], *, late: bool = False) -> list[UpsertOutcome]:
    # ``late`` is true if not all of the items' images were fetched in time.
    rows = _Rows.read(ctx.workspace_id, items)
    outcomes = []
    for item in items:
        try:
            outcomes.append(_stage_one(replace(ctx, warnings=[]), item, rows, late=late))
        except AppError as error:
            outcomes.append(_failed(item, error))
    return outcomes


def _stage_one(ctx: Context, item: Item, rows: _Rows, *, late: bool) -> UpsertOutcome:
    # All errors are raised before anything is staged.
    product, values_sent = rows.product_of(item), item.provided("sku", "external_id", "id")
    category_id = values_sent.pop("category_id", None)
    if category_id is not None and category_id not in rows.categories:
        raise categories.not_found("product")
    if product is None and (
        missing := [n for n in ("name", "price") if values_sent.get(n) is None]
    ):
        msg = f"A new product needs a {' and a '.join(missing)}."
        raise ValidationError(msg, key="incomplete_item")
    if product is not None:
        descriptions.require_whole(values_sent.get("description"), stored_text=product.description)
    if product is not None and late:
        values_sent.pop("images")
        ctx.warn(
            "Some images could not be imported in time, so the images of the product are "
            "unchanged. Send this item again.",
            code=WarningCode.IMAGES_NOT_IN_TIME,
        )
    values_sent |= rows.names_of(item, product)
    values = to_attributes(ctx, values_sent, product)
    if "category_id" in item.model_fields_set:
        values["category_id"] = category_id
        if product is None or product.category_id != category_id:
            _require_category(ctx.unit, rows, category_id)
    code = UNCHANGED
    if product is None:
        code, product = CREATED, _create(ctx, item, rows, values)
    else:
        for name, value in values.items():
            setattr(product, name, value)
        if product.changes():
            code = UPDATED
            ctx.unit.save(product, claim_errors=_STARTS_AGAIN)
    rows.staged.add(product.id)
    return UpsertOutcome.done(ctx, product.id, code, **_names_of(item))


def _create(ctx: Context, item: Item, rows: _Rows, values: Mapping[str, Any]) -> ProductRow:
    # The product is at the end of the sort order. If another call creates a product with this SKU
    # or externalId first, the operation runs again.
    if rows.next_sort_order is None:
        rows.next_sort_order = products.number_at_end(ctx.workspace_id)
    attributes = {"status": "active", "sort_order": rows.next_sort_order, **values}
    rows.next_sort_order += ordering.STEP
    if isinstance(item, UpsertItem):
        product = PRODUCTS.new(ctx.workspace_id, **attributes)
    else:
        product = ProductRow(PRODUCTS.partition(ctx.workspace_id), item.id, **attributes)
        products.drop_deleted(ctx.unit, item.id)
    ctx.unit.create(product, claim_errors=_STARTS_AGAIN)
    return product


def _require_category(unit: UnitOfWork, rows: _Rows, category_id: str | None) -> None:
    # The requirement is staged once per transaction. If the category is deleted before the commit,
    # the operation runs again.
    if category_id is not None and category_id not in rows.required_categories:
        rows.required_categories.add(category_id)
        categories.require(unit, category_id, kind="product")


def _duplicate_error(item: Item) -> ValidationError:
    what = "id" if isinstance(item, ItemById) else "SKU, ignoring case"
    if external_id_of(item):
        what = "externalId or SKU, ignoring case"
    msg = f"Several items have this {what}. Send only one of these items."
    return ValidationError(msg, key="repeated_item")


def _failed(item: Item | InvalidItem, error: AppError) -> UpsertOutcome:
    return UpsertOutcome.failed(error, **_names_of(item))


def _names_of(item: Item | InvalidItem) -> dict[str, str]:
    return {"sku": sku_of(item), "external_id": external_id_of(item)}

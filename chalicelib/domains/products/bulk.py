"""One change of many products, with an outcome for each (ADR 0011)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import from_json, to_json

from chalicelib.core import parsing
from chalicelib.core.errors import (
    AppError,
    ConfirmationRequiredError,
    NotFoundError,
    UnavailableError,
    ValidationError,
)
from chalicelib.core.operations import operation
from chalicelib.core.schema import MAX_KOPECKS, Id, Kopecks, Wire
from chalicelib.core.scopes import Scope
from chalicelib.domains.products.order import unique
from chalicelib.domains.products.records import (
    Stock,
    stage_deletion,
    unknown_category,
    unknown_product,
)
from chalicelib.flows.invoke import Context
from chalicelib.rules.percentages import changed_by
from chalicelib.store import categories
from chalicelib.store.categories import CATEGORIES
from chalicelib.store.products import PRODUCTS, ProductRow
from chalicelib.store.transactions import OutcomeUnknownError
from chalicelib.store.unit import UnitOfWork

MAX_AT_ONCE = 100
STEP = 15
"""Products changed in one transaction: a deleted one takes five of its hundred items."""
OK = 200


class BulkProducts(Wire):
    """What to do with which products."""

    ids: Annotated[
        list[Id], Field(min_length=1, max_length=MAX_AT_ONCE), AfterValidator(unique)
    ] = Field(description="Product ids.")
    action: Literal[
        "activate",
        "deactivate",
        "delete",
        "setCategory",
        "setPrice",
        "changePricePercent",
        "setStock",
    ] = Field(description="What to do with each.")
    value: Annotated[Any, WithJsonSchema({"type": ["number", "string", "null"]})] = Field(
        default=None,
        description="As the action needs: category id or null, kopecks, percent, stock or null.",
    )
    confirm: bool = Field(default=False, description="Must be true to delete.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


class ItemOutcome(Wire):
    """What became of one product."""

    id: Id = Field(description="Product id.")
    status: int = Field(description="200, or the HTTP status of the failure.")
    message: str = Field(description="changed, unchanged, deleted, or why it failed.")


class BulkSummary(Wire):
    """How many succeeded and failed."""

    ok: int = Field(description="Products with status 200.")
    failed: int = Field(description="The others.")


class BulkResult(Wire):
    """What became of the products."""

    results: list[ItemOutcome] = Field(description="An outcome per id, in the order of ids.")
    summary: BulkSummary = Field(description="The outcomes counted.")


class _Category(Wire):
    value: Id | None


class _Price(Wire):
    value: Kopecks


class _Percent(Wire):
    value: Annotated[float, Field(ge=-(10**6), le=10**6)]


class _Stock(Wire):
    value: Stock | None


_VALUES: Mapping[str, type[Wire]] = {
    "setCategory": _Category,
    "setPrice": _Price,
    "changePricePercent": _Percent,
    "setStock": _Stock,
}
"""What the actions take that take a value."""

CHANGED, UNCHANGED, DELETED = "changed", "unchanged", "deleted"


@dataclass(frozen=True, slots=True)
class _Action:
    """Stages the change of a product and says what it is; an ``AppError`` is that product's own.

    ``demand`` stages what must hold when a change commits.
    """

    apply: Callable[[UnitOfWork, ProductRow], str]
    demand: Callable[[UnitOfWork], None] = lambda _: None


@operation(
    tool="svc_bulk_products",
    rest="POST /api/products/bulk",
    scope=Scope.PRODUCTS_WRITE,
    title="Change many products",
    destructive=True,
)
def bulk_products(ctx: Context, args: BulkProducts) -> BulkResult:
    """Do one thing with up to 100 products, each with its own outcome. Try dryRun first.

    Prices changed by percent are rounded half up to a kopeck.
    """
    action = _action(ctx, args)
    results: list[ItemOutcome] = []
    for start in range(0, len(args.ids), STEP):
        ids = args.ids[start : start + STEP]
        if args.dry_run:
            results += _stage(ctx.unit, ids, action)
        else:
            results += _step(ctx.unit, f"products from {start}", ids, action)
    ok = sum(result.status == OK for result in results)
    return BulkResult(results=results, summary=BulkSummary(ok=ok, failed=len(results) - ok))


def _step(unit: UnitOfWork, name: str, ids: Sequence[str], action: _Action) -> list[ItemOutcome]:
    """Change some of the products in a transaction of their own.

    That the database, or the category by then, is out of reach is the failure of each. But what
    may have been done after all is no outcome, and nor is what a repeated call will still do: its
    answer is kept, and would say for good that these products failed.
    """

    def stage(part: UnitOfWork) -> bytes:
        return to_json([outcome.model_dump() for outcome in _stage(part, ids, action)])

    try:
        return [ItemOutcome(**outcome) for outcome in from_json(unit.commit_batch(name, stage))]
    except OutcomeUnknownError:
        raise
    except (UnavailableError, NotFoundError) as error:
        if isinstance(error, UnavailableError) and unit.is_repeatable:
            raise
        return [_failed(product_id, error) for product_id in ids]


def _stage(unit: UnitOfWork, ids: Sequence[str], action: _Action) -> list[ItemOutcome]:
    found = {product.id: product for product in PRODUCTS.fetch(unit.workspace_id, ids)}
    outcomes = []
    for product_id in ids:
        product = found.get(product_id)
        try:
            if product is None:
                raise unknown_product()
            message = action.apply(unit, product)
            outcomes.append(ItemOutcome(id=product_id, status=OK, message=message))
        except AppError as error:
            outcomes.append(_failed(product_id, error))
    if any(outcome.message == CHANGED for outcome in outcomes):
        action.demand(unit)
    return outcomes


def _failed(product_id: str, error: AppError) -> ItemOutcome:
    return ItemOutcome(id=product_id, status=error.status, message=error.message)


def _action(ctx: Context, args: BulkProducts) -> _Action:
    """Return what to do with each product, with its value checked."""
    if args.action == "delete":
        if not args.confirm and not args.dry_run:
            msg = f"This deletes {len(args.ids)} product(s). Repeat with confirm: true."
            raise ConfirmationRequiredError(msg, details={"count": len(args.ids)})
        return _Action(_delete)
    value = _value(ctx, args)
    match args.action:
        case "activate" | "deactivate":
            status = "active" if args.action == "activate" else "inactive"
            return _Action(lambda unit, product: _set(unit, product, "status", status))
        case "setCategory":
            return _to_category(ctx, value)
        case "setPrice":
            return _Action(lambda unit, product: _set(unit, product, "price", value))
        case "changePricePercent":
            return _Action(
                lambda unit, product: _set(unit, product, "price", _price(product, value))
            )
        case "setStock":
            return _Action(lambda unit, product: _set(unit, product, "stock", value))


def _value(ctx: Context, args: BulkProducts) -> Any:  # noqa: ANN401  its type is the action's
    given = args.provided("ids", "action", "confirm", "dry_run")
    if args.action in _VALUES:
        return parsing.parse(_VALUES[args.action], given).value  # type: ignore[attr-defined]  # each has it
    if given:
        ctx.warn(f"value has no meaning for {args.action} and was ignored.")
    return None


def _delete(unit: UnitOfWork, product: ProductRow) -> str:
    stage_deletion(unit, product)
    return DELETED


def _set(unit: UnitOfWork, product: ProductRow, name: str, value: str | int | None) -> str:
    if getattr(product, name) == value:
        return UNCHANGED
    setattr(product, name, value)
    unit.save(product)
    return CHANGED


def _to_category(ctx: Context, category_id: str | None) -> _Action:
    """Return the move to a category, which must exist now and at every commit."""
    if category_id is not None:
        category = CATEGORIES.find(ctx.workspace_id, category_id)
        if category is None or category.kind != "product":
            raise unknown_category()

    def demand(unit: UnitOfWork) -> None:
        if category_id is not None:
            categories.require(unit, category_id, "product", on_conflict=unknown_category())

    return _Action(lambda unit, product: _set(unit, product, "category_id", category_id), demand)


def _price(product: ProductRow, percent: float) -> int:
    price = changed_by(int(product.price), percent)
    if price > MAX_KOPECKS:
        msg = f"{price:,} kopecks would pass the limit of {MAX_KOPECKS:,}"
        raise ValidationError.of("value", msg)
    return price

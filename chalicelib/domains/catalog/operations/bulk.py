"""One change of many products, with an outcome for each (ADR 11)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from pydantic_core import from_json

from chalicelib.application.batches import (
    MAX_ITEMS,
    OK,
    BatchSummary,
    commit_outcomes,
    sort_by_item,
)
from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import AppError, ConfirmationRequiredError, ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire import money, parsing
from chalicelib.core.wire.batch_items import FailsAlone, InvalidItem
from chalicelib.core.wire.money import MAX_KOPECKS, Amount
from chalicelib.core.wire.schema import MAX_ID, NULL_IS_A_VALUE, OPENAPI_ONLY, Id, Wire
from chalicelib.core.wire.text_arguments import read_texts
from chalicelib.domains.catalog.operations.order import UNIQUE_IDS
from chalicelib.domains.catalog.operations.products import Stock, stage_deletion
from chalicelib.domains.catalog.rules.price_changes import change_by_percent
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.unit import UnitOfWork, split_batches
from chalicelib.engine.workspace_currency import money_unit_of

# Products in one transaction. A deleted product takes five of the transaction's hundred items.
PRODUCTS_PER_TRANSACTION = 15


_VALUE_TYPES = {OPENAPI_ONLY: {"type": ["number", "string", "null"]}}
# A number or, for ``setCategory``, also an id. Tools publish the number only, because some AI
# clients support one type for each argument.
Value = Annotated[Any, NULL_IS_A_VALUE, WithJsonSchema({"type": "number", **_VALUE_TYPES})]


class BulkProducts(Wire):
    """An action, and the products to apply it to."""

    ids: Annotated[
        list[Annotated[Id | InvalidItem, FailsAlone(Id, "id")]],
        Field(min_length=1, max_length=MAX_ITEMS),
        UNIQUE_IDS,
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
    value: Value = Field(
        default=None,
        description=(
            "setPrice: minor units; changePricePercent: -100 to 1000, 10 = +10 %; setStock: "
            "stock or empty; setCategory: id or empty."
        ),
    )
    category_id: Annotated[Id | None, NULL_IS_A_VALUE] = Field(
        default=None, description="For setCategory; empty: no category."
    )
    confirm: bool = Field(default=False, description="Must be true to delete.")
    dry_run: bool = Field(default=False, description="Only report.")


ShownValue = Annotated[
    int | str | None, WithJsonSchema({"type": ["integer", "string", "null"]}, mode="serialization")
]


class BulkOutcome(Wire):
    """Actual or expected outcome for one product."""

    id: str = Field(description="Product id; empty if the item is not an id.")
    status: int = Field(description="200, or the HTTP status of the failure.")
    message: str = Field(
        description=(
            "changed, unchanged or deleted; with dryRun, would change or would be deleted; or why "
            "it failed."
        )
    )
    code: str = Field(
        description=(
            "changed, unchanged or deleted, also with dryRun; or the code of the error. Stable."
        )
    )
    key: str | None = Field(
        default=None, description="Key of the error or of its first invalid field. Stable."
    )
    before: ShownValue = Field(
        default=None, description="Value before the change; for a deletion, the name."
    )
    after: ShownValue = Field(
        default=None, description="Value after the change; with dryRun, the expected one."
    )


class BulkResult(Wire):
    """Outcomes of all products."""

    results: list[BulkOutcome] = Field(description="One outcome per id, in the order of the ids.")
    summary: BatchSummary = Field(description="Counts of the outcomes.")


class _Category(Wire):
    value: Id | None


class _Price(Wire):
    value: Amount


class _Percent(Wire):
    value: Annotated[float, Field(ge=-100, le=1000)]


class _Stock(Wire):
    value: Stock | None


# Models of the value, for each action that has one.
_VALUES: Mapping[str, type[Wire]] = {
    "setCategory": _Category,
    "setPrice": _Price,
    "changePricePercent": _Percent,
    "setStock": _Stock,
}

CHANGED, UNCHANGED, DELETED = "changed", "unchanged", "deleted"
# Message of an outcome in a dry run, by its code.
DRY_RUN_MESSAGES = {CHANGED: "would change", DELETED: "would be deleted"}


@dataclass(frozen=True, slots=True)
class _Action:
    field: str | None = None  # attribute to change, or None to delete the product
    # An ``AppError`` fails only that product.
    new_value: Callable[[ProductRow], Any] = lambda _: None
    # stages what must hold when the transaction commits
    require: Callable[[UnitOfWork], None] = lambda _: None

    def stage(self, unit: UnitOfWork, product: ProductRow) -> BulkOutcome:
        if self.field is None:
            stage_deletion(unit, product)
            return BulkOutcome(
                id=product.id, status=OK, message=DELETED, code=DELETED, before=product.name
            )
        old_value, new_value = getattr(product, self.field), self.new_value(product)
        if old_value != new_value:
            setattr(product, self.field, new_value)
            unit.save(product)
        code = UNCHANGED if old_value == new_value else CHANGED
        return BulkOutcome(
            id=product.id, status=OK, message=code, code=code, before=old_value, after=new_value
        )


@operation(
    tool=True,
    rest="POST /api/products/bulk",
    scope=Scope.PRODUCTS_WRITE,
    title="Change many products",
    destructive=True,
    example={"ids": ["PRODUCT_ID"], "action": "setPrice", "value": 9500},
    errors=(ConfirmationRequiredError,),
)
def bulk_products(ctx: Context, args: BulkProducts) -> BulkResult:
    """Apply an action to up to 100 products, each separately. Try dryRun first."""
    action = _parse_action(ctx, args)
    results = {n: _invalid(id_) for n, id_ in enumerate(args.ids) if isinstance(id_, InvalidItem)}
    valid = {n: id_ for n, id_ in enumerate(args.ids) if not isinstance(id_, InvalidItem)}
    for numbers in split_batches(valid, PRODUCTS_PER_TRANSACTION):
        ids = [valid[number] for number in numbers]
        if args.dry_run:
            outcomes = _mark_dry_run(_stage(ctx.unit, ids, action))
        else:
            outcomes = commit_outcomes(
                ctx.unit,
                f"products from {numbers[0]}",
                BulkOutcome,
                lambda unit, ids=ids: _stage(unit, ids, action),  # type: ignore[misc]  # mypy sees no default
                lambda error, ids=ids: [_failed(product_id, error) for product_id in ids],  # type: ignore[misc]
            )
        results.update(zip(numbers, outcomes, strict=True))
    ordered = sort_by_item(results, ctx.naming)
    return BulkResult(results=ordered, summary=BatchSummary.from_outcomes(ordered))


def _mark_dry_run(outcomes: Sequence[BulkOutcome]) -> list[BulkOutcome]:
    return [
        outcome.model_copy(update={"message": DRY_RUN_MESSAGES.get(outcome.code, outcome.message)})
        for outcome in outcomes
    ]


def _stage(unit: UnitOfWork, ids: Sequence[str], action: _Action) -> list[BulkOutcome]:
    products_by_id = {product.id: product for product in PRODUCTS.fetch(unit.workspace_id, ids)}
    outcomes = []
    for product_id in ids:
        try:
            if product_id not in products_by_id:
                raise PRODUCTS.not_found()
            outcomes.append(action.stage(unit, products_by_id[product_id]))
        except AppError as error:
            outcomes.append(_failed(product_id, error))
    if any(outcome.code == CHANGED for outcome in outcomes):
        action.require(unit)
    return outcomes


def _failed(product_id: str, error: AppError) -> BulkOutcome:
    return BulkOutcome(
        id=product_id,
        status=error.status,
        message=error.message,
        code=error.code,
        key=error.first_key,
    )


def _invalid(item: InvalidItem) -> BulkOutcome:
    return _failed(item.text(MAX_ID), item.error)


def _parse_action(ctx: Context, args: BulkProducts) -> _Action:
    if args.action == "delete":
        if not args.confirm and not args.dry_run:
            msg = f"This deletes {len(args.ids)} product(s). Repeat with confirm: true."
            raise ConfirmationRequiredError(msg, details={"count": len(args.ids)})
        return _Action()
    value = _parse_value(ctx, args)
    match args.action:
        case "activate" | "deactivate":
            status = "active" if args.action == "activate" else "inactive"
            return _Action("status", lambda _: status)
        case "setCategory":
            return _to_category(ctx, value)
        case "setPrice":
            return _Action("price", lambda _: value)
        case "changePricePercent":
            return _Action(
                "price", lambda product: _changed_price(ctx.workspace_id, product, value)
            )
        case "setStock":
            return _Action("stock", lambda _: value)


def _parse_value(ctx: Context, args: BulkProducts) -> Any:  # noqa: ANN401  its type is the action's
    arguments = args.provided("ids", "action", "confirm", "dry_run", "category_id")
    if args.action != "setCategory":
        if args.category_id is not None:
            _warn_of_ignored(ctx, args, "categoryId")
    elif "category_id" in args.model_fields_set and (args.category_id or args.value is None):
        arguments = {"value": args.category_id}
    if args.action in _VALUES:
        if ctx.is_tool_call:
            arguments = read_texts(_VALUES[args.action], arguments, from_json)
        with money.counted_in(partial(money_unit_of, ctx.workspace_id)):
            return parsing.parse(_VALUES[args.action], arguments).value  # type: ignore[attr-defined]  # each has it
    if arguments:
        _warn_of_ignored(ctx, args, "value")
    return None


def _warn_of_ignored(ctx: Context, args: BulkProducts, field: str) -> None:
    ctx.warn(
        f"{field} was ignored, because the action {args.action} does not use it.",
        code=WarningCode.FIELD_IGNORED,
        field=field,
    )


def _to_category(ctx: Context, category_id: str | None) -> _Action:
    # The category must exist now and at each commit.
    if category_id is not None:
        categories.check(ctx.workspace_id, category_id=category_id, kind="product")

    def require(unit: UnitOfWork) -> None:
        if category_id is not None:
            categories.require(
                unit, category_id, kind="product", on_conflict=categories.not_found("product")
            )

    return _Action("category_id", lambda _: category_id, require)


def _changed_price(workspace_id: str, product: ProductRow, percent: float) -> int:
    price = change_by_percent(int(product.price), percent)
    if price > MAX_KOPECKS:
        unit = money_unit_of(workspace_id).minor
        msg = f"expected a new price of at most {MAX_KOPECKS:,} {unit}, but it would be {price:,}"
        raise ValidationError.of("value", message=msg)
    return price

"""Change the prices of many records by one rule, each only from the price that was seen (ADR 125).

A caller first asks what would change, and sends the old prices back with the call that changes
them. A record whose price differs then is refused, so a rule is never applied twice.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.batches import (
    MAX_ITEMS,
    OK,
    BatchSummary,
    commit_outcomes,
    sort_by_item,
)
from chalicelib.application.context import Context
from chalicelib.core.errors import AppError, ConflictError, ValidationError
from chalicelib.core.wire.money import MAX_KOPECKS, MONEY, Kopecks
from chalicelib.core.wire.schema import Id, Wire, exactly_one, optional
from chalicelib.domains.catalog.rules.price_changes import PriceRule, Rounding
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.unit import UnitOfWork, split_batches

RECORDS_PER_TRANSACTION = 15
CHANGED, UNCHANGED = "changed", "unchanged"

AmountChange = Annotated[int, Field(ge=-MAX_KOPECKS, le=MAX_KOPECKS), MONEY]
Percent = Annotated[float, Field(ge=-100, le=1000)]
Step = Annotated[int, Field(ge=1, le=MAX_KOPECKS), MONEY]


class PriceChangedError(ConflictError):
    """The record has another price than the one that the call names: ``price``."""

    code = "price_changed"

    def __init__(self, price: int) -> None:
        msg = f"The price is {price} by now. Read the prices again, and send the price you saw."
        super().__init__(msg, details={"price": price})


class PricedItem(Wire):
    """A record, and its price when you decided to change it."""

    id: Id = Field(description="Id of the record.")
    price: Kopecks | None = optional(
        "Price that you saw. Required without dryRun; another price is refused."
    )


class PriceChanges(Wire):
    """One rule, and the records to apply it to."""

    EXACTLY_ONE_OF = (("percent", "amount"),)

    items: Annotated[list[PricedItem], Field(min_length=1, max_length=MAX_ITEMS)] = Field(
        description="Records, each once."
    )
    percent: Percent | None = optional("Change in percent: 10 is +10 %, -5.5 is -5.5 %.")
    amount: AmountChange | None = optional("Or change in minor units (kopecks); negative lowers.")
    round_to: Step = Field(
        default=1,
        description="The new price is a multiple of so many minor units (kopecks), such as 1000.",
    )
    rounding: Rounding = Field(
        default="nearest", description="How it is rounded; nearest rounds a half up."
    )
    dry_run: bool = Field(default=False, description="Only report what would change.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        exactly_one(self)
        if len({item.id for item in self.items}) < len(self.items):
            raise PydanticCustomError("not_unique", "expected each id once", {"field": "items"})
        if not self.dry_run and any(item.price is None for item in self.items):
            message = "expected the price that you saw for each item; dryRun returns it as before"
            raise PydanticCustomError("required", message, {"field": "items"})
        return self

    @property
    def rule(self) -> PriceRule:
        return PriceRule(self.percent, self.amount, self.round_to, self.rounding)


class PriceOutcome(Wire):
    """Actual or expected outcome for one record."""

    id: str = Field(description="Id of the record.")
    status: int = Field(description="200, or the HTTP status of the failure.")
    message: str = Field(description="changed or unchanged, or why it failed.")
    code: str = Field(
        description="changed or unchanged, also with dryRun; or the code of the error. Stable."
    )
    key: str | None = Field(
        default=None, description="Key of the error or of its first invalid field. Stable."
    )
    before: int | None = Field(
        default=None, description="Price before the change; null if it was not found."
    )
    after: int | None = Field(
        default=None, description="Price after the change; with dryRun, the expected one."
    )


class PriceResult(Wire):
    """Outcomes of all records."""

    results: list[PriceOutcome] = Field(description="One outcome per item, in their order.")
    summary: BatchSummary = Field(description="Counts of the outcomes.")


def change_prices(ctx: Context, listing: Listing[Any], args: PriceChanges) -> PriceResult:
    """Apply the rule to the records of a listing, each alone, and return the outcomes."""
    results: dict[int, PriceOutcome] = {}
    by_number: Mapping[int, PricedItem] = dict(enumerate(args.items))
    for numbers in split_batches(by_number, RECORDS_PER_TRANSACTION):
        items = [by_number[number] for number in numbers]
        stage = _stager(listing, items, args.rule)
        if args.dry_run:
            outcomes = stage(ctx.unit)
        else:
            outcomes = commit_outcomes(
                ctx.unit, f"prices from {numbers[0]}", PriceOutcome, stage, _all_failed(items)
            )
        results.update(zip(numbers, outcomes, strict=True))
    ordered = sort_by_item(results, ctx.naming)
    return PriceResult(results=ordered, summary=BatchSummary.from_outcomes(ordered))


def _stager(
    listing: Listing[Any], items: Sequence[PricedItem], rule: PriceRule
) -> Callable[[UnitOfWork], list[PriceOutcome]]:
    def stage(unit: UnitOfWork) -> list[PriceOutcome]:
        ids = [item.id for item in items]
        records = {record.id: record for record in listing.fetch(unit.workspace_id, ids)}
        return [_stage_one(unit, listing, records.get(item.id), item, rule) for item in items]

    return stage


def _stage_one(
    unit: UnitOfWork,
    listing: Listing[Any],
    record: Any,  # noqa: ANN401  a record with a price
    item: PricedItem,
    rule: PriceRule,
) -> PriceOutcome:
    if record is None:
        return _failed(item, listing.not_found())
    before = int(record.price)
    # The commit requires that the record has not changed since it was read here.
    if item.price is not None and item.price != before:
        return _failed(item, PriceChangedError(before), before)
    after = rule.apply(before)
    if after > MAX_KOPECKS:
        msg = f"expected a new price of at most {MAX_KOPECKS:,}, but it would be {after:,}"
        return _failed(item, ValidationError.of("items", message=msg, key="too_large"), before)
    if after != before:
        record.price = after
        unit.save(record)
    code = UNCHANGED if after == before else CHANGED
    return PriceOutcome(id=item.id, status=OK, message=code, code=code, before=before, after=after)


def _failed(item: PricedItem, error: AppError, before: int | None = None) -> PriceOutcome:
    return PriceOutcome(
        id=item.id,
        status=error.status,
        message=error.message,
        code=error.code,
        key=error.first_key,
        before=before,
    )


def _all_failed(items: Sequence[PricedItem]) -> Callable[[AppError], list[PriceOutcome]]:
    return lambda error: [_failed(item, error) for item in items]

"""Create or update up to 100 records in one call, by their ids in the caller's system (ADR 113).

Each item has a transaction of its own, so it succeeds or fails alone. Products, whose items share
transactions and import images, have an upsert of their own.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field
from pydantic import ValidationError as PydanticValidationError
from pydantic_core import from_json

from chalicelib.application.batches import OK, BatchSummary, sort_by_item
from chalicelib.application.context import Context
from chalicelib.core.errors import (
    AppError,
    ConflictError,
    ExternalIdTakenError,
    UnavailableError,
    ValidationError,
)
from chalicelib.core.wire.batch_items import InvalidItem
from chalicelib.core.wire.external_data import MAX_EXTERNAL_ID, ExternalId
from chalicelib.core.wire.message_detail import MessageDetail
from chalicelib.core.wire.parsing import to_validation_error
from chalicelib.core.wire.schema import Id, Patch, Wire
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.tables import ProgramRecord
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork

CREATED, UPDATED, UNCHANGED = "created", "updated", "unchanged"
REPEATS = 2  # of an item whose externalId another call takes meanwhile

R = TypeVar("R", bound=ProgramRecord)
Item = TypeVar("Item", bound="ItemByExternalId")
W = TypeVar("W", bound=Wire)


class ItemByExternalId(Patch):
    """A record by its id in the caller's system. Omitted fields stay as they are."""

    CONDITIONS: ClassVar[frozenset[str]] = frozenset({"external_id"})

    external_id: ExternalId = Field(description="Id in your system; a new record gets it.")


class UpsertedRecord(Wire):
    """Actual or expected outcome for one item."""

    external_id: str = Field(description="The item's externalId; empty if it has none.")
    id: Id | None = Field(default=None, description="Id of the record, or null if there is none.")
    status: int = Field(description="200, or the HTTP status of the failure.")
    message: str = Field(
        description=(
            "created, updated or unchanged; with dryRun, would create, would update or unchanged; "
            "or why the item failed."
        )
    )
    code: str = Field(
        description=(
            "created, updated or unchanged, also with dryRun; or the code of the error. Stable."
        )
    )
    key: str | None = Field(
        default=None, description="Key of the error or of its first invalid field. Stable."
    )
    created: bool = Field(default=False, description="Whether the call created the record.")
    conflict_id: Id | None = Field(
        default=None,
        description="Id of the record that has a value of the item, such as an e-mail, or null.",
    )
    warnings: list[str] = Field(default=[], description="How the result may differ from the item.")
    warning_details: list[MessageDetail] = Field(
        default=[], description="The warnings with their codes and facts."
    )

    @classmethod
    def done(cls, ctx: Context, record_id: str, code: str, **named: Any) -> Self:  # noqa: ANN401  texts
        """Return the outcome of an item, whose ids in the caller's system are ``named``."""
        return cls(
            id=record_id,
            status=OK,
            message=code,
            code=code,
            created=code == CREATED,
            warnings=[warning.message for warning in ctx.warnings],
            warning_details=[MessageDetail(**warning.detail()) for warning in ctx.warnings],
            **named,
        )

    @classmethod
    def failed(cls, error: AppError, **named: Any) -> Self:  # noqa: ANN401  texts
        """Return the outcome of an item that fails."""
        return cls(
            status=error.status,
            message=error.message,
            code=error.code,
            key=error.first_key,
            conflict_id=error.holder if isinstance(error, ConflictError) else None,
            **named,
        )

    def expected(self) -> Self:
        """Return what a dry run says instead."""
        if self.created:
            new: dict[str, Any] = {"id": None, "created": False, "message": "would create"}
            return self.model_copy(update=new)
        changed = {"message": "would update"} if self.code == UPDATED else {}
        return self.model_copy(update=changed)


class UpsertedRecords(Wire):
    """Outcomes of all items."""

    results: list[UpsertedRecord] = Field(
        description="One outcome per item, in the order of the items."
    )
    summary: BatchSummary = Field(description="Counts of the outcomes.")


def new_record(model: type[W], item: ItemByExternalId, *excluded: str) -> W:
    """Return the input of a new record that an item describes, or raise ValidationError."""
    values = item.provided(*excluded)
    try:
        return model.model_validate(values, strict=True, by_name=True)
    except PydanticValidationError as failure:
        raise to_validation_error(model, values, failure) from None


class _UnchangedError(Exception):
    """The item changes nothing, so its unit of work must write nothing."""

    def __init__(self, outcome: UpsertedRecord) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass(eq=False, repr=False)
class Upsert(Generic[R, Item]):
    """How the items of a noun become records.

    ``create`` stages a new record. ``change`` changes an existing one and stages what else changes
    with it, and returns whether anything differs. If nothing does, all of that is discarded.
    """

    listing: Listing[R]
    create: Callable[[Context, Item], R]
    change: Callable[[Context, R, Item], bool]

    def run(
        self, ctx: Context, items: Sequence[Item | InvalidItem], *, dry_run: bool
    ) -> UpsertedRecords:
        """Create or update the records, each with its own outcome."""
        counts = Counter(_id_of(item) for item in items)
        unique: dict[int, Item] = {}
        results: dict[int, UpsertedRecord] = {}
        for number, item in enumerate(items):
            if isinstance(item, InvalidItem):
                results[number] = UpsertedRecord.failed(item.error, external_id=_id_of(item))
            elif counts[item.external_id] > 1:
                msg = "Several items have this externalId. Send only one of these items."
                error = ValidationError(msg, key="repeated_item")
                results[number] = UpsertedRecord.failed(error, external_id=item.external_id)
            else:
                unique[number] = item
        values = [item.external_id for item in unique.values()]
        ids = self.listing.find_unique(ctx.workspace_id, lookup=EXTERNAL_ID.name, values=values)
        records = self.listing.fetch(ctx.workspace_id, ids.values())
        by_external_id = {str(record.external_id): record for record in records}
        call = _Call(self, ctx, {value: by_external_id.get(value) for value in values}, dry_run)
        results |= {number: call.outcome(number, item) for number, item in unique.items()}
        ordered = sort_by_item(results, ctx.naming)
        return UpsertedRecords(results=ordered, summary=BatchSummary.from_outcomes(ordered))


@dataclass(eq=False, repr=False)
class _Call(Generic[R, Item]):
    upsert: Upsert[R, Item]
    ctx: Context
    # Records by external id, or None for a new one, until an attempt has used them.
    known_records: dict[str, R | None]
    dry_run: bool

    def outcome(self, number: int, item: Item, repeats: int = REPEATS) -> UpsertedRecord:
        try:
            if self.dry_run:
                return self._stage(UnitOfWork(self.ctx.workspace_id), item).expected()
            return self._commit(f"item {number}", item)
        except _UnchangedError as unchanged:
            return unchanged.outcome
        except OutcomeUnknownError:
            raise
        except AppError as error:
            if isinstance(error, UnavailableError) and self.ctx.unit.is_repeatable:
                # A stored outcome would prevent a repeated call from succeeding.
                raise
            if isinstance(error, ExternalIdTakenError) and repeats:
                # Another call has created the record since. It is updated instead.
                return self.outcome(number, item, repeats - 1)
            return UpsertedRecord.failed(error, external_id=item.external_id)

    def _commit(self, name: str, item: Item) -> UpsertedRecord:
        def stage(part: UnitOfWork) -> bytes:
            return self._stage(part, item).model_dump_json().encode()

        return UpsertedRecord(**from_json(self.ctx.unit.commit_batch(name, stage)))

    def _stage(self, unit: UnitOfWork, item: Item) -> UpsertedRecord:
        ctx = replace(self.ctx, unit=unit, warnings=[])
        record = self._find(item.external_id)
        if record is None:
            return _done(ctx, item, self.upsert.create(ctx, item), CREATED)
        if self.upsert.change(ctx, record, item):
            unit.save(record)
            return _done(ctx, item, record, UPDATED)
        raise _UnchangedError(_done(ctx, item, record, UNCHANGED))

    def _find(self, external_id: str) -> R | None:
        if external_id in self.known_records:
            return self.known_records.pop(external_id)
        listing, workspace_id = self.upsert.listing, self.ctx.workspace_id
        ids = listing.find_by(workspace_id, lookup=EXTERNAL_ID.name, value=external_id)
        return listing.find(workspace_id, record_id=ids[0]) if ids else None


def _id_of(item: ItemByExternalId | InvalidItem) -> str:
    if isinstance(item, InvalidItem):
        return item.text(MAX_EXTERNAL_ID, "externalId")
    return item.external_id


def _done(ctx: Context, item: ItemByExternalId, record: ProgramRecord, code: str) -> UpsertedRecord:
    return UpsertedRecord.done(ctx, record.id, code, external_id=item.external_id)

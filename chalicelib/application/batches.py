"""Change many records in several transactions of one call, with an outcome for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from pydantic import Field
from pydantic_core import from_json, to_json

from chalicelib.core.call_names import Naming
from chalicelib.core.errors import (
    AppError,
    NotFoundError,
    StorageLimitError,
    UnavailableError,
)
from chalicelib.core.wire.schema import Wire
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork

MAX_ITEMS = 100  # Largest number of items in one call.
OK = 200  # Status of an outcome that succeeded.

W = TypeVar("W", bound=Wire)


class _Outcome(Protocol):
    @property
    def status(self) -> int: ...


class BatchSummary(Wire):
    """Numbers of records whose change succeeded or failed."""

    ok: int = Field(description="Records with status 200.")
    failed: int = Field(description="Records with another status.")

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[_Outcome]) -> Self:
        ok = sum(outcome.status == OK for outcome in outcomes)
        return cls(ok=ok, failed=len(outcomes) - ok)


def sort_by_item(results: Mapping[int, W], naming: Naming) -> list[W]:
    """Return outcomes in the order of items; ``naming`` adapts names in messages to the caller."""
    return [
        outcome.model_copy(update={"message": naming(outcome.message)})  # type: ignore[attr-defined]  # every outcome has a message
        for _, outcome in sorted(results.items())
    ]


def commit_outcomes(
    unit: UnitOfWork,
    name: str,
    outcome_type: type[W],
    stage: Callable[[UnitOfWork], list[W]],
    failed: Callable[[AppError], list[W]],
) -> list[W]:
    """Change some records in a separate transaction, and return their outcomes.

    ``stage`` stages the changes and returns the outcomes. If the transaction fails because the
    database is unavailable, no more records can be stored, or a category was deleted, ``failed``
    returns the outcomes.

    Raises:
        OutcomeUnknownError: the transaction may have committed.
        UnavailableError: the database is unavailable, and the call has an idempotency key. The
            caller can repeat it.
    """

    def stage_part(part: UnitOfWork) -> bytes:
        return to_json([outcome.model_dump() for outcome in stage(part)])

    try:
        return [
            outcome_type(**outcome) for outcome in from_json(unit.commit_batch(name, stage_part))
        ]
    except OutcomeUnknownError:
        raise
    except (UnavailableError, NotFoundError, StorageLimitError) as error:
        if isinstance(error, UnavailableError) and unit.is_repeatable:
            # Stored outcomes would prevent a repeated call from succeeding.
            raise
        return failed(error)

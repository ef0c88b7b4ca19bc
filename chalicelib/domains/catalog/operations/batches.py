"""Changes of many products in one call: several transactions, an outcome for each product."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from pydantic import Field
from pydantic_core import from_json, to_json

from chalicelib.core.call_names import Naming
from chalicelib.core.errors import AppError, NotFoundError, UnavailableError
from chalicelib.core.wire.schema import Wire
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork

MAX_AT_ONCE = 100
"""Limit of products in one call."""
OK = 200

W = TypeVar("W", bound=Wire)


class _Outcome(Protocol):
    @property
    def status(self) -> int: ...


class BatchSummary(Wire):
    """Number of products that succeeded and failed."""

    ok: int = Field(description="Products with status 200.")
    failed: int = Field(description="Products with another status.")

    @classmethod
    def of(cls, outcomes: Sequence[_Outcome]) -> Self:
        """Count the outcomes."""
        ok = sum(outcome.status == OK for outcome in outcomes)
        return cls(ok=ok, failed=len(outcomes) - ok)


def in_order(results: Mapping[int, W], naming: Naming) -> list[W]:
    """Return outcomes in the order of the items. ``naming`` adapts the messages to the caller."""
    return [
        outcome.model_copy(update={"message": naming(outcome.message)})  # type: ignore[attr-defined]  # each has one
        for _, outcome in sorted(results.items())
    ]


def commit_outcomes(
    unit: UnitOfWork,
    name: str,
    kind: type[W],
    stage: Callable[[UnitOfWork], list[W]],
    failed: Callable[[AppError], list[W]],
) -> list[W]:
    """Change some products in a transaction of their own, and return their outcomes.

    If the database is unavailable, or a category is deleted meanwhile, every product of the
    transaction fails. Two errors are raised instead. If the transaction may have committed, the
    outcome is unknown. If the caller can repeat the call, a repetition can still succeed, and a
    stored answer would report these products as failed for good.
    """

    def staged(part: UnitOfWork) -> bytes:
        return to_json([outcome.model_dump() for outcome in stage(part)])

    try:
        return [kind(**outcome) for outcome in from_json(unit.commit_batch(name, staged))]
    except OutcomeUnknownError:
        raise
    except (UnavailableError, NotFoundError) as error:
        if isinstance(error, UnavailableError) and unit.is_repeatable:
            raise
        return failed(error)

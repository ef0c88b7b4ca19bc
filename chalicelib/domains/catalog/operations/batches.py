"""Changes of many products at once: in transactions of some each, with an outcome for each."""

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
"""Products in one call."""
OK = 200

W = TypeVar("W", bound=Wire)


class _Outcome(Protocol):
    @property
    def status(self) -> int: ...


class BatchSummary(Wire):
    """How many succeeded and failed."""

    ok: int = Field(description="Products with status 200.")
    failed: int = Field(description="The others.")

    @classmethod
    def of(cls, outcomes: Sequence[_Outcome]) -> Self:
        """Return the outcomes counted."""
        ok = sum(outcome.status == OK for outcome in outcomes)
        return cls(ok=ok, failed=len(outcomes) - ok)


def in_order(results: Mapping[int, W], naming: Naming) -> list[W]:
    """Return outcomes in the order of their items, with calls named as the caller knows them."""
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

    That the database, or a category by then, is out of reach is the failure of each. But what may
    have been done after all is no outcome, and nor is what a repeated call will still do: its
    answer is kept, and would say for good that these products failed.
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

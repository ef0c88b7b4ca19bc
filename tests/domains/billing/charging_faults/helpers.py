"""Notes that the tests store with a charge, and the prices of a free model."""

from collections.abc import Callable
from datetime import UTC, datetime

from chalicelib.core.errors import ConflictError
from chalicelib.core.jobs import JobKind
from chalicelib.domains.billing.rules.pricing import Prices
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork
from tests.domains.billing.test_charging import TERMS


def note(name: str) -> Callable[[UnitOfWork], None]:
    """Return a stage that succeeds only once."""
    row = jobs.row(JobKind("note"), "ws", {}, datetime(2030, 1, 1, tzinfo=UTC), job_id=name)
    return lambda unit: unit.create(row, on_conflict=ConflictError("twice"))


def noted(name: str) -> bool:
    return jobs.is_there(jobs.ref(JobKind("note"), datetime(2030, 1, 1, tzinfo=UTC), name))


FREE = TERMS._replace(prices=Prices(0, 0))

"""The faults of the soak reach the service as DynamoDB's faults do."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import JobKind
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.engine.unit import UnitOfWork, run_unit
from infra.proof.soak.database_faults import DatabaseFaults

pytestmark = pytest.mark.usefixtures("database")
KINDS = ["throttled", "conflict", "unreachable", "lost"]


@pytest.fixture
def faults() -> Iterator[DatabaseFaults]:
    """Faults of all requests of this process, until the test ends."""
    faults, client = DatabaseFaults(), connection().client
    faults.install(client)
    yield faults
    client.meta.events.unregister("before-call.dynamodb", faults._before_call)
    client.meta.events.unregister("after-call.dynamodb", faults._after_call)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [1, 100])
def test_a_fault_is_retried_and_at_last_reported_as_an_overload(
    kind: str, times: int, faults: DatabaseFaults, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds_left = iter([kind] * times)
    monkeypatch.setattr(faults, "_choose", lambda _: next(kinds_left, None))
    single, staged = jobs.row(JobKind("kind"), "w", {}), jobs.row(JobKind("kind"), "w", {})

    def stage(unit: UnitOfWork) -> None:
        unit.create(staged)

    if times == 1:
        jobs.schedule(single)
        run_unit("w", None, stage)
    else:
        with pytest.raises(UnavailableError):
            jobs.schedule(single)
        with pytest.raises(UnavailableError):
            run_unit("w", None, stage)
    monkeypatch.undo()
    assert jobs.is_there(single) == jobs.is_there(staged) == (times == 1 or kind == "lost")


def test_a_share_of_the_requests_fails_and_is_counted(faults: DatabaseFaults) -> None:
    faults.share = 0.2
    for _ in range(300):
        with suppress(UnavailableError):
            jobs.schedule(jobs.row(JobKind("kind"), "w", {}))
    assert set(faults.made) == set(KINDS)
    assert 0.1 < faults.made.total() / faults.requests < 0.3
    faults.share = 0
    fault_count = faults.made.total()
    jobs.schedule(jobs.row(JobKind("kind"), "w", {}))
    assert faults.made.total() == fault_count

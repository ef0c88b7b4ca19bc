"""Writes of single rows that DynamoDB refuses because a transaction holds the row."""

from collections.abc import Callable

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import JobKind
from chalicelib.engine import jobs
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.connection import ATTEMPTS
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.tables import ControlRow
from tests.conftest import Api
from tests.engine.faults.conftest import import_page
from tests.fakes.dynamodb_faults import ALWAYS, busy_row, failing, unreachable

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


@pytest.mark.parametrize(("times", "status"), [(1, 200), (2, 200), (ALWAYS, 503)])
def test_marking_a_key_in_progress_on_a_busy_row_is_retried(
    times: int, status: int, api: Api
) -> None:
    call = import_page(api)
    with failing("PutItem", times, busy_row):
        assert call.send("key").status == status
    assert call.send("key").status == 200
    assert call.count_effects() == 1


def test_a_job_on_a_busy_row_is_removed_once_it_is_done() -> None:
    job = jobs.row(JobKind("kind"), "w", {})
    jobs.schedule(job)
    with failing("DeleteItem", 2, busy_row):
        jobs.remove_finished(job)
    assert not jobs.is_there(job)


def test_a_row_that_stays_busy_is_reported_as_an_overload() -> None:
    job = jobs.row(JobKind("kind"), "w", {})
    with failing("PutItem", ALWAYS, busy_row), pytest.raises(UnavailableError):
        jobs.schedule(job)
    assert ControlRow.find(job.pk, job.sk) is None


@pytest.mark.parametrize("times", [0, ATTEMPTS - 1, 2 * ATTEMPTS])
@pytest.mark.parametrize(("kind", "is_met"), [("kind", True), ("another kind", False)])
def test_a_row_is_updated_only_if_it_meets_the_condition(
    times: int, kind: str, *, is_met: bool
) -> None:
    row = jobs.row(JobKind("kind"), "w", {})
    jobs.schedule(row)
    with failing("UpdateItem", times, busy_row):
        assert update_if(row, [JobRow.tries.set(7)], JobRow.kind == kind) is is_met
    stored_row = JobRow.find(row.pk, row.sk)
    assert stored_row
    assert int(stored_row.tries) == (7 if is_met else 0)


@pytest.mark.parametrize("fault", [busy_row, unreachable])
def test_an_update_that_cannot_be_made_is_reported(fault: Callable[[], Exception]) -> None:
    row = jobs.row(JobKind("kind"), "w", {})
    jobs.schedule(row)
    with failing("UpdateItem", ALWAYS, fault), pytest.raises(UnavailableError):
        update_if(row, [JobRow.tries.set(7)], JobRow.pk.exists())

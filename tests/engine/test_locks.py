"""If two changes must not overlap, one starts again with fresh reads."""

import pytest

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.engine.locks import LockRow, lock_key, lock_row, stage_raise
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork, run_unit

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


def started(workspace_id: str = "w", what: str = "slugs", rows: Rows | None = None) -> UnitOfWork:
    """Return a unit that has read a lock row and will save it."""
    unit = UnitOfWork(workspace_id)
    unit.save(lock_row(workspace_id, what=what, rows=rows))
    return unit


def read_ahead() -> Rows:
    rows = Rows()
    rows.read([lock_key("w", what="slugs")])
    return rows


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_of_two_changes_under_one_lock_the_later_commit_fails(*, exists: bool, ahead: bool) -> None:
    if exists:
        started().commit()
    first, second = (started(rows=read_ahead() if ahead else None) for _ in range(2))
    first.commit()
    with pytest.raises(ConcurrentUpdateError):
        second.commit()


def test_locks_of_other_workspaces_and_for_other_changes_are_separate() -> None:
    units = [started(), started("other"), started(what="prices")]
    for unit in units:
        unit.commit()


def test_a_row_that_was_read_ahead_is_the_lock_of_that_moment() -> None:
    ahead = read_ahead()
    started().commit()
    with pytest.raises(ConcurrentUpdateError):
        started(rows=ahead).commit()


@pytest.mark.parametrize("exists", [False, True])
def test_a_change_that_reads_no_lock_makes_those_that_have_read_it_start_again(
    *, exists: bool
) -> None:
    if exists:
        started().commit()
    unit = started()
    run_unit("w", None, lambda other: stage_raise(other, "slugs"))
    with pytest.raises(ConcurrentUpdateError):
        unit.commit()
    started().commit()


def test_changes_that_read_no_lock_do_not_hinder_each_other() -> None:
    units = [UnitOfWork("w"), UnitOfWork("w")]
    for unit in units:
        stage_raise(unit, "slugs")
    for unit in units:
        unit.commit()
    assert LockRow.find(*lock_key("w", what="slugs")[1:]).version == 2

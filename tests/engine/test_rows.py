"""``Rows`` reads rows ahead, each once."""

import pytest

from chalicelib.core import clock
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine.locks import LockRow, lock_key
from chalicelib.engine.reading import Key, Rows, fetch
from chalicelib.engine.tables import ContentRow, ControlRow, IdentityRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from infra.bench.dynamodb.usage import metering

pytestmark = pytest.mark.usefixtures("database")
WORKSPACE = "w"


def store(*names: str) -> None:
    def stage(unit: UnitOfWork) -> None:
        for name in names:
            key = lock_key(WORKSPACE, what=name)
            unit.save(LockRow(key.pk, key.sk))

    run_unit(WORKSPACE, None, stage)


def test_rows_read_ahead_are_taken_without_a_request_also_those_that_do_not_exist() -> None:
    store("a", "b")
    rows = Rows()
    a, b, missing = (lock_key(WORKSPACE, what=name) for name in ("a", "b", "c"))
    with metering() as usage:
        rows.read([a, b, missing])
        assert [row.sk for row in rows.fetch([b, missing, a, b])] == ["b", "a"]
        assert rows.find(LockRow, missing) is None
    assert usage.calls == ["BatchGetItem"]


def test_rows_that_were_not_read_ahead_are_read_when_they_are_asked_for() -> None:
    store("a", "b")
    rows = Rows()
    a, b = (lock_key(WORKSPACE, what=name) for name in ("a", "b"))
    rows.read([a])
    with metering() as usage:
        assert [row.sk for row in rows.fetch([a, b])] == ["a", "b"]
        row = rows.find(LockRow, b)
    assert row is not None
    assert row.version == 1
    assert usage.calls == ["BatchGetItem"]


def test_a_query_runs_once_beside_the_rows() -> None:
    store("a", "b")
    rows, results = Rows(), iter([["first"], ["second"]])
    a, b = (lock_key(WORKSPACE, what=name) for name in ("a", "b"))
    assert rows.read_beside([a], "query", lambda: next(results)) == ["first"]
    assert (a in rows, b in rows) == (True, False)
    assert rows.read_beside([b], "query", lambda: next(results)) == ["first"]
    assert b in rows
    assert rows.read_beside([], "another query", lambda: next(results)) == ["second"]


def test_a_query_that_fails_is_not_known() -> None:
    rows = Rows()
    with pytest.raises(ZeroDivisionError):
        rows.read_beside([], "query", lambda: 1 // 0)
    assert rows.read_beside([], "query", lambda: 1) == 1


def test_rows_of_several_tables_are_read_in_one_request() -> None:
    store("a")
    workspace = workspaces.row(
        WORKSPACE,
        name="W",
        slug="w",
        owner_id="o",
        plan="free",
        timezone="UTC",
        created_at=clock.now(),
    )
    workspace.save()
    lock, key = lock_key(WORKSPACE, what="a"), workspaces.key(WORKSPACE)
    with metering() as usage:
        found_rows = fetch([key, lock])
    assert [type(row) for row in found_rows] == [WorkspaceRow, LockRow]
    assert usage.calls == ["BatchGetItem"]


def test_rows_with_the_same_key_in_two_tables_are_distinct() -> None:
    place = ("W#w#PLACE", "-")
    ContentRow(*place).save()
    ControlRow(*place).save()
    rows = Rows()
    rows.read([Key(ContentRow, *place), Key(ControlRow, *place), Key(IdentityRow, *place)])
    assert rows.find(ContentRow, Key(ContentRow, *place)) is not None
    assert rows.find(ControlRow, Key(ControlRow, *place)) is not None
    assert rows.find(IdentityRow, Key(IdentityRow, *place)) is None

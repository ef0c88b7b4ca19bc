"""A signed-in user reads and changes only data of the session's workspace."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.operations import Operation
from tests.conftest import all_rows, call_console
from tests.contract.conftest import World
from tests.contract.test_access import drop_key_usage
from tests.factories.session_examples import (
    WorkspaceIds,
    caller_of,
    session_example,
    session_operations,
)
from tests.support.restoring import Snapshots

pytestmark = pytest.mark.usefixtures("telegram", "mail_enabled")


@pytest.fixture
def own_records(world: World, snapshots: Snapshots) -> WorkspaceIds:
    """One record of every type in the session's workspace."""
    ids: WorkspaceIds = snapshots.once(
        f"ids {world.workspace_id}",
        lambda: WorkspaceIds.collect(world.workspace_id, world.things),
    )
    return ids


@pytest.fixture
def foreign_records(restore: Callable[..., World], snapshots: Snapshots) -> WorkspaceIds:
    """One record of every type in another workspace."""
    other = restore("foreign_records")
    ids: WorkspaceIds = snapshots.once(
        f"ids {other.workspace_id}",
        lambda: WorkspaceIds.collect(other.workspace_id, other.things),
    )
    return ids


def call_as_owner(operation: Operation, ids: WorkspaceIds, arguments: dict[str, Any]) -> Any:
    """Call an operation in a console session of the workspace's owner."""
    return call_console(
        ids.workspace_id,
        operation.name,
        account_id=caller_of(operation, ids),
        key=None,
        **arguments,
    )


def failed_call(
    operation: Operation, ids: WorkspaceIds, arguments: dict[str, Any]
) -> tuple[Any, ...]:
    """Make a call that must fail. Return the status, code, message and details of the error.

    The only item of a batch fails instead of the call.
    """
    if "results" in operation.output.model_fields:
        (outcome,) = call_as_owner(operation, ids, arguments)["results"]
        return outcome["status"], outcome["code"], outcome["message"], outcome["key"]
    with pytest.raises(AppError) as caught:
        call_as_owner(operation, ids, arguments)
    error = caught.value
    return error.status, error.code, error.message, error.details


def for_each(operations: list[Operation]) -> Any:
    return pytest.mark.parametrize("operation", operations, ids=lambda o: o.name)


@for_each(session_operations())
def test_every_example_works_in_the_users_own_workspace(
    operation: Operation, own_records: WorkspaceIds
) -> None:
    assert isinstance(
        call_as_owner(operation, own_records, session_example(operation, own_records)), dict
    )


@for_each(session_operations(with_ids=True))
def test_ids_of_another_workspace_fail_like_unknown_ids(
    operation: Operation, own_records: WorkspaceIds, foreign_records: WorkspaceIds
) -> None:
    rows_before = drop_key_usage(all_rows())
    foreign = failed_call(operation, own_records, session_example(operation, foreign_records))
    unknown = failed_call(
        operation, own_records, session_example(operation, WorkspaceIds.unknown())
    )
    assert foreign == unknown
    assert foreign[:2] == (404, "not_found")
    assert drop_key_usage(all_rows()) == rows_before


@for_each(session_operations(with_ids=False))
def test_operations_without_ids_neither_return_nor_change_data_of_another_workspace(
    operation: Operation, own_records: WorkspaceIds, foreign_records: WorkspaceIds
) -> None:
    arguments = session_example(operation, own_records)
    if "workspace_id" in operation.input.model_fields:
        arguments["workspaceId"] = foreign_records.workspace_id
    rows_before = rows_of(foreign_records)
    result = json.dumps(call_as_owner(operation, own_records, arguments))
    assert not [record_id for record_id in foreign_records.ids if record_id in result]
    assert rows_of(foreign_records) == rows_before


def rows_of(ids: WorkspaceIds) -> dict[str, Any]:
    """Return the rows that contain the id of a workspace or of its owner's account."""
    owners = (ids.workspace_id, ids.account_id)
    return {
        n: row for n, row in all_rows().items() if any(owner_id in str(row) for owner_id in owners)
    }

"""Console sessions: a person never reaches data outside the session's workspace."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from tests.conftest import all_rows, in_console
from tests.contract.conftest import World
from tests.contract.test_access import without_key_usage
from tests.factories.session_examples import (
    SESSION_EXAMPLES,
    WorkspaceIds,
    session_example,
    session_operations,
)


@pytest.fixture
def own_records(world: World) -> WorkspaceIds:
    """One record of every type in the session's workspace."""
    return WorkspaceIds.in_workspace(world.workspace_id, world.things)


@pytest.fixture
def foreign_records(restore: Callable[..., World]) -> WorkspaceIds:
    """One record of every type in another workspace."""
    other = restore("foreign_records")
    return WorkspaceIds.in_workspace(other.workspace_id, other.things)


def call_as_owner(
    operation: Operation, own_records: WorkspaceIds, arguments: dict[str, Any]
) -> Any:
    """Call an operation as the owner of a workspace."""
    return in_console(
        own_records.workspace_id,
        operation.name,
        account_id=own_records.account_id,
        key=None,
        **arguments,
    )


def refusal(
    operation: Operation, own_records: WorkspaceIds, arguments: dict[str, Any]
) -> tuple[Any, ...]:
    """Make a call that must fail, and return the whole failure."""
    with pytest.raises(AppError) as caught:
        call_as_owner(operation, own_records, arguments)
    error = caught.value
    return error.status, error.code, error.message, error.details


def by_name(operations: list[Operation]) -> Any:
    return pytest.mark.parametrize("operation", operations, ids=lambda o: o.name)


def test_every_operation_for_the_console_has_an_example() -> None:
    names = {operation.name for operation in REGISTRY.of(Audience.SESSION)}
    shown = {operation.name for operation in REGISTRY if operation.example is not None}
    assert SESSION_EXAMPLES.keys() == names - shown


@by_name(session_operations())
def test_every_example_works_in_the_persons_own_workspace(
    operation: Operation, own_records: WorkspaceIds
) -> None:
    assert isinstance(
        call_as_owner(operation, own_records, session_example(operation, own_records)), dict
    )


@by_name(session_operations(naming=True))
def test_another_workspaces_ids_are_answered_like_unknown_ids(
    operation: Operation, own_records: WorkspaceIds, foreign_records: WorkspaceIds
) -> None:
    before = without_key_usage(all_rows())
    foreign = refusal(operation, own_records, session_example(operation, foreign_records))
    unknown = refusal(operation, own_records, session_example(operation, WorkspaceIds.unknown()))
    assert foreign == unknown
    assert foreign[:2] == (404, "not_found")
    assert without_key_usage(all_rows()) == before


@by_name(session_operations(naming=False))
def test_operations_without_an_id_show_and_change_nothing_of_another_workspace(
    operation: Operation, own_records: WorkspaceIds, foreign_records: WorkspaceIds
) -> None:
    arguments = session_example(operation, own_records)
    if "workspace_id" in operation.input.model_fields:
        arguments["workspaceId"] = foreign_records.workspace_id
    before = rows_of(foreign_records)
    said = json.dumps(call_as_owner(operation, own_records, arguments))
    assert not [thing for thing in foreign_records.ids if thing in said]
    assert rows_of(foreign_records) == before


def rows_of(own_records: WorkspaceIds) -> dict[str, Any]:
    """Return the rows of a workspace and of its owner's account."""
    whose = (own_records.workspace_id, own_records.account_id)
    return {n: row for n, row in all_rows().items() if any(each in str(row) for each in whose)}

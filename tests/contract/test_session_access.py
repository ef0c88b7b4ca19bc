"""A person in the console never gets past the workspace that they are in, whatever they send."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from tests.conftest import everything, in_console
from tests.contract.conftest import World
from tests.contract.test_access import but_for_use
from tests.factories.session_examples import (
    SESSION_EXAMPLES,
    Held,
    of_sessions,
    session_example,
)


@pytest.fixture
def held(world: World) -> Held:
    """One of everything in the workspace that the session is in."""
    return Held.in_workspace(world.workspace_id, world.things)


@pytest.fixture
def theirs(restore: Callable[..., World]) -> Held:
    """One of everything in another workspace."""
    other = restore("theirs")
    return Held.in_workspace(other.workspace_id, other.things)


def act(operation: Operation, held: Held, arguments: dict[str, Any]) -> Any:
    """Call an operation as the owner of a workspace."""
    return in_console(
        held.workspace_id, operation.name, account_id=held.account_id, key=None, **arguments
    )


def refusal(operation: Operation, held: Held, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Call what must fail; return all that the caller is told."""
    with pytest.raises(AppError) as caught:
        act(operation, held, arguments)
    error = caught.value
    return error.status, error.code, error.message, error.details


def by_name(operations: list[Operation]) -> Any:
    return pytest.mark.parametrize("operation", operations, ids=lambda o: o.name)


def test_every_operation_for_the_console_has_an_example() -> None:
    names = {operation.name for operation in REGISTRY.of(Audience.SESSION)}
    shown = {operation.name for operation in REGISTRY if operation.example is not None}
    assert SESSION_EXAMPLES.keys() == names - shown


@by_name(of_sessions())
def test_every_example_works_at_home(operation: Operation, held: Held) -> None:
    assert isinstance(act(operation, held, session_example(operation, held)), dict)


@by_name(of_sessions(naming=True))
def test_another_workspaces_ids_are_answered_like_ids_that_never_were(
    operation: Operation, held: Held, theirs: Held
) -> None:
    before = but_for_use(everything())
    foreign = refusal(operation, held, session_example(operation, theirs))
    unknown = refusal(operation, held, session_example(operation, Held.that_never_were()))
    assert foreign == unknown
    assert foreign[:2] == (404, "not_found")
    assert but_for_use(everything()) == before


@by_name(of_sessions(naming=False))
def test_what_names_nothing_shows_and_changes_nothing_of_another_workspace(
    operation: Operation, held: Held, theirs: Held
) -> None:
    arguments = session_example(operation, held)
    if "workspace_id" in operation.input.model_fields:
        arguments["workspaceId"] = theirs.workspace_id
    before = rows_of(theirs)
    said = json.dumps(act(operation, held, arguments))
    assert not [thing for thing in theirs.ids if thing in said]
    assert rows_of(theirs) == before


def rows_of(held: Held) -> dict[str, Any]:
    """Return the rows of a workspace, and of its owner's account."""
    whose = (held.workspace_id, held.account_id)
    return {n: row for n, row in everything().items() if any(each in str(row) for each in whose)}

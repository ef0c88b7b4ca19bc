"""Access to every tool with an OAuth token, by scope, plan and role, as with a key."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.plans import PLANS, PLANS_WITH_API
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.store import workspaces
from tests.conftest import Api, Time, call_operator
from tests.contract.conftest import World
from tests.factories.examples import example
from tests.factories.oauth import connect
from tests.support.effort import matrix
from tests.support.restoring import Snapshots

TOOLS = [operation for operation in REGISTRY.select(Audience.KEY) if operation.tool]
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def connected(
    restore: Callable[..., World],
    empty_database: Callable[[], None],
    snapshots: Snapshots,
    time: Time,
) -> Callable[..., tuple[Api, World]]:
    """Return a function that restores a world, whose API uses an access token."""

    def restored(role: str, *scopes: str) -> tuple[Api, World]:
        empty_database()
        world = restore("connected", role=role)

        def make() -> str:
            return connect(workspaces.get(world.workspace_id), scopes=list(scopes)).access

        name = f"access token {world.workspace_id} {' '.join(scopes)}"
        return Api(snapshots.once(name, make)), world

    return restored


def answers(restored: Callable[[], tuple[Api, World]]) -> Iterator[tuple[Operation, bool, Any]]:
    """Call every tool on a world with valid input. Destroyed records are restored in between."""
    api, world = restored()
    for operation in TOOLS:
        failed, answer = api.tool(str(operation.tool), **example(operation, world.things))
        yield operation, failed, answer
        if operation.destructive and not failed:
            api, world = restored()


@pytest.mark.parametrize("scope", [scope for scope in Scope if not scope.by_name])
def test_a_scope_of_a_token_admits_exactly_the_tools_that_require_it(
    scope: Scope, connected: Callable[..., tuple[Api, World]]
) -> None:
    role = "admin" if scope.admin_only else "user"
    for operation, failed, answer in answers(lambda: connected(role, scope)):
        assert failed is (operation.scope not in {None, scope}), (operation.name, answer)
        if failed:
            assert answer["data"]["code"] == "insufficient_scope"
            assert answer["data"]["scope"] == operation.scope
            is_blog = operation.scope is not None and operation.scope.admin_only
            is_asked = role == "admin" or not is_blog
            assert (f"/allow?scope={operation.scope}" in answer["data"]["message"]) is is_asked


@matrix("plan, role", PLANS, ["user", "admin"])
def test_plan_and_role_of_a_token_are_checked_as_those_of_a_key(
    plan: str, role: str, connected: Callable[..., tuple[Api, World]]
) -> None:
    def restored() -> tuple[Api, World]:
        api, world = connected(role, "*:read", "*:write")
        call_operator("set_plan", workspaceId=world.workspace_id, plan=plan)
        return api, world

    if plan not in PLANS_WITH_API:
        answer = restored()[0].call_refused("POST", "/api/mcp", MESSAGE)
        assert (answer.status, answer.data["code"]) == (403, "plan_required")
        return
    for operation, failed, answer in answers(restored):
        blocked = operation.scope is not None and operation.scope.admin_only and role == "user"
        assert failed is blocked, (operation.name, answer)

"""Access to every operation by scope, plan and role, and never across workspaces."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.plans import PLANS, PLANS_WITH_API
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from tests.conftest import Answer, Api, all_rows, call_operator
from tests.contract.conftest import World
from tests.factories.examples import Things, every_operation, example, send, uses_ids
from tests.support.effort import matrix


def answers(restored: Callable[[], World]) -> Iterator[tuple[Operation, Answer]]:
    """Call every operation on a world with valid input.

    Destroyed records are restored in between.
    """
    world = restored()
    for operation in REGISTRY.select(Audience.KEY):
        answer = send(world.api, operation, example(operation, world.things))
        yield operation, answer
        if operation.destructive and answer.status == 200:
            world = restored()


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_admits_exactly_the_operations_that_require_it(
    scope: Scope, restore: Callable[..., World], empty_database: Callable[[], None]
) -> None:
    def restored() -> World:
        empty_database()
        return restore(role="admin" if scope.admin_only else "user", scope=scope)

    for operation, answer in answers(restored):
        if operation.name == "arrange_absence" and scope is operation.scope:
            # An absence also makes time off.
            assert (answer.status, answer.data["scope"]) == (403, Scope.SERVICES_WRITE)
        elif operation.scope is scope and answer.status == 403:
            # Webhooks have events of other areas, which a key must be able to read, and an export
            # has records of all.
            assert scope.area in {"webhooks", "settings"}
            assert answer.data["code"] == "insufficient_scope"
            assert answer.data["scopes"]
            assert scope not in answer.data["scopes"]
        elif operation.name == "get_import" and answer.status == 403:
            # Each import needs the scope of what it imports, here that of clients.
            assert scope is not Scope.CRM_WRITE
        elif operation.scope in {None, scope}:
            assert answer.status == 200, (operation.name, answer.body)
        else:
            assert answer.status == 403, operation.name
            assert answer.data["code"] == "insufficient_scope"
            assert answer.data["scope"] == operation.scope
            assert operation.scope in answer.data["message"]


@matrix("plan, role", PLANS, ["user", "admin"])
def test_plan_and_role_are_checked_before_scopes(
    plan: str, role: str, restore: Callable[..., World], empty_database: Callable[[], None]
) -> None:
    def restored() -> World:
        empty_database()
        world = restore(role=role)
        call_operator("set_plan", workspaceId=world.workspace_id, plan=plan)
        return world

    for operation, answer in answers(restored):
        code = None if answer.status == 200 else (answer.status, answer.data["code"])
        if plan not in PLANS_WITH_API:
            assert code == (403, "plan_required"), operation.name
        elif operation.scope is not None and operation.scope.admin_only and role == "user":
            assert code == (403, "admin_required"), operation.name
        else:
            assert code is None, (operation.name, answer.body)


@every_operation
def test_calls_without_a_valid_key_are_401(operation: Operation, api: Api) -> None:
    token = str(api.token)
    for authorization in (None, "", "Bearer", "Bearer x", f"Basic {token}", token):
        headers = {} if authorization is None else {"Authorization": authorization}
        path = re.sub(r"{\w+}", "x", operation.path)
        answer = Api(None).call(operation.method, path, headers=headers)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized"), authorization
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert token not in answer.body.decode()


def mask_ids(answer: Answer, things: Things) -> str:
    """Return a response without the ids of the request and of records."""
    body = json.dumps(answer.data | {"requestId": ""}, sort_keys=True)
    for name, thing in vars(things).items():
        body = body.replace(thing, name)
    return body


def is_not_found(answer: Answer) -> bool:
    """Whether a response means "not found", as a whole or for each item."""
    outcomes = answer.data.get("results", [])
    return answer.status == 404 or {outcome["status"] for outcome in outcomes} == {404}


OF_WORKSPACES = [o for o in REGISTRY.select(Audience.KEY) if not o.platform]
"""Operations on records of a workspace. Every ADMIN account can read the platform's own records."""


@pytest.mark.parametrize(
    "operation", [o for o in OF_WORKSPACES if uses_ids(o)], ids=lambda o: o.name
)
def test_another_workspaces_ids_are_answered_like_unknown_ids(
    operation: Operation, world: World, restore: Callable[..., World]
) -> None:
    theirs, api = restore("theirs").things, world.api
    rows_before = all_rows()
    foreign = send(api, operation, example(operation, theirs))
    nobodys = Things.unknown()
    unknown = send(api, operation, example(operation, nobodys))
    assert is_not_found(foreign)
    assert foreign.status == unknown.status
    assert mask_ids(foreign, theirs) == mask_ids(unknown, nobodys)
    assert drop_key_usage(all_rows()) == drop_key_usage(rows_before)


@pytest.mark.parametrize(
    "operation",
    [o for o in OF_WORKSPACES if o.read_only and not uses_ids(o)],
    ids=lambda o: o.name,
)
def test_lists_show_nothing_of_another_workspace(
    operation: Operation, world: World, restore: Callable[..., World]
) -> None:
    theirs = restore("theirs").things
    seen = send(world.api, operation, {}).body.decode()
    assert not [thing for thing in vars(theirs).values() if thing in seen]


def test_only_admin_operations_are_outside_workspaces() -> None:
    for operation in REGISTRY.select(Audience.KEY):
        admin_only = operation.scope is not None and operation.scope.admin_only
        assert operation.platform == admin_only, operation.name


def drop_key_usage(rows: dict[str, Any]) -> str:
    """Leave out when and how often a key was used. Such counts are not changes of a workspace."""
    kept_rows = {
        key: {name: value for name, value in row.items() if name != "last_used_at"}
        for key, row in rows.items()
        if not key.startswith("control/LIMIT#")
    }
    return json.dumps(kept_rows, sort_keys=True, default=repr)

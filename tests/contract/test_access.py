"""Who may do what: every operation by scope, plan and role; and never across workspaces."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.scopes import PLANS, PLANS_WITH_API, Scope
from tests.conftest import ALL_SCOPES, Answer, Api, Owner, everything
from tests.factories.examples import Things, every_operation, example, names_things


def send(api: Api, operation: Operation, arguments: dict[str, Any]) -> Answer:
    """Call an operation over REST."""
    path = operation.path
    rest = dict(arguments)
    for name in operation.path_parameters:
        path = path.replace(f"{{{name}}}", rest.pop(name))
    if operation.reads_query:
        return api.call(operation.method, f"{path}?{urlencode(rest)}")
    return api.call(operation.method, path, rest)


@every_operation
def test_a_scope_admits_exactly_what_names_it(operation: Operation, owner: Owner) -> None:
    arguments = example(operation, Things.made_with(owner.api()))
    admitting = [scope for scope in Scope if operation.scope in {None, scope}]
    for scope in Scope:
        if scope not in admitting:
            answer = send(owner.api(scope), operation, arguments)
            assert answer.status == 403
            assert answer.data["code"] == "insufficient_scope"
            assert operation.scope in answer.data["message"]
    for scope in admitting:
        answer = send(owner.api(scope), operation, arguments)
        assert answer.status == 200, answer.body


@every_operation
@pytest.mark.parametrize("role", ["user", "admin"])
def test_plan_and_role_decide_before_scopes(
    operation: Operation, role: str, new_owner: Callable[..., Owner]
) -> None:
    from chalicelib.store import workspaces

    owner = new_owner("business", role)
    arguments = example(operation, Things.made_with(owner.api()))
    api = owner.api(*ALL_SCOPES)
    for plan in sorted(PLANS, key=PLANS_WITH_API.__contains__):
        workspaces.set_plan(owner.workspace.id, plan)
        answer = send(api, operation, arguments)
        if plan not in PLANS_WITH_API:
            assert (answer.status, answer.data["code"]) == (403, "plan_required")
        elif operation.scope is not None and operation.scope.admin_only and role == "user":
            assert (answer.status, answer.data["code"]) == (403, "admin_required")
        else:
            assert answer.status == 200, answer.body
            owner = new_owner("business", role)
            arguments = example(operation, Things.made_with(owner.api()))
            api = owner.api(*ALL_SCOPES)


@every_operation
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer x", "Basic {token}", "{token}"]
)
def test_without_a_valid_key_there_is_nothing_but_401(
    operation: Operation, authorization: str | None, owner: Owner
) -> None:
    token = owner.token()
    headers = {} if authorization is None else {"Authorization": authorization.format(token=token)}
    answer = Api(None).call(operation.method, operation.path.replace("{id}", "x"), headers=headers)
    assert (answer.status, answer.data["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert token not in answer.body.decode()


def without_ids(answer: Answer, things: Things) -> str:
    """Return what an answer says, whichever request and things it says it of."""
    said = json.dumps(answer.data | {"requestId": ""}, sort_keys=True)
    for name, thing in vars(things).items():
        said = said.replace(thing, name)
    return said


def is_not_found(answer: Answer) -> bool:
    """Whether nothing was found: in one piece, or item by item."""
    outcomes = answer.data.get("results", [])
    return answer.status == 404 or {outcome["status"] for outcome in outcomes} == {404}


@pytest.mark.parametrize(
    "operation", [o for o in REGISTRY if names_things(o)], ids=lambda o: o.name
)
def test_another_workspaces_ids_are_answered_like_ids_that_never_were(
    operation: Operation, new_owner: Callable[..., Owner]
) -> None:
    theirs = Things.made_with(new_owner().api())
    api = new_owner().api()
    Things.made_with(api)
    before = everything()
    foreign = send(api, operation, example(operation, theirs))
    nobodys = Things.that_never_were()
    unknown = send(api, operation, example(operation, nobodys))
    assert is_not_found(foreign)
    assert foreign.status == unknown.status
    assert without_ids(foreign, theirs) == without_ids(unknown, nobodys)
    assert _but_for_use(everything()) == _but_for_use(before)


@pytest.mark.parametrize(
    "operation", [o for o in REGISTRY if o.read_only and not names_things(o)], ids=lambda o: o.name
)
def test_reads_without_an_id_show_nothing_of_another_workspace(
    operation: Operation, new_owner: Callable[..., Owner]
) -> None:
    theirs = Things.made_with(new_owner().api())
    seen = send(new_owner().api(), operation, {}).body.decode()
    assert not [thing for thing in vars(theirs).values() if thing in seen]


def _but_for_use(rows: dict[str, Any]) -> str:
    """Leave out that the key was used, and how often: that is no change of a workspace."""
    kept = {
        key: {name: value for name, value in row.items() if name != "last_used_at"}
        for key, row in rows.items()
        if not key.startswith("control/LIMIT#")
    }
    return json.dumps(kept, sort_keys=True, default=repr)

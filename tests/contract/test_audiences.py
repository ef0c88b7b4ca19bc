"""Audiences: an operation accepts its own kind of caller and refuses every other kind."""

from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.application.invoke import authorize, invoke
from chalicelib.core.errors import ForbiddenError
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import (
    ApiKeyPrincipal,
    Audience,
    OperatorPrincipal,
    Principal,
    SessionPrincipal,
    VisitorPrincipal,
)
from chalicelib.core.scopes import Scope
from chalicelib.transports import tools
from chalicelib.transports.api_docs import openapi

CALLERS: dict[Audience, Principal] = {
    Audience.KEY: ApiKeyPrincipal(
        key_id="k", workspace_id="w", plan="enterprise", role="admin", scopes=frozenset(Scope)
    ),
    Audience.SESSION: SessionPrincipal(account_id="a", workspace_id="w", membership="owner"),
    Audience.PUBLIC: VisitorPrincipal(visitor="v"),
    Audience.OPERATOR: OperatorPrincipal(),
}
OTHERS = [
    pytest.param(operation, caller, id=f"{operation.name}-{audience}")
    for operation in REGISTRY
    for audience, caller in CALLERS.items()
    if audience not in operation.audience
]
NOT_FOR_KEYS = [
    operation for operation in REGISTRY if not operation.audience & {Audience.KEY, Audience.PUBLIC}
]


def test_every_audience_has_a_caller_in_these_tests() -> None:
    assert set(CALLERS) == set(Audience)
    assert all(caller.audience is audience for audience, caller in CALLERS.items())


@pytest.mark.parametrize(("operation", "caller"), OTHERS)
def test_a_caller_of_another_audience_is_refused_before_the_input_is_read(
    operation: Operation, caller: Principal
) -> None:
    def read() -> Mapping[str, Any]:
        raise AssertionError("the input was read")

    with pytest.raises(ForbiddenError):
        invoke(operation, caller, read, request_id="r")


@pytest.mark.parametrize("operation", NOT_FOR_KEYS, ids=lambda operation: operation.name)
def test_operations_that_are_not_for_keys_have_no_route_tool_or_reference_entry(
    operation: Operation,
) -> None:
    assert (operation.path, operation.tool, operation.scope) == ("", None, None)
    assert operation.tool not in tools.by_name()
    assert operation.name not in str(openapi.document()["paths"])


def test_some_operations_are_closed_to_keys() -> None:
    assert {operation.name for operation in NOT_FOR_KEYS} >= {"create_key", "create_account"}


CHANGES = [o for o in REGISTRY.of(Audience.SESSION) if not (o.read_only or o.platform)]


@pytest.mark.parametrize("operation", CHANGES, ids=lambda operation: operation.name)
@pytest.mark.parametrize("membership", ["member", ""])
def test_a_person_who_does_not_manage_a_workspace_cannot_change_it(
    operation: Operation, membership: str
) -> None:
    caller = SessionPrincipal(account_id="a", workspace_id="w", membership=membership)
    with pytest.raises(ForbiddenError, match="may look, not change"):
        invoke(operation, caller, dict, request_id="r")


def test_members_may_read() -> None:
    caller = SessionPrincipal(account_id="a", workspace_id="w", membership="member")
    for operation in REGISTRY.of(Audience.SESSION):
        if operation.read_only:
            authorize(operation, caller)

"""An operation accepts its own kind of caller and refuses every other kind."""

from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.application.invoke import authorize, invoke
from chalicelib.core.errors import AdminRequiredError, ForbiddenError
from chalicelib.core.operations import REGISTRY, Declaration, Operation, Registry
from chalicelib.core.principals import (
    ApiKeyPrincipal,
    Audience,
    OperatorPrincipal,
    Principal,
    Role,
    SessionPrincipal,
    VisitorPrincipal,
)
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import NoInput
from chalicelib.transports import tools
from tests.contract.conftest import WHOLE
from tests.support.sweep import sweep

PATHS = str(WHOLE["paths"])

CALLERS: dict[Audience, Principal] = {
    Audience.KEY: ApiKeyPrincipal(
        key_id="k", workspace_id="w", plan="enterprise", role="admin", scopes=frozenset(Scope)
    ),
    Audience.SESSION: SessionPrincipal(account_id="a", workspace_id="w", membership=Role.OWNER),
    Audience.PUBLIC: VisitorPrincipal(visitor="v"),
    Audience.OPERATOR: OperatorPrincipal(),
}
OTHERS = [
    (operation, caller)
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


@sweep(("operation", "caller"), OTHERS)
def test_a_caller_of_another_audience_is_refused_before_the_input_is_read(
    operation: Operation, caller: Principal
) -> None:
    def read() -> Mapping[str, Any]:
        raise AssertionError("the input was read")

    with pytest.raises(ForbiddenError):
        invoke(operation, caller, read, request_id="r")


@sweep("operation", NOT_FOR_KEYS)
def test_operations_that_are_not_for_keys_have_no_route_tool_or_reference_entry(
    operation: Operation,
) -> None:
    assert (operation.path, operation.tool, operation.scope) == ("", None, None)
    assert operation.tool not in tools.entries_by_tool()
    assert operation.name not in PATHS


def test_some_operations_are_closed_to_keys() -> None:
    assert {operation.name for operation in NOT_FOR_KEYS} >= {"create_key", "create_account"}


ROLES = [(operation, role) for operation in REGISTRY.select(Audience.SESSION) for role in Role]


@sweep(("operation", "role"), ROLES)
def test_a_person_may_call_exactly_the_operations_of_their_role_and_of_lower_ones(
    operation: Operation, role: Role
) -> None:
    caller = SessionPrincipal(account_id="a", workspace_id="w", membership=role, role="admin")
    min_role = list(Role).index(operation.role) if operation.role else -1
    has_part = role is Role.STAFF and operation.own is not None
    if has_part or list(Role).index(role) >= min_role:
        authorize(operation, caller)
        return
    with pytest.raises(ForbiddenError):
        invoke(operation, caller, dict, request_id="r")


def test_operations_for_admin_accounts_refuse_the_sessions_of_others() -> None:
    caller = SessionPrincipal(account_id="a", workspace_id="w", membership=Role.OWNER)
    for operation in REGISTRY.select(Audience.SESSION):
        if operation.scope and operation.scope.admin_only:
            with pytest.raises(AdminRequiredError):
                authorize(operation, caller)


def test_each_operation_for_sessions_declares_a_role_and_no_other_does() -> None:
    for operation in REGISTRY:
        assert (operation.role is not None) is (Audience.SESSION in operation.audience)


@pytest.mark.parametrize(
    ("scope", "role", "audience"),
    [
        ("GET /api/things", None, {Audience.KEY}),
        ("GET /api/things", Role.MEMBER, {Audience.KEY, Audience.SESSION}),
        (None, Role.MEMBER, {Audience.SESSION}),
    ],
)
def test_a_route_is_for_keys_and_a_role_for_sessions(
    scope: str | None, role: Role | None, audience: set[Audience]
) -> None:
    def get_thing(ctx: Any, args: NoInput) -> NoInput:
        """Do nothing at all, for the callers that the declaration implies."""
        return args

    registry = Registry()
    Declaration(rest=scope, role=role, registry=registry)(get_thing)
    assert registry["get_thing"].audience == audience


def test_a_declaration_without_any_caller_is_refused() -> None:
    def get_thing(ctx: Any, args: NoInput) -> NoInput:
        """Do nothing at all, in a declaration that must fail."""
        return args

    with pytest.raises(TypeError, match="declare role="):
        Declaration(registry=Registry())(get_thing)


@pytest.mark.parametrize("role", [None, Role.MEMBER])
def test_a_declaration_whose_role_and_audience_disagree_is_refused(role: Role | None) -> None:
    def handler(ctx: Any, args: NoInput) -> NoInput:
        """Do nothing at all, in a declaration that must fail."""
        return args

    audience = (Audience.SESSION,) if role is None else (Audience.KEY,)
    declare = Declaration(title="Nothing", audience=audience, role=role, registry=Registry())
    with pytest.raises(TypeError, match="declare role="):
        declare(handler)


LEAST: dict[Role, set[str]] = {
    Role.OWNER: {"get_balance", "get_statement"},
    Role.MANAGER: {
        "get_bot_limits",
        "set_bot_limits",
        "create_key",
        "list_keys",
        "list_audit_log",
        "create_webhook",
        "list_sites",
        "update_agent",
        "grant_access",
    },
    Role.MEMBER: {
        "update_lead",
        "set_lead_status",
        "update_client",
        "create_booking",
        "reschedule_booking",
        "set_booking_status",
        "list_dialogs",
    },
}
"""Operations whose role must not change by accident."""


@pytest.mark.parametrize("role", LEAST)
def test_money_is_for_owners_access_for_managers_and_daily_work_for_members(role: Role) -> None:
    assert {REGISTRY[name].role for name in LEAST[role]} == {role}


def test_only_an_invitation_and_a_new_workspace_are_outside_of_a_sessions_own() -> None:
    free = {
        operation.name
        for operation in REGISTRY
        if operation.role is Role.ACCOUNT and operation.resolve
    }
    assert free == {"accept_invitation", "create_test_workspace"}

"""Visitors, keys and bots get nothing of a workspace that is suspended or closed."""

from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.domains.chat.flows import accept_message
from chalicelib.domains.chat.flows.chat_request import Caller, ChatRequest
from tests.conftest import Owner, call_operator
from tests.factories.examples import Things
from tests.factories.session_examples import WorkspaceIds, session_example

load_all()
VISITOR = VisitorPrincipal(visitor="one-visitor", network="one-network")
WHILE_HALTED = {
    # The client ends a booking, and sees what became of it.
    *("cancel_public_booking", "get_booking_calendar", "get_managed_booking"),
    "leave_waiting_list",
    # Money that has moved is recorded.
    *("get_merchant_payment", "receive_payment_hook", "settle_merchant_payment"),
    # A connection is checked at each call.
    *("exchange_code", "refresh_tokens", "revoke_token"),
}
OF_WORKSPACES = [
    operation
    for operation in REGISTRY.select(Audience.PUBLIC)
    if operation.resolve is not None and operation.name != "sign_up"
]


@pytest.fixture
def ids(owner: Owner, things: Things) -> WorkspaceIds:
    return WorkspaceIds.collect(owner.workspace.id, things)


def call(operation: Operation, arguments: Any) -> None:
    invoke(operation, VISITOR, lambda: arguments, request_id=new_id())


def key_of(operation: Operation, arguments: Any) -> str | None:
    """Return the key of the error of a call, or None without one."""
    try:
        call(operation, arguments)
    except AppError as error:
        return error.key
    return None


def test_few_operations_serve_visitors_of_a_halted_workspace() -> None:
    found = {operation.name for operation in OF_WORKSPACES if operation.while_halted}
    assert found == WHILE_HALTED
    assert not any(operation.platform for operation in OF_WORKSPACES)


@pytest.mark.parametrize("operation", OF_WORKSPACES, ids=lambda operation: operation.name)
def test_visitors_find_nothing_until_the_suspension_is_lifted(
    operation: Operation, owner: Owner, ids: WorkspaceIds
) -> None:
    arguments = session_example(operation, ids)
    call_operator("suspend_workspace", workspaceId=owner.workspace.id)
    if not operation.while_halted:
        with pytest.raises(NotFoundError):
            call(operation, arguments)
        call_operator("suspend_workspace", workspaceId=owner.workspace.id, lift=True)
    # The tokens of some examples are of no booking, and others work once.
    assert key_of(operation, arguments) != "workspace"


def test_keys_and_bots_do_not_work_until_the_suspension_is_lifted(
    owner: Owner, things: Things
) -> None:
    api, home = owner.api(), owner.workspace.id
    assert api.call("GET", "/api/products/list").status == 200
    call_operator("suspend_workspace", workspaceId=home)
    refused = api.call("GET", "/api/products/list")
    assert refused.status == 403
    assert refused.data["key"] == "workspace_suspended"
    message = ChatRequest(agent_id=things.agent, message="Hi")
    caller = Caller(VISITOR.visitor, new_id(), network=VISITOR.network)
    with pytest.raises(NotFoundError):
        accept_message.accept_message(message, caller)
    call_operator("set_plan", workspaceId=home, plan="enterprise")
    assert api.call("GET", "/api/products/list").status == 403
    call_operator("suspend_workspace", workspaceId=home, lift=True)
    assert api.call("GET", "/api/products/list").status == 200

"""One visitor uses only a share of what all visitors use together.

A visitor without a proof of work gets a share, never the whole limit. The limits are found by
calling what visitors call. A limit that is counted without the visitor is shared.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import REGISTRY
from chalicelib.core.plans import LEADS_A_MONTH, PLANS
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.core.settings import settings
from chalicelib.domains.chat.flows import accept_message
from chalicelib.domains.chat.flows.chat_request import Caller, ChatRequest
from chalicelib.domains.leads.flows import lead_quota
from chalicelib.engine import limits
from tests.conftest import Owner
from tests.contract.test_events import OTHER_EXAMPLES
from tests.factories.examples import Things, fill
from tests.factories.session_examples import WorkspaceIds

DAY = timedelta(days=1)
"""A visitor is known for a day."""
OF_ONE_ACCOUNT = {"second-factor", "sign-in-failures"}
"""Limits for the address of one account, which visitors do not share."""
VISITOR = VisitorPrincipal(visitor="one-visitor", network="one-network")


@pytest.fixture
def shared_limits(
    owner: Owner, things: Things, monkeypatch: pytest.MonkeyPatch
) -> dict[str, tuple[str, Limit]]:
    """Limits that visitors' calls count without the visitor, by name, each with the call."""
    limits_by_call: dict[str, tuple[str, Limit]] = {}
    count, called = limits._Window.current, [""]

    def current(limit: Limit, subject: str) -> Any:
        if called[0] and VISITOR.visitor not in subject:
            limits_by_call[limit.name] = (called[0], limit)
        return count(limit, subject)

    monkeypatch.setattr(limits._Window, "current", current)
    ids = WorkspaceIds.collect(owner.workspace.id, things)
    for operation in REGISTRY.select(Audience.PUBLIC):
        example = OTHER_EXAMPLES.get(operation.name)
        try:
            arguments = (
                example(ids) if example else fill(operation.example or {}, things.placeholders)
            )
        except AppError:
            continue
        called[0] = operation.name
        with suppress(AppError):
            invoke(operation, VISITOR, lambda arguments=arguments: arguments, request_id=new_id())
        called[0] = ""
    monkeypatch.setattr(
        accept_message, "settings", lambda: replace(settings(), edge_secret="secret")
    )
    called[0] = "chat_stream"
    message = ChatRequest(agent_id=things.agent, message="Hi, I am at ada@example.com")
    accept_message.accept_message(message, Caller(VISITOR.visitor, new_id()))
    called[0] = ""
    return limits_by_call


def test_a_visitor_has_less_than_visitors_share(
    shared_limits: dict[str, tuple[str, Limit]],
) -> None:
    assert shared_limits.keys() >= {"unverified", "unproved-network", "form-day", "leads"}
    unshared = {name: call for name, (call, limit) in shared_limits.items() if limit.share is None}
    assert unshared.keys() == OF_ONE_ACCOUNT
    for name, (call, limit) in shared_limits.items():
        if limit.share is not None:
            window = min(limit.window, DAY)
            share = limit.share.max_requests * max(1, window / limit.share.window)
            assert share < limit.max_requests, (call, name)
            assert limit.share.name not in shared_limits, (call, name)


@pytest.mark.parametrize("plan", PLANS)
def test_a_visitor_cannot_use_up_the_leads_of_a_plan(plan: str, owner: Owner) -> None:
    owner.workspace.plan = plan
    assert 0 < lead_quota.share(owner.workspace).max_requests * 2 < LEADS_A_MONTH[plan]

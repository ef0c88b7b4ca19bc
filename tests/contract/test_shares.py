"""One visitor uses only a share of what all visitors use together, and one network only some.

A visitor without a proof of work gets a share, never the whole limit. The limits are found by
calling what visitors call. A limit that is counted without the visitor is shared.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.plans import LEADS_A_MONTH, PLANS
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.core.settings import settings
from chalicelib.domains.assistants.flows.visits import DIRECTORY_TOOLS, TOOLS
from chalicelib.domains.billing.rules import spending_windows
from chalicelib.domains.booking_page.flows import visitor_shares
from chalicelib.domains.chat.flows import accept_message
from chalicelib.domains.chat.flows.chat_request import Caller, ChatRequest
from chalicelib.domains.leads.flows import lead_quota
from chalicelib.domains.mails.rules import mail_budgets
from chalicelib.engine import limits
from tests.conftest import Owner
from tests.factories.booking_links import requested
from tests.factories.examples import Things
from tests.factories.recipes import NoRecipeError
from tests.factories.session_examples import WorkspaceIds, booking_page_request, session_example

DAY = timedelta(days=1)
"""A visitor is known for a day."""
OF_ONE_ACCOUNT = {"second-factor", "sign-up-accounts"}
"""Limits of one account or of a mailbox that was proved, which visitors do not share."""
OF_MAILS = {"business-mails", "business-mails-own", "client-mails", "workspace-client-mails"}
"""Limits of an address and of a plan, in which visitors' e-mails have the parts that follow."""
VISITOR = VisitorPrincipal(visitor="one-visitor", network="one-network")
NOT_OF_VISITORS = {
    *("heavy", "key-calls", "barcode-reads", "barcode-share", "knowledge-fetches", "lead-exports"),
    *("photo-searches", "photo-searches-daily", "photo-share"),
    *("password-change", "invitations", "password-reset-mails"),
    *("payment-links", "top-ups", "secret-checks", "test-workspaces"),
    *("client-exports", "client-files", "new-workspaces", "sign-up-mails"),
    "webhook-challenges",
    *("telegram-codes", "telegram-wrong-codes"),
    *("account-mails", "confirmed-mails", "reminder-mails", "advertising-mails"),
    *("workspace-advertising-share", "sms-number", "sms-unproved"),
}
"""Limits of keys, members, workspaces and addresses, which visitors do not count."""
EVE = {"name": "Eve", "email": "eve@example.com"}
THREAT_MODEL = Path(__file__).parents[2] / "docs" / "threat-model.md"


@dataclass
class Counted:
    """The limits that visitors' calls have counted, each with the call, by name."""

    of_visitors: dict[str, tuple[str, Limit]] = field(default_factory=dict)
    of_networks: dict[str, tuple[str, Limit]] = field(default_factory=dict)
    shared: dict[str, tuple[str, Limit]] = field(default_factory=dict)
    unpaired: set[tuple[str, str]] = field(default_factory=set)
    """Calls that count a visitor under a limit without counting its network, with the limit."""


@pytest.fixture
def counted(owner: Owner, things: Things, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """The limits that are counted by one call of everything that visitors call."""
    found, of_call = Counted(), list[tuple[Limit, str]]()
    count = limits._Window.current

    def current(limit: Limit, subject: str) -> Any:
        of_call.append((limit, subject))
        return count(limit, subject)

    monkeypatch.setattr(limits._Window, "current", current)

    def note(call: str) -> None:
        visitors, networks = {}, {}
        for limit, subject in of_call:
            kinds = {VISITOR.visitor: visitors, VISITOR.network: networks}
            (kind,) = [kinds[who] for who in kinds if who in subject] or [found.shared]
            kind[limit.name] = (call, limit)
        found.of_visitors = visitors | found.of_visitors
        found.of_networks = networks | found.of_networks
        names = {name + limits.NETWORK_SUFFIX: name for name in visitors}
        found.unpaired |= {(call, names[name]) for name in names.keys() - networks.keys()}

    ids = WorkspaceIds.collect(owner.workspace.id, things)

    def call(operation: Operation) -> None:
        try:
            arguments = session_example(operation, ids)
        except (AppError, NoRecipeError):  # What visitors' assistants call has no example.
            arguments = {}
        of_call.clear()
        with suppress(AppError):
            invoke(operation, VISITOR, lambda: arguments, request_id=new_id())
        note(operation.name)

    for operation in [*REGISTRY.select(Audience.PUBLIC), *TOOLS, *DIRECTORY_TOOLS]:
        call(operation)
    request = {**booking_page_request(ids), "client": EVE}
    of_call.clear()
    requested(owner.workspace.id, request, VISITOR)
    note("a booking by a link")
    monkeypatch.setattr(
        accept_message, "settings", lambda: replace(settings(), edge_secret="secret")
    )
    of_call.clear()
    message = ChatRequest(agent_id=things.agent, message="Hi, I am at ada@example.com")
    caller = Caller(VISITOR.visitor, new_id(), network=VISITOR.network)
    accept_message.accept_message(message, caller)
    note("chat_stream")
    return found


def declared_limits() -> Iterator[Limit]:
    """Yield the limits that modules declare."""
    load_all()
    for name, module in list(sys.modules.items()):
        if name.startswith("chalicelib."):
            for value in vars(module).values():
                several = list(value.values()) if isinstance(value, dict) else value
                values = several if isinstance(several, list | tuple) else [value]
                yield from (each for each in values if isinstance(each, Limit))


def test_a_visitor_has_less_than_visitors_share(counted: Counted) -> None:
    assert counted.shared.keys() >= {"unverified", "form-day", "leads", "sign-in-failures"}
    for name, (call, limit) in counted.shared.items():
        if name in OF_ONE_ACCOUNT | OF_MAILS:
            continue
        assert limit.share is not None, (call, name)
        window = min(limit.window, DAY)
        share = limit.share.max_requests * max(1, window / limit.share.window)
        assert share < limit.max_requests, (call, name)
        assert limit.share.name not in counted.shared, (call, name)


def test_each_share_of_a_visitor_has_one_of_its_network(counted: Counted) -> None:
    assert counted.unpaired == set()
    for name, (call, limit) in counted.of_visitors.items():
        _, network = counted.of_networks[name + limits.NETWORK_SUFFIX]
        assert network.max_requests >= limit.max_requests, (call, name)


def test_every_declared_limit_is_of_visitors_or_known_as_of_others(counted: Counted) -> None:
    found = {*counted.of_visitors, *counted.shared}
    unknown = {limit.name for limit in declared_limits()} - found
    assert unknown == NOT_OF_VISITORS


def test_the_threat_model_names_each_share_with_its_parts(counted: Counted) -> None:
    def number(limit: Limit) -> str:
        return f"{limit.max_requests:,}"

    shared, rows = dict[str, Limit](), set()
    # Jobs send the other e-mails that visitors cause.
    _, *of_visitors = mail_budgets.workspace_limits("business", "stranger")
    for limit in [*of_visitors, *(limit for _, limit in counted.shared.values())]:
        if limit.share is not None:
            shared[limit.share.name] = limit
    own = {limit.share.name: limit.share for limit in shared.values() if limit.share is not None}
    own |= {name: limit for name, (_, limit) in counted.of_visitors.items()}
    for name, limit in own.items():
        whole = shared.get(name)
        (_, _), (network, _) = limits.visitor_limits(limit, ("", ""), whole)
        all_visitors = f"{number(whole)} {whole.what}" if whole else "no limit"
        rows.add((limit.what, number(limit), number(network), all_visitors))
    for what, most in (
        ("upcoming bookings for one contact in a workspace", visitor_shares.MAX_UPCOMING),
        ("unpaid bookings in a workspace", visitor_shares.MAX_HOLDS),
    ):
        rows.add((what, f"{most}", f"{most * limits.NETWORK_SHARES}", "no limit"))
    parts = [f"1/{part}" for part in spending_windows.SHARES.values()]
    rows.add(("kopecks of a bot's lowest limit per day", *parts, "the limit"))
    _, _, section = THREAT_MODEL.read_text().partition("## Shares of visitors")
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    expected = "\n".join(f"| {' | '.join(row)} |" for row in sorted(rows))
    assert sorted(table[1:]) == sorted(rows), f"The table has to be:\n{expected}"


@pytest.mark.parametrize("plan", PLANS)
def test_a_visitor_cannot_use_up_the_leads_of_a_plan(plan: str, owner: Owner) -> None:
    owner.workspace.plan = plan
    assert 0 < lead_quota.share(owner.workspace).max_requests * 2 < LEADS_A_MONTH[plan]

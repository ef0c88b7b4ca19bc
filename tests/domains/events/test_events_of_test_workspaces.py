"""Whatever happens in a test workspace, none of its messages leaves."""

from dataclasses import replace

import pytest

from chalicelib.core.events import EVENT_TYPES, MESSAGE_KINDS
from chalicelib.gateways.post import PostReply
from tests.conftest import Owner, call_console, call_operator
from tests.domains.notifications.helpers import link
from tests.domains.notifications.inbox import Inbox, choose
from tests.factories.event_runs import run_until_idle
from tests.factories.event_triggers import TRIGGERS, World
from tests.factories.examples import Things
from tests.fakes.receiver import Request, status
from tests.fakes.telegram import FakeTelegram

pytestmark = pytest.mark.usefixtures("database")
# A test workspace spends nothing. Its payments are not files (``payments/test_merchant_of_tests``).
OF_MONEY = {
    *("balance.low", "balance.returned", "bot.limit_half", "bot.limit_reached", "payment.refused"),
    *("booking.disputed", "booking.paid", "booking.refund_done", "booking.refund_failed"),
}
TOLD = {declared.type for declared in MESSAGE_KINDS.values()}
OF_CLIENTS = {name for name in EVENT_TYPES if name.startswith("booking.")}
TYPES = sorted((TOLD | OF_CLIENTS) - OF_MONEY)


def answer_challenge(request: Request) -> PostReply:
    challenge = request.event["data"].get("challenge", "")
    return status(200, challenge.encode())


@pytest.fixture
def world_of_tests(world: World, tester: Owner, inbox: Inbox, telegram: FakeTelegram) -> World:
    """A test workspace with one record of every type, whose owner wants all messages twice."""
    world.receiver.answer = answer_challenge
    api = tester.api()
    things = Things.made_with(api)
    call_operator("delete_webhook", id=things.webhook)
    run_until_idle()
    link(tester, 7)
    everything = {kind: ["mail", "telegram"] for kind in MESSAGE_KINDS}
    choose(tester, tester.workspace.owner_id, "owner", **everything)
    telegram.sent_messages.clear()
    inbox.clear()
    return replace(world, owner=tester, api=api, things=things)


@pytest.mark.parametrize("name", TYPES)
def test_no_message_about_an_event_leaves(
    name: str, world_of_tests: World, inbox: Inbox, telegram: FakeTelegram
) -> None:
    TRIGGERS[name](world_of_tests)
    run_until_idle()
    assert (inbox.mails, telegram.texts) == ([], [])
    if name in TOLD:
        messages = call_console(world_of_tests.workspace_id, "list_outbox")["messages"]
        assert {message["channel"] for message in messages} == {"mail", "telegram"}

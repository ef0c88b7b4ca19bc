"""A tool for assistants costs little more than the tool with which a bot does the same."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.flows import chat_tools
from chalicelib.domains.chat.flows.tool_calls import ToolContext
from chalicelib.domains.chat.store.proposals import OfferedSlot
from chalicelib.domains.knowledge.flows import search
from chalicelib.transports.assistants import TOOLS
from infra.bench.dynamodb.usage import DatabaseUsage, metering
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import NOON, BookingPage
from tests.transports.public.booking_page.test_assistants_orders import FIELDS

LOOK_UP = ["GetItem", "UpdateItem", "BatchGetItem", "UpdateItem"]
"""What every call costs: the page's address, the visitor's limit, the switches, the owner's count.

A bot looks up itself, the visitor and the dialog once for all tool calls.
"""
LOOK_UP_UNITS = 2
LOOK_UP_WAVES = 2
"""The address and the limit, then the switches."""
FACTOR = 1.2
BOT = {"name": "Bot", "systemPrompt": "Help.", "model": "demo"}
GRACE = {"name": "Grace", "email": "grace@example.com"}


def measured(call: Callable[[], object], latency: float) -> DatabaseUsage:
    """Return what a call costs in a process that has answered it before."""
    for _ in range(2):
        # A proposal is refused after all of its requests: the dialog of the test has no messages.
        with metering(latency) as usage, suppress(AppError):
            call()
    return usage


@pytest.mark.store
def test_a_tool_costs_at_most_a_fifth_more_than_the_tool_of_a_bot(
    page: BookingPage, *, is_dynamodb_local: bool
) -> None:
    api, workspace = page.salon.api, page.owner.workspace
    form = api.post("/api/forms/create", {"title": "Order", "fields": FIELDS})["form"]["id"]
    product = api.post("/api/products/create", {"name": "Shampoo", "price": 1})["product"]["id"]
    bot_id = api.post("/api/agents/create", BOT)["agent"]["id"]
    bot = AGENTS.require(workspace.id, record_id=bot_id)
    bot.order_form_id = form
    assistant = Assistant.admitted(page, orderFormId=form, knowledgeBotId=bot_id)
    service = page.salon.service

    def run(name: str, /, **arguments: Any) -> Callable[[], object]:
        """Return a call of a bot's tool."""
        (tool,) = (tool for tool in chat_tools.TOOLS if tool.name == name)
        start = clock.epoch_ms(datetime.fromisoformat(NOON))
        offer = OfferedSlot("1", service, page.salon.resource, start, "", "", "")

        def call() -> object:
            context = ToolContext(workspace=workspace, agent=bot, dialog_id="1", number=2)
            context.offered_slots, context.contacts = (offer,), [GRACE["email"]]
            return tool.run(context, tool.arguments.model_validate(arguments))

        return call

    def ask_knowledge() -> None:
        AGENTS.find(workspace.id, record_id=bot_id)
        search.find(workspace.id, bot_id=bot_id, question="shampoo", limit=5)

    find_products = run("find_products", query="shampoo")
    pairs: dict[str, tuple[dict[str, Any], Callable[[], object]]] = {
        "get_business": ({}, run("opening_hours")),
        "list_services": ({}, run("find_services", query="haircut")),
        "find_free_times": ({"serviceId": service}, run("find_free_times", service="haircut")),
        "prepare_booking": (
            {"serviceId": service, "startAt": NOON},
            run("propose_booking", slotId="1", **GRACE),
        ),
        "search_catalog": ({"catalog": {"query": "shampoo"}}, find_products),
        "lookup_catalog": ({"catalog": {"ids": [product]}}, find_products),
        "get_product": ({"catalog": {"id": product}}, find_products),
        "prepare_order": (
            {"items": [{"productId": product}]},
            run("propose_order", items=[{"product": "shampoo"}], **GRACE),
        ),
        "search_pages": ({"query": "shampoo"}, ask_knowledge),
    }
    assert pairs.keys() == {tool.name for tool in TOOLS}
    latency = 0 if is_dynamodb_local else 0.05
    for name, (arguments, ask_bot) in pairs.items():
        ours = measured(lambda: assistant.call(name, **arguments), latency)  # noqa: B023  called here
        theirs = measured(ask_bot, latency)
        if is_dynamodb_local:  # Only its capacity units are real.
            assert ours.reads - LOOK_UP_UNITS <= FACTOR * theirs.reads, name
            continue
        requests = ours.round_trips - len(LOOK_UP)
        assert requests <= FACTOR * theirs.round_trips, (name, ours.calls, theirs.calls)
        assert ours.waves - LOOK_UP_WAVES <= theirs.waves, (name, ours.requests)

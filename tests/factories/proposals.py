"""Proposals of a scripted model to a visitor, and the visitor's decisions on them."""

import json
from typing import Any

from chalicelib.gateways.llm import ProviderUsage
from chalicelib.gateways.llm.messages import ToolCall
from tests.conftest import Answer, Api
from tests.factories.chat import Bot, ChatReply, ask
from tests.transports.chat.endpoint.conftest import Script

END = ProviderUsage(10, 5)
ASKED = "I am Ada Lovelace, +7 495 123-45-67. Book me a haircut on Friday at ten."
FEATURES = ["actions"]


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("1", name, json.dumps(arguments))


FIND = call("find_free_times", service="haircut", firstDay="2026-11-27", lastDay="2026-11-27")


def book(**person: str) -> ToolCall:
    return call("propose_booking", slotId="1", **person)


ADA = {"name": "Ada Lovelace", "phone": "84951234567"}


def proposed(script: Script, bot: Bot, *calls: ToolCall, question: str = ASKED) -> ChatReply:
    """Have a model call tools, and return the reply with the last card."""
    script(*[step for call in calls for step in (call, END)], "Please confirm.", END)
    return ask(bot, question, features=FEATURES)


def card(reply: ChatReply) -> dict[str, Any]:
    (event,) = [event for event in reply.events if event["type"] == "action"]
    return event


def decide(api: Api, reply: ChatReply, decision: str = "confirm", **more: Any) -> Any:
    return api.post(path(reply), {"sessionId": reply.session, "decision": decision, **more})


def refuse_decision(api: Api, reply: ChatReply, decision: str = "confirm", **more: Any) -> Answer:
    body = {"sessionId": reply.session, "decision": decision, **more}
    return api.call_refused("POST", path(reply), body)


def path(reply: ChatReply) -> str:
    return f"/api/agents/public/actions/{card(reply)['id']}"


def actions(api: Api, bot: Bot) -> list[dict[str, Any]]:
    (dialog, *_) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
    actions: list[dict[str, Any]] = api.get(f"/api/agents/dialog?id={dialog['id']}")["actions"]
    return actions


def bookings(api: Api) -> list[dict[str, Any]]:
    bookings: list[dict[str, Any]] = api.get("/api/bookings/list")["bookings"]
    return bookings

"""Paths of the calls about dialogs, and calls that read dialogs and call tools."""

import json
from typing import Any
from urllib.parse import urlencode

from chalicelib.domains.chat.flows import read_tools, tool_calls
from chalicelib.domains.chat.flows.tool_calls import ToolContext
from chalicelib.gateways.llm.messages import ToolCall, ToolResult
from tests.conftest import Api
from tests.factories.chat import Bot

LIST, GET, STATS, FUNNEL = (
    f"/api/agents/{path}" for path in ("dialogs", "dialog", "stats", "widget-stats")
)


def list_dialogs(api: Api, bot: Bot, **query: Any) -> list[str]:
    page = api.get(f"{LIST}?{urlencode({'agentId': bot.id, **query})}")
    assert page["total"] == len(page["dialogs"])
    return [dialog["id"] for dialog in page["dialogs"]]


def stats(api: Api, bot: Bot, **query: Any) -> Any:
    return api.get(f"{STATS}?{urlencode({'agentId': bot.id, **query})}")


def call(context: ToolContext, name: str, arguments: Any) -> ToolResult:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return tool_calls.carry_out(ToolCall("1", name, text), read_tools.READ_TOOLS, context)

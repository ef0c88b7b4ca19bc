"""Stateless servers of the official SDK and of FastMCP, with the schemas of our tools.

This is a script for the peers' own virtual environment. It reads tool definitions and the
response's text as JSON from stdin, and writes CPU milliseconds and versions as JSON to stdout.
Requests go directly to the ASGI application, so that only the handler is measured. Like ours, the
tool builds its response from records in memory, through a pydantic model, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime
from importlib.metadata import version
from typing import Any

from pydantic import create_model
from pydantic_core import to_json
from timing import cpu_ms  # type: ignore[import-not-found]  # in the folder of this script

HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"authorization", b"Bearer bench"),
    (b"mcp-protocol-version", b"2025-11-25"),
]


def answer_builder(text: str) -> Callable[[], str]:
    """Return a function that rebuilds the string from records, through a pydantic model."""
    answer = json.loads(text)["data"]
    first = answer["projects"][0]
    kinds: dict[str, Any] = {name: (type(first[name]) if first[name] else Any) for name in first}
    kinds |= {name: datetime for name in first if name.endswith("At")}
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in kinds.items()}
    site = create_model("Site", **fields)
    sites = create_model("Sites", projects=(list[site], ...), pagination=(dict[str, int], ...))  # type: ignore[valid-type]  # created at run time
    records = [
        {
            name: datetime.fromisoformat(v) if kinds[name] is datetime else v
            for name, v in row.items()
        }
        for row in answer["projects"]
    ]

    def build() -> str:
        page = sites(projects=[site(**r) for r in records], pagination=answer["pagination"])
        return to_json({"data": {"status": True, **page.model_dump(mode="json")}}).decode()

    return build


def official(definitions: list[dict[str, Any]], text: str) -> Any:  # noqa: ANN401  an ASGI app
    """Return the official SDK's low-level server as a stateless application."""
    from mcp import types  # noqa: PLC0415  installed in the peers' environment only
    from mcp.server.lowlevel import Server  # noqa: PLC0415

    build = answer_builder(text)
    tools = [types.Tool.model_validate(definition) for definition in definitions]

    async def list_tools(_ctx: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_ctx: object, _params: object) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=build())])

    server = Server("peer", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(json_response=True, stateless_http=True)


def fastmcp(definitions: list[dict[str, Any]], text: str) -> Any:  # noqa: ANN401  an ASGI app
    """Return a server of FastMCP as a stateless application."""
    from fastmcp import FastMCP  # noqa: PLC0415  as above
    from fastmcp.tools import Tool, ToolResult  # noqa: PLC0415
    from mcp.types import TextContent  # noqa: PLC0415

    build = answer_builder(text)

    class Fixed(Tool):  # type: ignore[misc]  # not installed where types are checked
        """A tool with our schema that builds our response."""

        async def run(self, arguments: dict[str, Any]) -> ToolResult:  # noqa: ARG002
            return ToolResult(content=[TextContent(type="text", text=build())])

    server = FastMCP("peer")
    for definition in definitions:
        server.add_tool(
            Fixed(
                name=definition["name"],
                title=definition["title"],
                description=definition["description"],
                parameters=definition["inputSchema"],
                annotations=definition["annotations"],
            )
        )
    return server.http_app(json_response=True, stateless_http=True)


class Driver:
    """Client that runs an ASGI application on an event loop of its own."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401  an ASGI app
        self.app = app
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        context = app.router.lifespan_context(app)
        self.loop.run_until_complete(self.stack.enter_async_context(context))

    def call(self, method: str, params: dict[str, Any]) -> Callable[[], bytes]:
        """Return a function that sends one request and returns the body of the response."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = json.dumps(message).encode()
        return lambda: self.loop.run_until_complete(self._send(body))

    async def _send(self, body: bytes) -> bytes:
        parts: list[bytes] = []
        request_was_sent = False

        async def receive() -> dict[str, Any]:
            nonlocal request_was_sent
            if request_was_sent:
                await asyncio.Event().wait()
            request_was_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [*HEADERS, (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        await self.app(scope, receive, send)
        return b"".join(parts)


def has_same_records(answer: str, *, expected: str) -> bool:
    """Whether a response has the expected records, in any format of times."""
    received, ours = (json.loads(text)["data"]["projects"] for text in (answer, expected))
    return [site["id"] for site in received] == [site["id"] for site in ours]


def main() -> None:
    """Measure both peers."""
    settings = json.load(sys.stdin)
    measured = {}
    for name, package, make_app in (
        ("official SDK", "mcp", official),
        ("FastMCP", "fastmcp", fastmcp),
    ):
        driver = Driver(make_app(settings["definitions"], settings["text"]))
        listing = driver.call("tools/list", {})
        call = driver.call("tools/call", {"name": settings["tool"], "arguments": {}})
        count = len(json.loads(listing())["result"]["tools"])
        answer = json.loads(call())["result"]["content"][0]["text"]
        if count != len(settings["definitions"]) or not has_same_records(
            answer, expected=settings["text"]
        ):
            sys.exit(f"{name} does not serve what it was given")
        measured[name] = {
            "version": version(package),
            "tools/list": cpu_ms(listing),
            "tools/call": cpu_ms(call),
        }
    json.dump(measured, sys.stdout)


if __name__ == "__main__":
    main()

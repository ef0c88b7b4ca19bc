"""fastmcp 4, in an environment of its own: it needs version 2 of the Python SDK."""

import asyncio
from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError

from tests.clients.client import Outcome, Server, Tool


class FastMcp:
    """The client of fastmcp."""

    package = "fastmcp"
    failure = "an exception, `ToolError`, with the message"
    checks_arguments = False

    def __init__(self, server: Server) -> None:
        self.client = Client(server.url, auth=server.key or None)

    def tools(self) -> list[Tool]:
        return asyncio.run(self._tools())

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return asyncio.run(self._call(tool, arguments))

    async def _tools(self) -> list[Tool]:
        async with self.client:
            return [Tool(tool.name, tool.input_schema) for tool in await self.client.list_tools()]

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        async with self.client:
            try:
                result = await self.client.call_tool(tool, arguments)
            except ToolError as error:
                return Outcome(failed=True, text=str(error))
            return Outcome(failed=False, text=result.content[0].text)

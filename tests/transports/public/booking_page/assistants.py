"""The assistant of a visitor, which calls the tools of a booking page."""

import json
from typing import Any

from tests.conftest import Answer, call_console
from tests.transports.public.booking_page.helpers import BookingPage, visitor


class Assistant:
    """A client of the tools of a page. ``path`` is the address of the tools."""

    def __init__(self, page: BookingPage, path: str | None = None) -> None:
        self.page, self.path = page, path or f"{page.home}/mcp"

    @classmethod
    def admitted(cls, page: BookingPage, **settings: Any) -> "Assistant":
        """Switch the tools on."""
        call_console(page.owner.workspace.id, "admit_assistants", isOn=True, **settings)
        return cls(page)

    def send(self, method: str, headers: dict[str, str] | None = None, **params: Any) -> Answer:
        """Send a request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return visitor.call("POST", self.path, message, headers)

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return the result."""
        answer = self.send("tools/call", name=tool, arguments=arguments)
        assert answer.status == 200, answer.body
        body: dict[str, Any] = json.loads(answer.body)
        assert "error" not in body, body
        result: dict[str, Any] = body["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and return its JSON."""
        result = self.result(tool, **arguments)
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def refuse(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that refuses the call, and return the failure."""
        result = self.result(tool, **arguments)
        assert result["isError"], result
        return json.loads(result["content"][0]["text"])["data"]

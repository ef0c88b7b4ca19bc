"""A JSON-RPC client, as the tests of this folder use it."""

import json
from typing import Any

from chalicelib.transports.mcp import CAPABILITIES_KEY, VERSION_KEY
from tests.conftest import Answer, Api

MODERN = "2026-07-28"
META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}


class Client:
    """Sends JSON-RPC requests.

    A ``modern`` client follows protocol version ``MODERN``, which requires ``_meta`` and headers in
    each request. Other clients follow earlier versions and send neither.
    """

    def __init__(self, api: Api, *, modern: bool) -> None:
        self.api, self.modern = api, modern

    def send(self, message: Any, headers: dict[str, str] | None = None) -> Answer:
        return self.api.call("POST", "/api/mcp", message, headers)

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        headers: dict[str, str | None] | None = None,
        request_id: Any = 1,
    ) -> Answer:
        all_headers: dict[str, str | None] = {}
        params = dict(params or {})
        if self.modern:
            params.setdefault("_meta", META)
            all_headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if method in {"prompts/get", "tools/call"} and isinstance(params.get("name"), str):
                all_headers["Mcp-Name"] = params["name"]
        all_headers |= headers or {}
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return self.send(message, {k: v for k, v in all_headers.items() if v is not None})


def rpc(answer: Answer) -> dict[str, Any]:
    body = json.loads(answer.body)
    assert body["jsonrpc"] == "2.0"
    return body


def error(answer: Answer) -> tuple[int, int]:
    return answer.status, rpc(answer)["error"]["code"]

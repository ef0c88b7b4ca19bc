"""JSON-RPC batches, as the tool server answers and refuses them."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.transports import mcp
from tests.conftest import Api
from tests.transports.mcp_dispatch.helpers import MODERN, error, rpc

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
VERSION = "MCP-Protocol-Version"


def call_of(tool: str, request_id: int, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


class TestBatches:
    @pytest.mark.parametrize("headers", [{}, {VERSION: "2025-03-26"}, {VERSION: "2024-11-05"}])
    def test_each_request_of_a_batch_is_answered_in_its_order(
        self, headers: dict[str, str], api: Api
    ) -> None:
        batch = [
            call_of("svc_create_product", 1, name="Loaf", price=100),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 9, "result": {}},
            call_of("svc_list_products", 2, q="loaf"),
            call_of("svc_nothing", 3),
            {"jsonrpc": "2.0", "id": "ä", "method": "ping", "params": None},
            "nonsense",
            [PING],
        ]
        answer = api.call("POST", "/api/mcp", batch, headers)
        assert answer.status == 200
        created, listing, unknown, ping, *broken = json.loads(answer.body)
        assert [created["id"], listing["id"], unknown["id"], ping["id"]] == [1, 2, 3, "ä"]
        assert "Loaf" in listing["result"]["content"][0]["text"]
        assert (unknown["error"]["code"], ping["result"]) == (-32602, {})
        assert [(answer["id"], answer["error"]["code"]) for answer in broken] == [
            (None, -32600)
        ] * 2

    def test_a_batch_of_notifications_has_no_answer(self, api: Api) -> None:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        answer = api.call("POST", "/api/mcp", [message, message])
        assert (answer.status, answer.body) == (202, b"")

    @pytest.mark.parametrize(
        ("batch", "headers"),
        [
            ([], {}),
            ([PING] * 21, {}),
            ([PING, {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}}], {}),
            ([PING], {VERSION: "2025-06-18"}),
            ([PING], {VERSION: "2025-11-25"}),
            ([PING], {VERSION: MODERN}),
            ([PING], {VERSION: "x"}),
        ],
    )
    def test_another_batch_is_refused_whole(
        self, batch: list[Any], headers: dict[str, str], api: Api
    ) -> None:
        call = call_of("svc_create_product", 7, name="Never", price=1)
        answer = api.call("POST", "/api/mcp", [*batch, call] if batch else batch, headers)
        assert error(answer) == (400, -32600)
        assert rpc(answer)["id"] is None
        assert api.get("/api/products/list")["products"] == []

    def test_each_call_of_a_batch_counts_towards_its_limit(
        self, api: Api, reload_settings: Callable[[], None]
    ) -> None:
        os.environ["RATE_LIMIT_SCALE"] = "0.1"
        reload_settings()
        batch = [call_of("svc_ai_fill_product", number, name="Loaf") for number in range(20)]
        answers = json.loads(api.call("POST", "/api/mcp", batch).body)
        failed = [
            answer for answer in answers if "rate_limited" in answer["result"]["content"][0]["text"]
        ]
        assert 0 < len(failed) < 20

    def test_answers_that_are_too_large_together_are_left_out(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mcp, "MAX_ANSWER_BYTES", 100_000)
        batch = [{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(4)]
        answer = api.call("POST", "/api/mcp", [*batch, PING])
        *lists, ping = json.loads(answer.body)
        assert ["error" in page for page in lists] == [False, True, True, True]
        assert (lists[1]["id"], lists[1]["error"]["code"], ping["result"]) == (1, -32603, {})
        assert len(answer.body) < 100_000

"""Dispatch of the tool server for clients of both protocol versions."""

import base64
import json
from typing import Any

import pytest

from chalicelib.transports.mcp import CAPABILITIES_KEY, SERVER_INFO_KEY, VERSION_KEY
from tests.conftest import Api, Owner
from tests.support.warned import warned
from tests.transports.mcp_dispatch.helpers import META, MODERN, Client, error, rpc


class TestEnvelope:
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b"", -32700),
            (b"{", -32700),
            (b"\xff", -32700),
            (b'{"id": NaN}', -32700),
            (b'"' + rb"\ud800" + b'"', -32700),
            (b"[" * 100_000, -32700),
            (b"[]", -32600),
            (b"1", -32600),
            (b"null", -32600),
            (b"{}", -32600),
            (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":1}', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        ],
    )
    def test_an_invalid_request_is_400_with_id_null(self, api: Api, body: bytes, code: int) -> None:
        answer = api.call("POST", "/api/mcp", body)
        assert error(answer) == (400, code)
        assert rpc(answer)["id"] is None

    @pytest.mark.parametrize("request_id", [0, -1, 2**70, "", "a", "7"])
    def test_the_id_is_returned_unchanged(self, client: Client, request_id: Any) -> None:
        assert rpc(client.request("tools/list", request_id=request_id))["id"] == request_id

    @pytest.mark.parametrize(
        "message",
        [
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            {"jsonrpc": "2.0", "method": "nonsense"},
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}},
        ],
    )
    def test_notifications_and_responses_are_accepted_without_a_body(
        self, client: Client, message: dict[str, Any]
    ) -> None:
        answer = client.send(message)
        assert (answer.status, answer.body) == (202, b"")


class TestHandshakeVersion:
    @pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
    def test_initialize_echoes_a_known_version(self, handshake: Client, version: str) -> None:
        result = rpc(handshake.request("initialize", {"protocolVersion": version}))["result"]
        assert result["protocolVersion"] == version
        assert {*result["capabilities"]} == {"prompts", "tools", "resources", "extensions"}
        icons = {"icons"} if version == "2025-11-25" else set()
        assert set(result["serverInfo"]) == {"name", "title", "version"} | icons
        assert result["instructions"]

    @pytest.mark.parametrize("version", ["1.0", "2099-01-01", None, 5])
    def test_initialize_offers_its_newest_version_for_unknown_ones(
        self, handshake: Client, version: Any
    ) -> None:
        result = rpc(handshake.request("initialize", {"protocolVersion": version}))["result"]
        assert result["protocolVersion"] == "2025-11-25"

    def test_ping_is_answered(self, handshake: Client) -> None:
        assert rpc(handshake.request("ping"))["result"] == {}

    @pytest.mark.parametrize(
        "method", ["server/discover", "resources/subscribe", "logging/setLevel", "x"]
    )
    def test_unknown_methods_are_an_error_at_200(self, handshake: Client, method: str) -> None:
        assert error(handshake.request(method)) == (200, -32601)

    @pytest.mark.parametrize("version", [None, "2024-11-05", "2025-11-25"])
    def test_a_version_header_of_this_protocol_or_none_is_accepted(
        self, handshake: Client, version: str | None
    ) -> None:
        headers = {"MCP-Protocol-Version": version}
        assert handshake.request("tools/list", headers=headers).status == 200

    def test_an_unknown_version_header_is_400(self, handshake: Client) -> None:
        answer = handshake.request("tools/list", headers={"MCP-Protocol-Version": "1999-01-01"})
        assert answer.status == 400

    @pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"name": "svc_nope"}])
    def test_a_bad_or_unknown_tool_name_is_invalid_params_at_200(
        self, handshake: Client, params: dict[str, Any]
    ) -> None:
        assert error(handshake.request("tools/call", params)) == (200, -32602)

    def test_an_unknown_tool_is_answered_with_the_most_similar_one(self, handshake: Client) -> None:
        answer = handshake.request("tools/call", {"name": "svc_get_prodct"})
        message = json.loads(answer.body)["error"]["message"]
        assert message == 'Unknown tool "svc_get_prodct"; did you mean "svc_get_product"?'

    def test_results_have_no_fields_of_the_other_protocol_version(self, handshake: Client) -> None:
        assert set(rpc(handshake.request("tools/list"))["result"]) == {"tools"}


class TestStatelessVersion:
    def test_discover_describes_the_server(self, modern: Client) -> None:
        result = rpc(modern.request("server/discover"))["result"]
        assert result["supportedVersions"] == [MODERN]
        assert {*result["capabilities"]} == {"prompts", "tools", "resources", "extensions"}
        assert result["instructions"]
        assert result["resultType"] == "complete"
        assert (result["ttlMs"] > 0, result["cacheScope"]) == (True, "private")
        assert set(result["_meta"][SERVER_INFO_KEY]) == {"icons", "name", "title", "version"}

    @pytest.mark.parametrize("method", ["initialize", "ping", "resources/subscribe", "x"])
    def test_unknown_methods_and_those_of_the_other_version_are_404(
        self, modern: Client, method: str
    ) -> None:
        assert error(modern.request(method)) == (404, -32601)

    @pytest.mark.parametrize("missing", [VERSION_KEY, CAPABILITIES_KEY])
    def test_required_meta_is_required(self, modern: Client, missing: str) -> None:
        meta = {key: value for key, value in META.items() if key != missing}
        answer = modern.request("tools/list", {"_meta": meta})
        assert error(answer) == (400, -32602)
        assert missing in rpc(answer)["error"]["message"]

    @pytest.mark.parametrize("meta", [None, [], "x", 5])
    def test_meta_that_is_not_an_object_is_invalid_params(self, modern: Client, meta: Any) -> None:
        assert error(modern.request("tools/list", {"_meta": meta})) == (400, -32602)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("MCP-Protocol-Version", None),
            ("MCP-Protocol-Version", "2025-11-25"),
            ("Mcp-Method", None),
            ("Mcp-Method", "tools/list"),
            ("Mcp-Name", None),
            ("Mcp-Name", "svc_get_page"),
            ("Mcp-Name", "=?base64?!!!?="),
        ],
    )
    def test_headers_must_agree_with_the_body(
        self, modern: Client, name: str, value: str | None
    ) -> None:
        answer = modern.request("tools/call", {"name": "svc_list_sites"}, {name: value})
        assert error(answer) == (400, -32020)
        assert name in rpc(answer)["error"]["message"]

    @pytest.mark.parametrize(
        "value",
        [
            " svc_list_sites ",
            f"=?base64?{base64.b64encode(b'svc_list_sites').decode()}?=",
        ],
    )
    def test_the_name_header_may_be_padded_or_encoded(self, modern: Client, value: str) -> None:
        answer = modern.request("tools/call", {"name": "svc_list_sites"}, {"Mcp-Name": value})
        assert answer.status == 200

    def test_an_unsupported_version_names_the_supported_ones(self, modern: Client) -> None:
        meta = {**META, VERSION_KEY: "2030-01-01"}
        headers: dict[str, str | None] = {"MCP-Protocol-Version": "2030-01-01"}
        answer = modern.request("tools/list", {"_meta": meta}, headers)
        assert error(answer) == (400, -32022)
        data = rpc(answer)["error"]["data"]
        assert data == {"supported": [MODERN], "requested": "2030-01-01"}

    @pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"name": "svc_nope"}])
    def test_a_bad_or_unknown_tool_name_is_invalid_params_at_400(
        self, modern: Client, params: dict[str, Any]
    ) -> None:
        assert error(modern.request("tools/call", params)) == (400, -32602)

    def test_the_list_states_how_long_it_may_be_cached(self, modern: Client) -> None:
        result = rpc(modern.request("tools/list"))["result"]
        assert set(result) == {"resultType", "tools", "ttlMs", "cacheScope", "_meta"}


class TestCalls:
    def test_a_result_equals_the_rest_body(self, client: Client, api: Api) -> None:
        api.post("/api/projects/create", {"title": "Пекарня"})
        answer = client.request("tools/call", {"name": "svc_list_sites", "arguments": {"size": 5}})
        result = rpc(answer)["result"]
        assert result["isError"] is False
        rest_body = api.call("GET", "/api/projects/list?size=5").body.decode()
        assert result["content"] == [{"type": "text", "text": rest_body}]

    @pytest.mark.parametrize("arguments", [None, {}])
    def test_arguments_may_be_omitted_or_null(self, client: Client, arguments: Any) -> None:
        params = {"name": "svc_list_sites"}
        if arguments is None:
            params["arguments"] = None
        assert rpc(client.request("tools/call", params))["result"]["isError"] is False

    @pytest.mark.parametrize(
        ("tool", "arguments", "status", "code"),
        [
            ("svc_list_sites", {"size": 0}, 400, "validation_error"),
            ("svc_list_sites", {"size": "five"}, 400, "validation_error"),
            ("svc_list_sites", [], 400, "validation_error"),
            ("svc_list_sites", "[]", 400, "validation_error"),
            ("svc_list_sites", "{", 400, "validation_error"),
            ("svc_list_sites", "x", 400, "validation_error"),
            ("svc_get_page", {"id": "nope"}, 404, "not_found"),
            ("svc_create_site", {"title": "x", "slug": "api"}, 400, "validation_error"),
            ("svc_create_site", {"title": "x", "idempotencyKey": 5}, 400, "validation_error"),
        ],
    )
    def test_failures_are_results_with_the_envelope_and_status(
        self, client: Client, tool: str, arguments: Any, status: int, code: str
    ) -> None:
        answer = client.request("tools/call", {"name": tool, "arguments": arguments})
        assert answer.status == 200
        result = rpc(answer)["result"]
        assert result["isError"] is True
        failure = json.loads(result["content"][0]["text"])
        assert failure["httpStatus"] == status
        assert (failure["data"]["status"], failure["data"]["code"]) == (False, code)
        assert failure["data"]["requestId"] == answer.headers["X-Request-Id"]

    @pytest.mark.parametrize("era", ["handshake", "modern"])
    def test_a_known_tool_without_its_scope_is_a_failed_call(self, era: str, owner: Owner) -> None:
        client = Client(owner.api("pages:read"), modern=era == "modern")
        result = rpc(client.request("tools/call", {"name": "svc_list_sites"}))["result"]
        failure = json.loads(result["content"][0]["text"])
        assert (result["isError"], failure["httpStatus"]) == (True, 403)
        assert failure["data"]["code"] == "insufficient_scope"
        assert "projects:read" in failure["data"]["message"]

    def test_an_idempotency_key_replays_across_transports(self, client: Client, api: Api) -> None:
        arguments = {"title": "Bakery", "idempotencyKey": "k"}
        params = {"name": "svc_create_site", "arguments": arguments}
        texts = {rpc(client.request("tools/call", params))["result"]["content"][0]["text"]}
        rest_response = api.call(
            "POST", "/api/projects/create", {"title": "Bakery"}, {"Idempotency-Key": "k"}
        )
        assert texts == {rest_response.body.decode()}
        assert api.get("/api/projects/list")["pagination"]["total"] == 1

    @pytest.mark.parametrize("key", [None, ""])
    def test_an_empty_idempotency_key_is_none(self, key: Any, client: Client, api: Api) -> None:
        params = {"name": "svc_create_site", "arguments": {"title": "x", "idempotencyKey": key}}
        results = [rpc(client.request("tools/call", params))["result"] for _ in range(2)]
        assert [result.get("isError", False) for result in results] == [False, False]
        assert api.get("/api/projects/list")["pagination"]["total"] == 2

    def test_unknown_arguments_are_ignored_and_named(self, client: Client) -> None:
        params = {"name": "svc_list_sites", "arguments": {"serach": "x"}}
        text = rpc(client.request("tools/call", params))["result"]["content"][0]["text"]
        ignored = {"code": "unknown_field", "field": "serach", "suggestion": "search"}
        assert warned(json.loads(text)["data"]) == [ignored]

    def test_a_crash_is_a_failed_call_without_details(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(*_: object) -> None:
            raise ZeroDivisionError("secret detail")

        monkeypatch.setattr("chalicelib.transports.mcp.invoke", crash)
        answer = client.request("tools/call", {"name": "svc_list_sites"})
        assert answer.status == 200
        assert b"secret" not in answer.body
        failure = json.loads(rpc(answer)["result"]["content"][0]["text"])
        assert failure["httpStatus"] == 500


class TestTexts:
    """Some clients send arguments as strings. Tools parse a string by the declared type."""

    @staticmethod
    def data(api: Api, tool: str, **arguments: Any) -> Any:
        failed, answer = api.tool(tool, **arguments)
        assert not failed, answer
        return answer["data"]

    def test_numbers_and_flags_are_read(self, api: Api) -> None:
        created = self.data(api, "svc_create_product", name="2", price=100, stock=" 7 ", sku="5")
        product = created["product"]
        assert (product["name"], product["stock"], product["sku"]) == ("2", 7, "5")
        update = {"id": product["id"], "stockDelta": "-2", "name": "true"}
        updated = self.data(api, "svc_update_product", **update)["product"]
        assert (updated["stock"], updated["name"]) == (5, "true")
        nulls = {"id": product["id"], "stock": "null", "sku": "null"}
        updated = self.data(api, "svc_update_product", **nulls)["product"]
        assert (updated["stock"], updated["sku"]) == (5, "null")
        listing = self.data(api, "svc_list_products", size="2.0", page="1", inStock="True")
        assert [product["id"] for product in listing["products"]] == [product["id"]]
        deletion = {"ids": f'["{product["id"]}"]', "action": "delete", "confirm": "true"}
        assert self.data(api, "svc_bulk_products", **deletion)["summary"]["ok"] == 1

    def test_objects_and_arrays_are_read_with_what_is_in_them(self, api: Api) -> None:
        fields = [
            {"name": "email", "type": "email", "required": "true"},
            {"name": "note", "label": "[1]"},
        ]
        arguments = {"title": '{"a": 1}', "fields": json.dumps([fields[0], json.dumps(fields[1])])}
        form = self.data(api, "svc_create_form", **arguments)["form"]
        assert form["title"] == '{"a": 1}'
        assert [field["name"] for field in form["fields"]] == ["email", "note"]
        assert form["fields"][1]["label"] == "[1]"
        assert form["fields"][0]["required"] is True
        site = self.data(api, "svc_create_site", title="Bakery")["project"]["id"]
        page = self.data(api, "svc_create_page", projectId=site, title="Home")["page"]["id"]
        design = {"id": page, "designSystem": '{"size": "2", "deep": {"a": [1]}}'}
        updated = self.data(api, "svc_update_page", **design)["page"]
        assert updated["designSystem"] == {"size": "2", "deep": {"a": [1]}}
        edits = {"id": page, "edits": '[{"find": "a", "replace": "[]", "all": "false"}]'}
        self.data(api, "svc_save_page_html", id=page, html="a")
        assert self.data(api, "svc_save_page_html", **edits)["page"]["html"] == "[]"

    def test_the_whole_arguments_may_be_a_text(self, client: Client) -> None:
        text = ' {"name": "Loaf", "price": 100}'
        answer = client.request("tools/call", {"name": "svc_create_product", "arguments": text})
        assert '"name":"Loaf"' in rpc(answer)["result"]["content"][0]["text"]

    @pytest.mark.parametrize("text", ["", " ", "{}", "null"])
    def test_an_empty_text_is_no_arguments(self, text: str, client: Client) -> None:
        answer = client.request("tools/call", {"name": "svc_list_sites", "arguments": text})
        assert rpc(answer)["result"]["isError"] is False

    @pytest.mark.parametrize(
        ("tool", "arguments", "field"),
        [
            ("svc_create_product", {"name": "x", "price": "100"}, "price"),
            ("svc_list_products", {"minPrice": "100"}, "minPrice"),
            ("svc_create_service", {"name": "x", "durationMin": 30, "price": "1500"}, "price"),
            ("svc_bulk_products", {"ids": ["x"], "action": "setPrice", "value": "100"}, "value"),
            ("svc_list_products", {"size": "two"}, "size"),
            ("svc_list_products", {"size": "2.5"}, "size"),
            ("svc_list_products", {"size": "007"}, "size"),
            ("svc_list_products", {"size": "true"}, "size"),
            ("svc_list_products", {"size": "NaN"}, "size"),
            ("svc_list_products", {"inStock": "1"}, "inStock"),
            ("svc_list_products", {"inStock": "yes"}, "inStock"),
            ("svc_create_form", {"title": "x", "fields": '{"name": "a"}'}, "fields"),
            ("svc_create_form", {"title": "x", "fields": "[1e400]"}, "fields"),
            ("svc_create_form", {"title": "x", "fields": "[" * 1_000}, "fields"),
        ],
    )
    def test_money_and_texts_that_do_not_fit_are_refused_as_they_came(
        self, tool: str, arguments: dict[str, Any], field: str, api: Api
    ) -> None:
        failed, answer = api.tool(tool, **arguments)
        assert failed
        assert [error["field"] for error in answer["data"]["errors"]] == [field]
        assert answer["httpStatus"] == 400

    def test_a_percentage_and_a_stock_of_a_bulk_change_are_read(self, api: Api) -> None:
        product_id = self.data(api, "svc_create_product", name="Loaf", price=100)["product"]["id"]
        for action, value, new_value in (("setStock", "5", 5), ("changePricePercent", "10.0", 110)):
            change = {"ids": [product_id], "action": action, "value": value}
            assert self.data(api, "svc_bulk_products", **change)["results"][0]["after"] == new_value

    def test_rest_reads_json_by_its_own_types(self, api: Api) -> None:
        body = {"name": "Loaf", "price": 100, "stock": "7"}
        assert api.call_refused("POST", "/api/products/create", body).status == 400

    def test_a_text_and_its_value_are_the_same_to_an_idempotency_key(self, api: Api) -> None:
        arguments = {"name": "Loaf", "price": 100, "idempotencyKey": "k"}
        ids = {
            self.data(api, "svc_create_product", stock=stock, **arguments)["product"]["id"]
            for stock in (7, "7")
        }
        assert len(ids) == 1


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "ping", "initialize"])
def test_params_of_null_count_as_omitted(method: str, api: Api) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": None}
    answer = api.call("POST", "/api/mcp", message)
    assert (answer.status, "result" in rpc(answer)) == (200, True)

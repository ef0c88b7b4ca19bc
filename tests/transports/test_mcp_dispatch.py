"""Dispatch of the tool server: its checks in order, for clients of both protocol versions."""

import base64
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.transports.mcp import CAPABILITIES_KEY, SERVER_INFO_KEY, VERSION_KEY
from tests.conftest import Answer, Api, Owner, as_operator

MODERN = "2026-07-28"
META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}


class Client:
    """Sends JSON-RPC like a client of one protocol version."""

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
        sent: dict[str, str | None] = {}
        params = dict(params or {})
        if self.modern:
            params.setdefault("_meta", META)
            sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if method == "tools/call" and isinstance(params.get("name"), str):
                sent["Mcp-Name"] = params["name"]
        sent |= headers or {}
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return self.send(message, {k: v for k, v in sent.items() if v is not None})


def rpc(answer: Answer) -> dict[str, Any]:
    body = json.loads(answer.body)
    assert body["jsonrpc"] == "2.0"
    return body


def error(answer: Answer) -> tuple[int, int]:
    return answer.status, rpc(answer)["error"]["code"]


@pytest.fixture
def handshake(api: Api) -> Client:
    return Client(api, modern=False)


@pytest.fixture
def modern(api: Api) -> Client:
    return Client(api, modern=True)


@pytest.fixture(params=["handshake", "modern"])
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.getfixturevalue(request.param)
    return chosen


class TestBeforeDispatch:
    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc":"2.0"}'])
    @pytest.mark.parametrize("authorization", [None, "Bearer nope", "Basic x"])
    def test_nothing_is_parsed_without_a_key(self, body: bytes, authorization: str | None) -> None:
        headers = {"Authorization": authorization} if authorization else {}
        answer = Api(None).call("POST", "/api/mcp", body, headers)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_nothing_is_parsed_below_business(self, owner: Owner) -> None:
        api = owner.api()
        as_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        answer = api.call("POST", "/api/mcp", b"{")
        assert (answer.status, answer.data["code"]) == (403, "plan_required")

    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
    def test_only_post_is_allowed(self, api: Api, method: str) -> None:
        answer = api.refused(method, "/api/mcp")
        assert (answer.status, answer.data["code"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "POST"

    def test_more_than_five_megabytes_is_413(self, api: Api) -> None:
        answer = api.call("POST", "/api/mcp", b" " * 5_000_001)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")

    @pytest.mark.parametrize(
        ("origin", "status"),
        [
            ("http://127.0.0.1:8000", 200),
            ("https://evil.example", 403),
            ("null", 403),
            ("http://127.0.0.1:8001", 403),
        ],
    )
    def test_browsers_on_other_sites_are_refused(
        self, client: Client, origin: str, status: int
    ) -> None:
        assert client.request("tools/list", headers={"Origin": origin}).status == status

    def test_accept_and_content_type_headers_are_not_required(self, client: Client) -> None:
        headers = {"Accept": "text/plain", "Content-Type": "text/plain"}
        assert client.request("tools/list", headers=headers).status == 200


class TestOrigins:
    APP = "https://app.example"

    @pytest.fixture(autouse=True)
    def _is_configured(self, read_anew: Callable[[], None]) -> None:
        os.environ["ALLOWED_ORIGINS"] = f"https://other.example {self.APP}"
        read_anew()

    def ask(self, origin: str, method: str = "POST", sent: str = "authorization") -> Answer:
        """Send a preflight as a browser does, without the key."""
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": sent,
        }
        return Api(None).call("OPTIONS", "/api/mcp", headers=headers)

    @staticmethod
    def listed(answer: Answer, header: str) -> set[str]:
        return {name.strip().lower() for name in answer.headers[header].split(",")}

    @pytest.mark.parametrize("origin", [APP, "https://other.example", "http://localhost:8000"])
    def test_a_preflight_of_an_admitted_origin_is_answered(self, origin: str) -> None:
        answer = self.ask(origin)
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert self.listed(answer, "Access-Control-Allow-Methods") >= {"post", "get", "delete"}
        assert self.listed(answer, "Access-Control-Allow-Headers") >= {
            *("authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"),
            *("x-mcp-toolsets", "x-mcp-tools", "x-mcp-exclude-tools", "x-mcp-readonly"),
            *("mcp-session-id", "last-event-id"),
        }
        assert int(answer.headers["Access-Control-Max-Age"]) > 0
        assert answer.headers["Vary"] == "Accept-Encoding, Origin"

    @pytest.mark.parametrize(
        "origin", ["https://evil.example", "null", f"{APP}.evil.example", f"{APP}:444", "*", ""]
    )
    def test_another_origin_is_refused_in_the_envelope(self, origin: str, api: Api) -> None:
        for answer in (self.ask(origin), api.call("POST", "/api/mcp", {}, {"Origin": origin})):
            assert (answer.status, answer.data["code"]) == (403, "forbidden")
            assert answer.headers["Vary"] == "Accept-Encoding, Origin"
            assert not [name for name in answer.headers if name.startswith("Access-Control")]

    def test_an_admitted_origin_may_read_every_answer(self, api: Api, owner: Owner) -> None:
        sent = {"Origin": self.APP}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        start = owner.api()
        answers = {
            200: api.call("POST", "/api/mcp", message, sent),
            202: api.call("POST", "/api/mcp", {"jsonrpc": "2.0", "method": "x"}, sent),
            400: api.call("POST", "/api/mcp", b"{", sent),
            401: Api("wrong").call("POST", "/api/mcp", message, sent),
            405: api.call("GET", "/api/mcp", headers=sent),
            413: api.call("POST", "/api/mcp", b" " * 5_000_001, sent),
        }
        as_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        answers[403] = start.call("POST", "/api/mcp", message, sent)
        for status, answer in answers.items():
            assert answer.status == status
            assert answer.headers["Access-Control-Allow-Origin"] == self.APP
            assert answer.headers["Vary"] == "Accept-Encoding, Origin"
            shown = self.listed(answer, "Access-Control-Expose-Headers")
            assert {"x-request-id", "retry-after", "www-authenticate"} <= shown

    def test_programs_need_no_origin(self, api: Api) -> None:
        for answer in (
            Api(None).call("OPTIONS", "/api/mcp"),
            api.call("POST", "/api/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ):
            assert answer.status < 300
            assert "Access-Control-Allow-Origin" not in answer.headers
            assert answer.headers["Vary"] == "Accept-Encoding, Origin"

    def test_the_tool_servers_origins_do_not_apply_elsewhere(self, api: Api) -> None:
        answer = api.call("GET", "/api/projects/list", headers={"Origin": self.APP})
        assert answer.status == 200
        assert "Access-Control-Allow-Origin" not in answer.headers


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
            (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
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
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600),
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
        assert result["capabilities"] == {"tools": {}}
        assert set(result["serverInfo"]) == {"name", "title", "version"}
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
        "method", ["server/discover", "resources/list", "prompts/list", "logging/setLevel", "x"]
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
        assert result["capabilities"] == {"tools": {}}
        assert result["instructions"]
        assert result["resultType"] == "complete"
        assert (result["ttlMs"] > 0, result["cacheScope"]) == (True, "private")
        assert set(result["_meta"][SERVER_INFO_KEY]) == {"name", "title", "version"}

    @pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "x"])
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
        rest = api.call("GET", "/api/projects/list?size=5").body.decode()
        assert result["content"] == [{"type": "text", "text": rest}]

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
            ("svc_list_sites", {"size": "5"}, 400, "validation_error"),
            ("svc_list_sites", [], 400, "validation_error"),
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
        told = json.loads(result["content"][0]["text"])
        assert told["httpStatus"] == status
        assert (told["data"]["status"], told["data"]["code"]) == (False, code)
        assert told["data"]["requestId"] == answer.headers["X-Request-Id"]

    @pytest.mark.parametrize("era", ["handshake", "modern"])
    def test_a_known_tool_without_its_scope_is_a_failed_call(self, era: str, owner: Owner) -> None:
        client = Client(owner.api("pages:read"), modern=era == "modern")
        result = rpc(client.request("tools/call", {"name": "svc_list_sites"}))["result"]
        told = json.loads(result["content"][0]["text"])
        assert (result["isError"], told["httpStatus"]) == (True, 403)
        assert told["data"]["code"] == "insufficient_scope"
        assert "projects:read" in told["data"]["message"]

    def test_an_idempotency_key_replays_across_transports(self, client: Client, api: Api) -> None:
        arguments = {"title": "Bakery", "idempotencyKey": "k"}
        params = {"name": "svc_create_site", "arguments": arguments}
        texts = {rpc(client.request("tools/call", params))["result"]["content"][0]["text"]}
        rest = api.call(
            "POST", "/api/projects/create", {"title": "Bakery"}, {"Idempotency-Key": "k"}
        )
        assert texts == {rest.body.decode()}
        assert api.get("/api/projects/list")["pagination"]["total"] == 1

    def test_unknown_arguments_are_ignored_and_named(self, client: Client) -> None:
        params = {"name": "svc_list_sites", "arguments": {"serach": "x"}}
        text = rpc(client.request("tools/call", params))["result"]["content"][0]["text"]
        assert 'Did you mean "search"?' in json.loads(text)["data"]["warnings"][0]

    def test_a_crash_is_a_failed_call_without_details(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(*_: object) -> None:
            raise ZeroDivisionError("secret detail")

        monkeypatch.setattr("chalicelib.transports.mcp.invoke", crash)
        answer = client.request("tools/call", {"name": "svc_list_sites"})
        assert answer.status == 200
        assert b"secret" not in answer.body
        told = json.loads(rpc(answer)["result"]["content"][0]["text"])
        assert told["httpStatus"] == 500


class TestList:
    def names(
        self, client: Client, headers: dict[str, str] | None = None, query: str = ""
    ) -> list[str]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = client.api.call("POST", "/api/mcp" + query, message, headers)
        return [tool["name"] for tool in rpc(answer)["result"]["tools"]]

    def test_the_list_has_exactly_the_tools_that_the_key_may_call(self, owner: Owner) -> None:
        client = Client(owner.api("pages:read"), modern=False)
        assert set(self.names(client)) == {
            "svc_list_workspaces",
            "svc_search_card_images",
            "svc_list_pages",
            "svc_get_page",
        }

    def test_the_list_is_the_same_bytes_every_time(self, client: Client) -> None:
        assert client.request("tools/list").body == client.request("tools/list").body

    @pytest.mark.parametrize("by", ["header", "query"])
    def test_the_instructions_warn_about_an_unknown_name(self, by: str, client: Client) -> None:
        method = "server/discover" if client.modern else "initialize"
        names = "prodcuts,pages,all"
        if by == "header":
            tools = "svc_get_product,svc_get_prodct"
            answer = client.request(
                method, {}, {"X-MCP-Toolsets": names, "X-MCP-Exclude-Tools": tools}
            )
        else:
            path = f"/api/mcp?toolsets={names}&exclude=svc_get_prodct"
            params = {"_meta": META} if client.modern else {}
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            answer = client.api.call("POST", path, message, headers if client.modern else {})
        told = rpc(answer)["result"]["instructions"]
        assert 'an unknown toolset, "prodcuts"; did you mean "products"?' in told
        assert 'an unknown tool, "svc_get_prodct"; did you mean "svc_get_product"?' in told
        assert told.count("Warning") == 2

    def test_the_instructions_list_the_toolsets_if_no_name_is_similar(
        self, handshake: Client
    ) -> None:
        answer = handshake.request("initialize", {}, {"X-MCP-Toolsets": "zzz"})
        told = rpc(answer)["result"]["instructions"]
        assert '"zzz"; known: workspace, projects, pages, products' in told

    def test_the_instructions_name_the_hidden_tools(self, new_owner: Callable[..., Owner]) -> None:
        user = new_owner("business", "user")
        client = Client(user.api("pages:read", "pages:write"), modern=False)
        told = rpc(client.request("initialize", {}))["result"]["instructions"]
        assert "projects:read" in told
        assert "projects:write" in told
        assert "pages:read" not in told
        assert "blog" not in told

    def test_the_instructions_do_not_mention_hidden_tools_if_there_are_none(
        self, handshake: Client
    ) -> None:
        told = rpc(handshake.request("initialize", {}))["result"]["instructions"]
        assert "Hidden" not in told

    @pytest.mark.parametrize(
        ("header", "parameter", "value", "shown", "hidden"),
        [
            ("X-MCP-Toolsets", "toolsets", "pages", "svc_get_page", "svc_list_sites"),
            ("X-MCP-Toolsets", "toolsets", "pages, projects", "svc_list_sites", None),
            ("X-MCP-Toolsets", "toolsets", "all", "svc_list_sites", None),
            ("X-MCP-Tools", "tools", "svc_get_page", "svc_get_page", "svc_list_pages"),
            ("X-MCP-Exclude-Tools", "exclude", "svc_get_page", "svc_list_pages", "svc_get_page"),
            (
                "X-MCP-Exclude-Tools",
                "exclude",
                "svc_list_workspaces",
                "svc_get_page",
                "svc_list_workspaces",
            ),
            ("X-MCP-Readonly", "readonly", "true", "svc_get_page", "svc_create_page"),
            ("X-MCP-Readonly", "readonly", "false", "svc_create_page", None),
        ],
    )
    def test_the_list_can_be_filtered_by_header_or_query(
        self,
        handshake: Client,
        header: str,
        parameter: str,
        value: str,
        shown: str,
        hidden: str | None,
    ) -> None:
        by_header = self.names(handshake, {header: value})
        assert by_header == self.names(handshake, query=f"?{parameter}={value.replace(' ', '')}")
        assert shown in by_header
        assert hidden not in by_header
        if "exclude" not in parameter:
            assert "svc_list_workspaces" in by_header

    def test_toolsets_and_tools_are_combined_and_exclusion_wins(self, handshake: Client) -> None:
        headers = {
            "X-MCP-Toolsets": "pages",
            "X-MCP-Tools": "svc_list_sites,svc_delete_site",
            "X-MCP-Exclude-Tools": "svc_delete_site,svc_delete_page",
        }
        names = self.names(handshake, headers)
        assert {"svc_list_sites", "svc_get_page"} <= set(names)
        assert not {"svc_delete_site", "svc_delete_page"} & set(names)

    def test_a_filtered_out_tool_cannot_be_called(self, client: Client) -> None:
        params = {"name": "svc_create_site", "arguments": {"title": "x"}}
        answer = client.request("tools/call", params, {"X-MCP-Readonly": "true"})
        told = json.loads(rpc(answer)["result"]["content"][0]["text"])
        assert (told["httpStatus"], told["data"]["code"]) == (403, "forbidden")

"""The tool server checks keys, plans, methods and origins before dispatch."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import RateLimitedError, UnavailableError
from chalicelib.core.settings import read
from tests.conftest import Answer, Api, Owner, call_operator
from tests.transports.mcp_dispatch.helpers import Client

SITE_TOOLS, PAGE_TOOLS = "/s/none/mcp", "/book/none/mcp"
PING = {"jsonrpc": "2.0", "id": "a-7", "method": "ping"}


class TestRefusals:
    """A refusal is a JSON-RPC error, beside which the data of the envelope stands."""

    @staticmethod
    def check(answer: Answer, status: int, code: str, request_id: object) -> dict[str, Any]:
        body = json.loads(answer.body)
        assert list(body) == ["jsonrpc", "id", "error", "data"]
        assert (answer.status, body["jsonrpc"], body["id"]) == (status, "2.0", request_id)
        assert (body["error"]["code"], body["error"]["message"]) == (-32000, answer.data["message"])
        reason: dict[str, Any] = body["error"]["data"]
        assert (reason["code"], answer.data["code"]) == (code, code)
        assert reason["requestId"] == answer.data["requestId"] == answer.headers["X-Request-Id"]
        assert (answer.data["status"], answer.headers["Content-Type"]) == (
            False,
            "application/json",
        )
        return reason

    def test_every_check_before_dispatch_refuses_with_the_id_of_the_request(
        self, api: Api, owner: Owner
    ) -> None:
        answer = Api(None).call("POST", "/api/mcp", PING)
        self.check(answer, 401, "unauthorized", "a-7")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
        origin = {"Origin": "https://evil.example"}
        for path in ("/api/mcp", PAGE_TOOLS, SITE_TOOLS):
            self.check(api.call("POST", path, PING, origin), 403, "forbidden", "a-7")
            padded = {**PING, "params": {"pad": "x" * 5_000_000}}
            self.check(api.call("POST", path, padded), 413, "payload_too_large", None)
            answer = api.call("DELETE", path)
            if path != SITE_TOOLS:  # API Gateway has no such route.
                self.check(answer, 405, "method_not_allowed", None)
                assert "POST" in answer.headers["Allow"]
        for path in (PAGE_TOOLS, SITE_TOOLS):
            self.check(Api(None).call("POST", path, PING), 404, "not_found", "a-7")
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        self.check(api.call("POST", "/api/mcp", PING), 403, "plan_required", "a-7")

    @pytest.mark.parametrize(
        ("error", "status", "retry_after"),
        [
            (RateLimitedError("Too many.", headers={"Retry-After": "7"}), 429, 7),
            (UnavailableError(), 503, 2),
            (RuntimeError(), 500, None),
        ],
        ids=["429", "503", "500"],
    )
    def test_a_failure_says_when_to_try_again(
        self,
        error: Exception,
        status: int,
        retry_after: int | None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("chalicelib.transports.mcp.authenticate_tool_call", fail)
        answer = Api("key").call("POST", "/api/mcp", PING)
        reason = self.check(answer, status, answer.data["code"], "a-7")
        assert reason.get("retryAfter") == retry_after
        assert answer.headers.get("Retry-After") == (str(retry_after) if retry_after else None)

    @pytest.mark.parametrize(
        ("body", "request_id"),
        [
            (b'{"id": 7}', 7),
            (b'{"id": true}', None),
            (b'{"id": 1.5}', None),
            (b'{"id": {"a": 1}}', None),
            (b'{"id": "\\ud800"}', None),
            (b'[{"id": 7}]', None),
            (b'{"id": 7', None),
            (b"[" * 5_000, None),
            (b"", None),
            (b'{"id": 7, "pad": "' + b"x" * 66_000 + b'"}', None),
        ],
    )
    def test_a_request_without_a_readable_id_is_refused_without_one(
        self, body: bytes, request_id: object
    ) -> None:
        self.check(Api(None).call("POST", "/api/mcp", body), 401, "unauthorized", request_id)


class TestBeforeDispatch:
    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc":"2.0"}'])
    @pytest.mark.parametrize("authorization", [None, "Bearer nope", "Basic x"])
    def test_nothing_is_parsed_without_a_key(self, body: bytes, authorization: str | None) -> None:
        headers = {"Authorization": authorization} if authorization else {}
        answer = Api(None).call("POST", "/api/mcp", body, headers)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")

    def test_nothing_is_parsed_below_business(self, owner: Owner) -> None:
        api = owner.api()
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        answer = api.call("POST", "/api/mcp", b"{")
        assert (answer.status, answer.data["code"]) == (403, "plan_required")

    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
    def test_only_post_is_allowed(self, api: Api, method: str) -> None:
        answer = api.call_refused(method, "/api/mcp")
        assert (answer.status, answer.data["code"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "POST"

    def test_more_than_five_megabytes_is_413(self, api: Api) -> None:
        answer = api.call("POST", "/api/mcp", b" " * 5_000_001)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")

    @pytest.mark.parametrize(
        ("origin", "status"),
        [
            ("http://127.0.0.1:8000", 200),
            ("http://localhost:6274", 200),
            ("http://[::1]:8001", 200),
            ("https://localhost", 200),
            ("https://evil.example", 403),
            ("null", 403),
            ("http://localhost.evil.example", 403),
            ("http://127.0.0.1.evil.example:8000", 403),
            ("http://127.0.0.1@evil.example", 403),
            ("vscode-file://localhost", 403),
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
    def _is_configured(self, reload_settings: Callable[[], None]) -> None:
        os.environ["ALLOWED_ORIGINS"] = f"https://other.example {self.APP}"
        reload_settings()

    def request(
        self, origin: str, method: str = "POST", allowed_headers: str = "authorization"
    ) -> Answer:
        """Send a preflight as a browser does, without the key."""
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": allowed_headers,
        }
        return Api(None).call("OPTIONS", "/api/mcp", headers=headers)

    @staticmethod
    def header_names(answer: Answer, header: str) -> set[str]:
        return {name.strip().lower() for name in answer.headers[header].split(",")}

    @pytest.mark.parametrize("origin", [APP, "https://other.example", "http://localhost:8001"])
    def test_a_preflight_of_an_admitted_origin_is_answered(self, origin: str) -> None:
        answer = self.request(origin)
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert self.header_names(answer, "Access-Control-Allow-Methods") >= {
            "post",
            "get",
            "delete",
        }
        assert self.header_names(answer, "Access-Control-Allow-Headers") >= {
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
        for answer in (self.request(origin), api.call("POST", "/api/mcp", {}, {"Origin": origin})):
            assert (answer.status, answer.data["code"]) == (403, "forbidden")
            assert "ALLOWED_ORIGINS" in answer.data["message"]
            assert answer.headers["Vary"] == "Accept-Encoding, Origin"
            assert not [name for name in answer.headers if name.startswith("Access-Control")]

    def test_an_admitted_origin_may_read_every_answer(self, api: Api, owner: Owner) -> None:
        headers = {"Origin": self.APP}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        start = owner.api()
        answers = {
            200: api.call("POST", "/api/mcp", message, headers),
            202: api.call("POST", "/api/mcp", {"jsonrpc": "2.0", "method": "x"}, headers),
            400: api.call("POST", "/api/mcp", b"{", headers),
            401: Api("wrong").call("POST", "/api/mcp", message, headers),
            405: api.call("GET", "/api/mcp", headers=headers),
            413: api.call("POST", "/api/mcp", b" " * 5_000_001, headers),
        }
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        answers[403] = start.call("POST", "/api/mcp", message, headers)
        for status, answer in answers.items():
            assert answer.status == status
            assert answer.headers["Access-Control-Allow-Origin"] == self.APP
            assert answer.headers["Vary"] == "Accept-Encoding, Origin"
            exposed_headers = self.header_names(answer, "Access-Control-Expose-Headers")
            assert {"x-request-id", "retry-after", "www-authenticate"} <= exposed_headers

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


CLIENT_ORIGINS = [
    *("https://claude.ai", "https://chatgpt.com", "vscode-file://vscode-app", "null"),
    *("http://localhost:6274", "https://evil.example", "app://obsidian.md"),
]


class TestOtherBaseUrls:
    PUBLIC_URL = "https://api.example.com"

    @pytest.fixture
    def configure(self, reload_settings: Callable[[], None]) -> Callable[..., None]:
        def change(**variables: str) -> None:
            os.environ.update(variables)
            reload_settings()

        return change

    @staticmethod
    def statuses(api: Api, origin: str) -> tuple[int, int]:
        """Return the statuses of a preflight and of a call, which must allow the origin alike."""
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        preflight = Api(None).call("OPTIONS", "/api/mcp", headers=headers)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = api.call("POST", "/api/mcp", message, {"Origin": origin})
        for response in (preflight, answer):
            allowed = origin if response.status < 300 else None
            assert response.headers.get("Access-Control-Allow-Origin") == allowed
            assert "Access-Control-Allow-Credentials" not in response.headers
        return preflight.status, answer.status

    @pytest.mark.parametrize("origin", CLIENT_ORIGINS)
    def test_pages_of_every_origin_are_served_on_https(
        self, origin: str, api: Api, configure: Callable[..., None]
    ) -> None:
        configure(PUBLIC_URL=self.PUBLIC_URL)
        assert self.statuses(api, origin) == (204, 200)

    def test_other_origins_can_be_denied_on_https(
        self, api: Api, configure: Callable[..., None]
    ) -> None:
        configure(
            PUBLIC_URL=self.PUBLIC_URL, DENY_OTHER_ORIGINS="1", ALLOWED_ORIGINS="https://claude.ai"
        )
        for origin in (*CLIENT_ORIGINS, self.PUBLIC_URL):
            served = origin in {"https://claude.ai", self.PUBLIC_URL}
            assert self.statuses(api, origin) == ((204, 200) if served else (403, 403)), origin

    def test_a_server_in_a_local_network_serves_its_own_and_loopback_origins(
        self, api: Api, configure: Callable[..., None]
    ) -> None:
        own_origin = "http://192.168.0.5:8000"
        configure(PUBLIC_URL=own_origin, ALLOWED_ORIGINS="https://chatgpt.com")
        served = {own_origin, "http://localhost:6274", "https://chatgpt.com"}
        for origin in (
            *CLIENT_ORIGINS,
            own_origin,
            "http://192.168.0.5",
            "http://192.168.0.6:8000",
        ):
            expected = (204, 200) if origin in served else (403, 403)
            assert self.statuses(api, origin) == expected, origin

    @pytest.mark.parametrize("value", ["yes", "2", "true"])
    def test_another_value_of_the_switch_stops_the_start(self, value: str) -> None:
        with pytest.raises(ValueError, match="DENY_OTHER_ORIGINS: expected 1 or 0"):
            read({"DENY_OTHER_ORIGINS": value})

"""Behind the edge, requests without the edge's secret are refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import app as application
from chalicelib.engine import audit
from tests.conftest import Answer, Api, Owner
from tests.factories.examples import Things

SECRET = "kept between the edge and its origins"
BEHIND = {"X-Origin-Secret": SECRET}
OUTSIDE: list[dict[str, str]] = [
    {},
    {"X-Origin-Secret": "guess"},
    {"X-Origin-Secret": ""},
    {"X-Origin-Secret": "ёж"},
    {"X-Origin-Secret": SECRET + " "},
    {"X-Edge-Secret": SECRET},
]


@pytest.fixture
def edge(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    monkeypatch.setenv("EDGE_SECRET", SECRET)
    monkeypatch.setenv("SITES_DOMAIN", "sites.example")
    reload_settings()


def call(method: str, path: str, headers: dict[str, str], body: Any = None) -> Answer:
    return Api(None).call(method, path, body, headers)


@pytest.mark.usefixtures("edge", "database")
class TestWithoutTheSecret:
    @pytest.mark.parametrize("headers", OUTSIDE)
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/api/health"),
            ("GET", "/api/openapi.json"),
            ("GET", "/api/projects/list"),
            ("POST", "/api/mcp"),
            ("GET", "/blog"),
            ("GET", "/widget.js"),
            ("GET", "/s/bakery"),
            ("POST", "/api/public/hit"),
            ("OPTIONS", "/api/public/hit"),
        ],
    )
    def test_no_request_is_answered(self, method: str, path: str, headers: dict[str, str]) -> None:
        answer = call(method, path, headers)
        assert (answer.status, answer.data["code"]) == (403, "forbidden")
        assert SECRET not in answer.body.decode()

    def test_the_refusal_of_a_public_call_is_readable_from_any_origin(self) -> None:
        answer = call("POST", "/api/public/hit", {})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"

    def test_the_refusal_does_not_reveal_which_paths_exist(self) -> None:
        about = {"httpMethod": "GET", "resourcePath": "/api/nope", "identity": {}}
        event: dict[str, Any] = {"requestContext": about, "headers": None, "path": "/api/nope"}
        assert application.app(event, None)["statusCode"] == 403
        event["headers"] = BEHIND
        assert application.app(event, None)["statusCode"] == 404

    def test_a_valid_key_does_not_help(self, api: Api) -> None:
        assert api.call_refused("GET", "/api/projects/list").status == 403


class TestWithTheSecret:
    def test_requests_are_answered(self, database: None, edge: None) -> None:
        assert call("GET", "/api/health", BEHIND).status == 200

    def test_the_visitors_ip_comes_from_the_edge(self, owner: Owner, api: Api, edge: None) -> None:
        headers = {
            **BEHIND,
            "X-Viewer-Address": "2001:db8::7",
            "X-Forwarded-For": "192.0.2.1, 192.0.2.2",
        }
        body = {"title": "Bakery"}
        assert api.call("POST", "/api/projects/create", body, headers).status == 200
        assert audit.latest(owner.workspace.id, 1)[0].client_ip == "2001:db8::7"

    def test_a_site_is_recognised_by_the_forwarded_host(
        self, api: Api, things: Things, edge: None
    ) -> None:
        body = {"id": things.home, "html": "<p>Bread"}
        assert api.call("POST", "/api/pages/save-html", body, BEHIND).status == 200
        host = {"X-Forwarded-Host": "Bakery.sites.example"}
        assert call("GET", "/s/bakery", BEHIND | host).status == 200
        headers = {"Host": "bakery.sites.example", "X-Forwarded-Host": "other.sites.example"}
        assert call("GET", "/s/bakery", BEHIND | headers).status == 404
        assert call("GET", "/s/bakery", BEHIND | {"Host": headers["Host"]}).status == 404


class TestWhileTheSecretIsReplaced:
    @pytest.fixture(autouse=True)
    def _two_secrets(
        self, edge: None, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("EDGE_SECRET_PREVIOUS", "the former one")
        reload_settings()

    @pytest.mark.parametrize("secret", [SECRET, "the former one"])
    def test_both_secrets_are_accepted(self, database: None, secret: str) -> None:
        assert call("GET", "/api/health", {"X-Origin-Secret": secret}).status == 200

    @pytest.mark.parametrize("headers", OUTSIDE)
    def test_no_other_secret_is_accepted(self, database: None, headers: dict[str, str]) -> None:
        assert call("GET", "/api/health", headers).status == 403


def test_a_former_secret_alone_configures_no_edge(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None], database: None
) -> None:
    monkeypatch.setenv("EDGE_SECRET_PREVIOUS", "the former one")
    reload_settings()
    assert call("GET", "/api/health", {}).status == 200


class TestWithoutAnEdge:
    def test_forwarded_ips_are_ignored(self, owner: Owner, api: Api) -> None:
        headers = {"X-Viewer-Address": "192.0.2.1", "X-Forwarded-For": "192.0.2.2"}
        body = {"title": "Bakery"}
        assert api.call("POST", "/api/projects/create", body, headers).status == 200
        assert audit.latest(owner.workspace.id, 1)[0].client_ip == "127.0.0.1"

    def test_a_forwarded_host_is_ignored(
        self, things: Things, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("SITES_DOMAIN", "sites.example")
        reload_settings()
        forwarded = call("GET", "/s/bakery", {"X-Forwarded-Host": "bakery.sites.example"})
        assert b"no site at this address" in forwarded.body
        direct = call("GET", "/s/bakery", {"Host": "bakery.sites.example"})
        assert b"no site at this address" not in direct.body


def test_the_secret_is_in_no_answer_or_log(
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
    database: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("EDGE_SECRET", SECRET)
    reload_settings()
    answer = call("GET", "/api/health", {"X-Origin-Secret": "guess"})
    output = json.dumps([answer.headers, answer.body.decode(), *capsys.readouterr()])
    assert SECRET not in output
    assert "guess" not in output

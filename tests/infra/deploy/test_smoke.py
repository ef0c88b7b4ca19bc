"""The smoke test passes a working service, and names the fault of a broken one."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

import app as application
from chalicelib.core import settings as settings_module
from chalicelib.domains.oauth.rules import resources
from chalicelib.transports import edge
from chalicelib.transports.api_docs import reference
from infra.deploy import smoke
from infra.deploy.package import build as package
from infra.deploy.smoke import Check, Target
from infra.local import devserver
from tests.conftest import Api, Owner
from tests.factories.examples import Things
from tests.support.patience import stretched
from tests.transports.conftest import LocalServer, serving

UNTRIED = {"chat: probe streams", "chat: answer streams", "tools/list", "origins refuse"}


def outcomes(target: Target) -> dict[str, Check]:
    return {check.name: check for check in smoke.run(target)}


def failed(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.why for name, check in checks.items() if check.ok is False}


@pytest.fixture(scope="module")
def server(_server: Callable[[], None]) -> Iterator[LocalServer]:
    with serving(application.app, *devserver.ROUTES) as running:
        yield running


@pytest.fixture
def service_url(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, database: None
) -> Iterator[str]:
    """The URL of the whole service, as ``make dev`` serves it."""
    url = f"http://127.0.0.1:{server.port}"
    local_settings = replace(settings_module.settings(), public_url=url)
    monkeypatch.setattr(reference, "settings", lambda: local_settings)
    monkeypatch.setattr(resources, "settings", lambda: local_settings)
    reference._response.cache_clear()
    yield url
    reference._response.cache_clear()


def test_local_stack_passes(service_url: str) -> None:
    checks = outcomes(Target(service_url))
    assert failed(checks) == {}
    assert {name for name, check in checks.items() if check.ok is None} == UNTRIED


def test_ai_clients_find_out_where_users_sign_in(
    service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = smoke.sign_in(service_url)
    assert (findings.ok, findings.why) == (True, service_url)
    monkeypatch.setattr(resources, "challenge", lambda *_, **__: "Bearer")
    findings = smoke.sign_in(service_url)
    assert findings.ok is False
    assert findings.why.startswith(f'expected resource_metadata="{service_url}/.well-known/')
    assert Target(service_url).origins == (), "a stage without an edge has a renamed header"
    assert failed(outcomes(Target(service_url))) == {}


def test_the_challenge_is_checked_with_a_key_as_well(
    service_url: str, monkeypatch: pytest.MonkeyPatch, new_owner: Callable[..., Owner]
) -> None:
    target = Target(service_url, key=new_owner().token(), origins=(service_url,))
    (outcome,) = smoke.run(target, ["tools/list"])
    assert (outcome.ok, outcome.why.endswith(" tools")) == (True, True)
    monkeypatch.setattr(resources, "challenge", lambda *_, **__: "Bearer")
    (outcome,) = smoke.run(target, ["tools/list"])
    assert (outcome.ok, outcome.why[:29]) == (False, 'expected resource_metadata="h')


def test_tools_and_a_bot_are_checked_with_a_key(
    service_url: str, new_owner: Callable[..., Owner]
) -> None:
    owner = new_owner()
    bot = {"name": "Baker", "systemPrompt": "You sell bread.", "model": "gpt-4o-mini"}
    agent = owner.api().post("/api/agents/create", bot)["agent"]["id"]
    checks = outcomes(Target(service_url, key=owner.token(), agent=agent))
    assert checks["tools/list"].ok
    assert checks["tools/list"].why.endswith(" tools")
    # Nobody has paid for this bot.
    assert "429" in failed(checks)["chat: answer streams"]


def test_the_smoke_test_checks_a_page_of_a_site(service_url: str, api: Api, things: Things) -> None:
    page = f"{service_url}/s/bakery/"
    assert "status 200" in failed(outcomes(Target(service_url, site_page=page)))["site page"]
    api.post("/api/pages/save-html", {"id": things.home, "html": "<p>Bread"})
    check = outcomes(Target(service_url, site_page=page))["site page"]
    assert (check.ok, check.why) == (True, "")


def test_a_script_that_is_not_the_widget_fails_the_smoke_test() -> None:
    javascript = {"Content-Type": "text/javascript", "X-Content-Type-Options": "nosniff"}
    with broken(headers_=javascript, body=b"alert(1)") as url:
        why = failed(outcomes(Target(url)))["widget.js"]
    assert why == "expected the script that calls the chat; came 'alert(1)'"


class Broken(BaseHTTPRequestHandler):
    """A server that returns the same response to every request."""

    status, headers_, body, pause = 200, {"Content-Type": "text/html"}, b"<h1>It works!</h1>", 0.0
    pieces: tuple[bytes, ...] = ()

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.send_response(self.status)
        for name, value in self.headers_.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in self.pieces or (self.body,):
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(self.pause)

    do_GET = do_POST = do_DELETE = do_OPTIONS = answer  # noqa: N815  http.server's names


@contextmanager
def broken(**how: Any) -> Iterator[str]:
    """Run the broken server, and yield its base URL."""
    handler = type("Handler", (Broken,), how)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


JSON = {"Content-Type": "application/json"}


def test_another_site_fails_every_check() -> None:
    with broken() as url:
        target = Target(
            url, key="k", agent="a", origins=(url,), edge_secret="s", site_page=f"{url}/s/bakery"
        )
        checks = outcomes(target)
    assert set(failed(checks)) == set(smoke.CHECKS)
    assert "expected JSON; came '200 text/html'" in checks["health"].why


def test_unreachable_url_fails_every_check_without_a_traceback() -> None:
    with broken() as url:
        pass
    checks = outcomes(Target(url, origins=(url,)))
    assert set(failed(checks)) == set(smoke.CHECKS) - {
        "chat: probe streams",
        "chat: answer streams",
    }
    assert {check.why for check in checks.values() if check.ok is False} == {
        "no answer: ConnectionError"
    }


def test_default_responses_of_api_gateway_fail() -> None:
    """API Gateway's default response, which contains the key, fails the check."""
    body = (
        b'{"message": "\'Bearer svc_live_0\' not a valid key=value pair in Authorization header"}'
    )
    with broken(status=403, headers_=JSON, body=body) as url:
        failures = failed(outcomes(Target(url)))
    assert "expected status 404; came '403" in failures["unknown path"]
    assert "expected status 401" in failures["no key, made-up key"]


def test_an_envelope_without_a_request_id_fails() -> None:
    body = b'{"data": {"status": false, "message": "No.", "code": "not_found"}}'
    with broken(status=404, headers_=JSON, body=body) as url:
        failures = failed(outcomes(Target(url)))
    assert "a requestId" in failures["unknown path"]
    assert "expected status 200" in failures["health"]


def events(*kinds: str) -> list[bytes]:
    return [f"data: {json.dumps({'type': kind})}\n\n".encode() for kind in kinds]


STREAM = {"Content-Type": "text/event-stream", "Access-Control-Allow-Origin": "*"}


def test_streamed_answer_passes() -> None:
    pieces = tuple(events("start", "chunk", "done"))

    def attempt(pause: float) -> bool:
        with broken(headers_=STREAM, pieces=pieces, pause=pause) as url:
            return outcomes(Target(url, agent="a"))["chat: answer streams"].ok

    stretched(attempt, 0.1, bool)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"body": b"".join(events("start", "chunk", "done"))}, "came 'all of it after 0.30 s'"),
        ({"body": b"".join(events("start", "chunk"))}, "expected start, chunks, done"),
        ({"body": b"".join(events("start", "error"))}, "expected start, chunks, done"),
        ({"body": b"".join(events("start", "done"))}, "expected the answer in chunks"),
        ({"headers_": JSON}, "expected text/event-stream"),
        ({"headers_": {"Content-Type": "text/event-stream"}}, "Access-Control-Allow-Origin: *"),
    ],
    ids=["buffered", "cut off", "error", "empty", "no stream", "no CORS"],
)
def test_answer_that_is_no_stream_fails(
    how: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def buffered(handler: Broken) -> None:
        """Collect a response and send it at its end, as a buffering proxy does."""
        now[0] += 0.3
        handler.answer()

    monkeypatch.setattr(smoke, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with broken(**({"headers_": STREAM, "do_POST": buffered} | how)) as url:
        assert says in failed(outcomes(Target(url, agent="a")))["chat: answer streams"]


def test_origin_that_answers_without_the_secret_fails(service_url: str) -> None:
    assert (
        "expected status 403"
        in failed(outcomes(Target(service_url, origins=(service_url,))))["origins refuse"]
    )


def test_origin_that_requires_the_secret_passes(
    service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = replace(settings_module.settings(), edge_secret="of the edge")
    monkeypatch.setattr(edge, "settings", lambda: secret)
    assert outcomes(Target(service_url, origins=(service_url,)))["origins refuse"].ok


def test_base_url_of_the_functions_must_match(
    service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    reference._response.cache_clear()
    why = failed(outcomes(Target(service_url)))["openapi.json"]
    assert why == f"expected it to name {service_url}; came 'http://127.0.0.1:8000'"


def test_the_command_prints_a_table_and_json_and_fails() -> None:
    with broken() as url:
        process = subprocess.run(
            [sys.executable, "-m", "infra", "smoke", "--url", url],
            cwd=package.ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
    assert process.returncode == 1
    printed = json.loads(process.stdout)
    assert printed["url"] == url
    assert [check["ok"] for check in printed["checks"]].count(False) == 13
    *table, last = process.stderr.splitlines()
    assert table[0].startswith("FAILED  health ")
    assert last.startswith("Failed: health, unknown path, ")

"""The smoke test of a stage without an edge: a base URL with a path, and a chat of its own."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

import app as application
from chalicelib.core import settings as settings_module
from chalicelib.domains.oauth.rules import resources
from chalicelib.transports.api_docs import reference
from infra.deploy import smoke
from infra.local import devserver
from tests.support.patience import PATIENCE
from tests.transports.conftest import LocalServer, serving


@pytest.fixture(scope="module")
def server(_server: Callable[[], None]) -> Iterator[LocalServer]:
    with serving(application.app, *devserver.ROUTES) as running:
        yield running


@pytest.fixture
def chat_url(server: LocalServer) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def api_url(chat_url: str) -> Iterator[str]:
    """API Gateway: it serves the stage as a path, without the chat."""

    class Gateway(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def forward(self) -> None:
            path = self.path.removeprefix("/dev")
            if path in {self.path, smoke.CHAT}:
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = requests.request(
                self.command,
                chat_url + path,
                data=body,
                headers={name: text for name, text in self.headers.items() if name != "Host"},
                allow_redirects=False,
                timeout=PATIENCE,
            )
            self.send_response(answer.status_code)
            for name, text in answer.headers.items():
                if name not in {"Content-Encoding", "Content-Length", "Transfer-Encoding"}:
                    self.send_header(name, text)
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_DELETE = do_OPTIONS = forward  # noqa: N815  http.server's names

    gateway = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    thread = threading.Thread(target=gateway.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{gateway.server_port}/dev"
    gateway.shutdown()
    gateway.server_close()
    thread.join()


def failed(target: smoke.Target) -> set[str]:
    return {check.name for check in smoke.run(target) if check.ok is False}


def test_the_smoke_test_passes_on_a_stage_without_an_edge(
    api_url: str, chat_url: str, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(settings_module.settings(), public_url=api_url, chat_url=chat_url)
    monkeypatch.setattr(reference, "settings", lambda: known)
    monkeypatch.setattr(resources, "settings", lambda: known)
    reference._response.cache_clear()
    assert failed(smoke.Target(api_url, chat_url=chat_url)) == set()
    assert failed(smoke.Target(api_url)) == {"chat: preflight", "chat: unknown bot"}
    reference._response.cache_clear()

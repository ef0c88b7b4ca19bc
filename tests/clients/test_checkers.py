"""Checkers of others: MCP's conformance suite, redocly for the OpenAPI document, vnu for pages."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import httpx
import pytest

from tests.clients.client import JAVASCRIPT, Server
from tests.support.patience import PATIENCE

PROGRAMS = JAVASCRIPT / "node_modules" / ".bin"
SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")
"""The scenarios for a server with tools only. The others call tools that only a test server has."""
PAGES = (
    "/",
    "/blog",
    "/api/docs",
    "/api/docs/tool-server",
    "/api/docs/products",
    "/console/sign-in",
    "/api/docs/bookings",
)

pytestmark = pytest.mark.skipif(
    not PROGRAMS.exists(), reason="npm was not found, so no checker was installed"
)


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run an installed program, on the Node that is installed with it."""
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        words,
        env={**os.environ, "PATH": path, "REDOCLY_TELEMETRY": "off"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def adding_key(server: Server) -> Iterator[str]:
    """The URL of a proxy that adds the API key, which the conformance suite cannot."""
    place = urlsplit(server.url).netloc

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.title(): value for name, value in self.headers.items()}
            headers.pop("Connection", None)
            ours = f"127.0.0.1:{proxy.server_port}"
            for name in {"Host", "Origin"} & headers.keys():
                headers[name] = re.sub(rf"(^|//){ours}$", rf"\g<1>{place}", headers[name])
            upstream = HTTPConnection(place, timeout=PATIENCE)
            upstream.request(self.command, self.path, body, headers | server.headers)
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _forward  # noqa: N815  the base class's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        proxy.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that leave
        Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}"
        proxy.shutdown()


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("of_booking_page", [False, True], ids=["workspace", "booking page"])
def test_a_tool_server_passes_the_conformance_suite(
    scenario: str, of_booking_page: bool, adding_key: str, booking_page: str
) -> None:
    path = f"{booking_page}/mcp" if of_booking_page else "/api/mcp"
    process = run("conformance", "server", "--url", adding_key + path, "--scenario", scenario)
    assert process.returncode == 0, f"{process.stdout[-1000:]}{process.stderr[-500:]}"


def test_the_openapi_document_has_no_problem(tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    url = f"{os.environ['BASE_URL']}/api/openapi.json"
    document.write_bytes(httpx.get(url, timeout=PATIENCE).content)
    process = run("redocly", "lint", str(document), "--format=json")
    report = json.loads(process.stdout[process.stdout.index("{") :])
    assert [f"{problem['ruleId']}: {problem['message']}" for problem in report["problems"]] == []


@pytest.mark.skipif(shutil.which("java") is None, reason="vnu needs Java")
def test_pages_are_valid_html(tmp_path: Path) -> None:
    for number, path in enumerate(PAGES):
        url = f"{os.environ['BASE_URL']}{path}"
        answer = httpx.get(url, headers={"Accept": "text/html"}, timeout=PATIENCE)
        (tmp_path / f"{number}.html").write_bytes(answer.raise_for_status().content)
    options = ("--format", "json", "--skip-non-html", "--stdout", "--exit-zero-always")
    process = run("vnu", *options, str(tmp_path))
    problems = [
        (PAGES[int(Path(problem["url"]).stem)], problem.get("lastLine"), problem["message"])
        for problem in json.loads(process.stdout)["messages"]
        if problem["type"] != "info"
    ]
    assert problems == []

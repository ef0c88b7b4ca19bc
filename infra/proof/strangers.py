"""The part of the proof with findings of external tools.

They need Node, which a machine may lack; then they do not run, and the figures say so. CI runs
further ones by itself: the AI frameworks (``make test-clients``), schemathesis (``make fuzz``) and
the official MCP SDK (``tests/transports/test_mcp_sdk.py``).
"""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import requests

from infra.proof.parts import ROOT, Figures, Part

NODE = "node@22.23.3"
"""The Node that the conformance suite needs, whichever the machine has."""
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
REDOCLY = "@redocly/cli@2.77.0"
HTML_CHECKER = "vnu-jar@26.9.27"
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
MAX_SHOWN = 20


log = logging.getLogger(__name__)


class FindingError(Exception):
    """A tool found an error."""


def run(minutes: float) -> Figures:
    """Run the tools against a fresh local server.

    Raises:
        FindingError: a tool found an error.
    """
    if missing := _missing():
        return {"missing": missing}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "figures.json")
        command = [sys.executable, "-m", "tests.support.with_server", "--within", f"{minutes * 60}"]
        inside = [sys.executable, "-m", "infra.proof.strangers", str(out)]
        subprocess.run([*command, *inside], cwd=ROOT, check=True)
        figures: Figures = json.loads(out.read_text())
    if errors := [error for figure in figures["tools"] for error in figure["errors"]]:
        raise FindingError("\n".join(errors[:MAX_SHOWN]))
    return figures


def _missing() -> str:
    """Return what the machine lacks, or "", so that a lost network is not a finding."""
    if shutil.which("npx") is None:
        return "npx, which comes with Node"
    installed = _npx(["node", "--version"])
    if installed.returncode:
        log.warning("npx installs nothing: %s", installed.stderr[-500:])
        return "these tools, which npx could not install"
    return ""


def _against(url: str, *, key: str) -> Figures:
    """Run each tool against a server."""
    return {"tools": [_conformance(url, key=key), _openapi(url), _html(url)]}


def _conformance(url: str, *, key: str) -> Figures:
    """Run the scenarios against the tool server, and against the open tools of a booking page."""
    errors = []
    call = requests.get(
        f"{url}/api/workspaces/list", headers={"Authorization": f"Bearer {key}"}, timeout=60
    )
    slug = call.json()["data"]["workspaces"][0]["slug"]
    runs = [(path, name) for path in ("/api/mcp", f"/book/{slug}/mcp") for name in SCENARIOS]
    with _adding_key(url, key=key) as proxy:
        for path, scenario in runs:
            words = ["conformance", "server", "--url", proxy + path, "--scenario", scenario]
            process = _npx(words)
            if process.returncode:
                outcome = f"{process.stdout[-1000:]}{process.stderr[-500:]}"
                errors.append(f"{path} {scenario}: {outcome}")
    return {"tool": CONFORMANCE, "what": "scenarios", "checked": len(runs), "errors": errors}


def _openapi(url: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "openapi.json")
        document.write_bytes(requests.get(f"{url}/api/openapi.json", timeout=60).content)
        process = _npx(["redocly", "lint", str(document), "--format=json"])
        operations = sum(map(len, json.loads(document.read_text())["paths"].values()))
    report = json.loads(process.stdout[process.stdout.index("{") :])
    problems = [f"{problem['ruleId']}: {problem['message']}" for problem in report["problems"]]
    return {"tool": REDOCLY, "what": "operations", "checked": operations, "errors": problems}


def _html(url: str) -> Figures:
    """Check pages, without messages that are only information."""
    if shutil.which("java") is None:
        return {"tool": HTML_CHECKER, "what": "pages (Java is missing)", "checked": 0, "errors": []}
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(PAGES):
            answer = requests.get(f"{url}{path}", headers={"Accept": "text/html"}, timeout=60)
            answer.raise_for_status()
            Path(folder, f"{number}.html").write_bytes(answer.content)
        words = ["vnu", "--format", "json", "--skip-non-html", "--stdout", "--exit-zero-always"]
        process = _npx([*words, folder])
    messages = json.loads(process.stdout)["messages"]
    errors = [
        f"{PAGES[int(Path(fault['url']).stem)]} line {fault.get('lastLine')}: {fault['message']}"
        for fault in messages
        if fault["type"] != "info"
    ]
    return {"tool": HTML_CHECKER, "what": "pages", "checked": len(PAGES), "errors": errors}


def _npx(words: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command of the packages, which npx installs once."""
    packages = (NODE, CONFORMANCE, REDOCLY, HTML_CHECKER)
    package_options = [word for package in packages for word in ("--package", package)]
    return subprocess.run(
        ["npx", "--yes", *package_options, "--", *words],
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def _adding_key(url: str, *, key: str) -> Iterator[str]:
    """Serve a proxy that adds the API key for the conformance suite, and yield its URL."""
    place = urlsplit(url).netloc

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.title(): value for name, value in self.headers.items()}
            headers.pop("Connection", None)
            ours = f"127.0.0.1:{server.server_port}"
            for name in {"Host", "Origin"} & headers.keys():
                headers[name] = re.sub(rf"(^|//){ours}$", rf"\g<1>{place}", headers[name])
            upstream = HTTPConnection(place, timeout=60)
            upstream.request(self.command, self.path, body, headers | {"Authorization": key})
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
            """Log nothing."""

    key = f"Bearer {key}"
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that leave
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


OTHERS = """\
These are external tools that check the service. CI also runs AI frameworks (`make test-clients`,
[clients.md](clients.md)), schemathesis (`make fuzz`) and the official MCP SDK."""


def section(figures: Figures) -> str:
    """Return the figures as Markdown."""
    if missing := figures.get("missing"):
        return f"Not run: this machine lacks {missing}. {OTHERS}\n"
    lines = (
        f"| `{figure['tool']}` | {figure['checked']} {figure['what']} | {len(figure['errors'])} |"
        for figure in figures["tools"]
    )
    return "\n".join((OTHERS, "", "| tool | checked | errors |", "|---|---|---|", *lines))


PART = Part(
    name="strangers",
    title="External tools",
    minutes=4,
    minutes_in_ci=4,
    run=run,
    section=section,
)

if __name__ == "__main__":
    findings = _against(os.environ["BASE_URL"], key=os.environ["API_KEY"])
    Path(sys.argv[1]).write_text(json.dumps(findings))

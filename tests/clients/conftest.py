"""The server under test, and the rows of docs/clients.md that a whole run writes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Read when the frameworks are imported: they would report their use to their makers.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
os.environ |= {"MCP_USE_ANONYMIZED_TELEMETRY": "false", "DO_NOT_TRACK": "true"}

import httpx
import pytest

from tests.clients import page
from tests.clients.client import JAVASCRIPT, Framework, Server, javascript_versions, version_of
from tests.clients.environment import FRAMEWORKS, SDKS
from tests.support.loopback import _loopback_only  # noqa: F401  a fixture
from tests.support.patience import PATIENCE

SDK = Path(__file__).parents[2] / "build" / "sdk"
TOOLS = SDK / "typescript" / "node_modules"
"""What ``make sdk`` has installed with npm."""
Project = Callable[[str], Path]

OFFERED = pytest.StashKey[dict[str, str]]()
"""Tools that each framework offers to its model, as a cell of the table."""


@pytest.fixture(scope="session")
def server() -> Server:
    """The tool server that ``tests.support.with_server`` started, with the demo's key."""
    if "BASE_URL" not in os.environ:
        pytest.exit("These tests need a running server: run make test-clients.", returncode=1)
    return Server(f"{os.environ['BASE_URL']}/api/mcp", os.environ["API_KEY"])


@pytest.fixture(params=FRAMEWORKS, ids=lambda framework: framework.package)
def framework(request: pytest.FixtureRequest, server: Server) -> Framework:
    """Each framework in turn."""
    return connected(request.param, server)


@pytest.fixture(scope="session")
def booking_page(server: Server) -> str:
    """The path of the demo's booking page."""
    answer = httpx.get(f"{os.environ['BASE_URL']}/api/workspaces/list", headers=server.headers)
    (workspace,) = answer.raise_for_status().json()["data"]["workspaces"]
    return f"/book/{workspace['slug']}"


@pytest.fixture(params=[*FRAMEWORKS, *SDKS], ids=lambda client: client.package)
def assistant(request: pytest.FixtureRequest, booking_page: str) -> Any:
    """Each kind of client in turn, as the assistant of a visitor of the demo's booking page."""
    return connected(request.param, Server(f"{os.environ['BASE_URL']}{booking_page}/mcp"))


@pytest.fixture(scope="session")
def version() -> str:
    """The version of the running service."""
    health = httpx.get(f"{os.environ['BASE_URL']}/api/health").raise_for_status()
    text: str = health.json()["data"]["version"]
    return text


@pytest.fixture(scope="session")
def project(version: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Create an empty project of a name with the package of ``npm pack``, and return its folder."""
    package = SDK / f"workspace-automation-{version}.tgz"
    if not package.exists():
        pytest.skip("npm was not found, so no TypeScript package was made")

    def create(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        (folder / "package.json").write_text('{"type": "module", "private": true}')
        install = ("npm", "install", "--offline", "--no-audit", "--no-fund", package)
        subprocess.run(install, cwd=folder, check=True, timeout=PATIENCE)
        for types in ("@types", "undici-types"):
            (folder / "node_modules" / types).symlink_to(TOOLS / types)
        return folder

    return create


def connected(client: Any, server: Server) -> Any:
    """Return a client of a server."""
    if client.package in javascript_versions() and not (JAVASCRIPT / "node_modules").exists():
        pytest.skip("npm was not found, so no JavaScript client was installed")
    return client(server)


@pytest.fixture
def record_offered(request: pytest.FixtureRequest) -> dict[str, str]:
    """Records the tools that each framework offers, for the table in docs/clients.md."""
    return request.config.stash.setdefault(OFFERED, {})


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the rows if no test failed and the tools of every framework were recorded."""
    versions = session.config.stash.get(OFFERED, {})
    if exitstatus == pytest.ExitCode.OK and len(versions) == len(FRAMEWORKS):
        page.write(
            [
                (
                    framework.package,
                    version_of(framework.package),
                    versions[framework.package],
                    framework.failure,
                )
                for framework in FRAMEWORKS
            ]
        )

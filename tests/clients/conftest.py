"""The server under test, and the table of docs/clients.md that a whole run writes."""

import os

import pytest

from tests.clients import page
from tests.clients.frameworks import (
    FRAMEWORKS,
    JAVASCRIPT,
    Framework,
    LangchainGemini,
    Server,
    version_of,
)
from tests.support.loopback import _loopback_only  # noqa: F401  a fixture

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
    if request.param is LangchainGemini and not (JAVASCRIPT / "node_modules").exists():
        pytest.skip("npm was not found, so no JavaScript client was installed")
    framework: Framework = request.param(server)
    return framework


@pytest.fixture
def record_offered(request: pytest.FixtureRequest) -> dict[str, str]:
    """Records the tools that each framework offers, for the table in docs/clients.md."""
    return request.config.stash.setdefault(OFFERED, {})


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the table if no test failed and the tools of every framework were recorded."""
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

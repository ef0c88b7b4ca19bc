"""The Python and JavaScript examples of the documents run unchanged, on a local server."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

import app as application
from infra.local import devserver
from tests.conftest import Owner
from tests.factories.chat import new_bot
from tests.transports.conftest import serving

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
JAVASCRIPT = re.compile(r"^```js\n(.*?)^```", re.MULTILINE | re.DOTALL)
GENERATED = {"reference.md"}
"""Its examples are one a call, and tests of its own run them."""
PAGES = sorted(
    page
    for page in DOCS.glob("*.md")
    if page.name not in GENERATED and "```python" in page.read_text()
)


def test_some_pages_have_examples() -> None:
    assert {"booking.md", "bots.md", "catalogue.md", "forms.md", "sites.md", "tools.md"} <= {
        page.name for page in PAGES
    }


@pytest.fixture
def _server(
    owner: Owner, reload_settings: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A local server. Its URL and a key are in the environment, where the examples read them."""
    new_bot(owner)  # credits its owner, who pays for the chats of the examples
    with serving(application.app, *devserver.ROUTES) as server:
        base = f"http://127.0.0.1:{server.port}"
        monkeypatch.setenv("BASE_URL", base)
        monkeypatch.setenv("PUBLIC_URL", base)
        reload_settings()
        monkeypatch.setenv("API_KEY", owner.token())
        yield


@pytest.mark.usefixtures("real_clock", "_server")  # the examples use the real time
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, page.name, "exec"), names)  # noqa: S102  that is what they are for


@pytest.mark.usefixtures("real_clock", "_server")
def test_the_javascript_examples_run() -> None:
    script = "\n".join(JAVASCRIPT.findall((DOCS / "javascript.md").read_text()))
    node, _ = compute_driver_executable()  # Playwright brings Node.js, so none must be installed.
    process = subprocess.run(
        [node, "--input-type=module", "--eval", script],
        env={**os.environ, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "Assertion failed" not in process.stderr
    type_line, refusal, *answer = process.stdout.splitlines()
    assert type_line == "Rye bread 240"
    assert "RYE-1" in refusal
    assert "240" in "".join(answer)

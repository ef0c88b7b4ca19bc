"""The Python examples of the documents run as they stand, on a local server."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import app as application
from infra.local import devserver
from tests.conftest import Owner
from tests.factories.chat import new_bot
from tests.transports.conftest import serving

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
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


@pytest.mark.usefixtures("on_real_time")  # which the examples use
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(
    page: Path,
    owner: Owner,
    reload_settings: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new_bot(owner)  # credits its owner, who pays for the chats of the examples
    with serving(application.app, *devserver.ROUTES) as server:
        base = f"http://127.0.0.1:{server.port}"
        monkeypatch.setenv("BASE_URL", base)
        monkeypatch.setenv("PUBLIC_URL", base)
        reload_settings()
        monkeypatch.setenv("API_KEY", owner.token())
        names: dict[str, object] = {}
        for block in BLOCK.findall(page.read_text()):
            exec(compile(block, page.name, "exec"), names)  # noqa: S102  that is what they are for

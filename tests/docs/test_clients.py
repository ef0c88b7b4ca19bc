"""docs/clients.md names the versions that ``make test-clients`` installs, and all tools."""

import json
import re

from chalicelib.core.operations import REGISTRY, load_all
from tests.clients import page
from tests.docs.samples import ROOT

load_all()
TEXT = page.PAGE.read_text()
RERUN = "Run make test-clients, and commit what it writes into docs/clients.md."


def pins() -> dict[str, set[str]]:
    """Return the versions of each package in the requirements and the package.json files."""
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("requirements*.txt"):
        for name, version in re.findall(
            r"^([\w-]+)(?:\[.*?\])?==([\w.]+)", path.read_text(), re.MULTILINE
        ):
            found.setdefault(name.removesuffix("-cli"), set()).add(version)
    for path in (ROOT / "tests/clients/js/package.json", ROOT / "sdk/typescript/package.json"):
        package = json.loads(path.read_text())
        for name, version in (package.get("dependencies") or package["devDependencies"]).items():
            found.setdefault(name, set()).add(version.rpartition("@")[2])
    return found


def test_the_table_has_the_versions_of_the_frameworks_that_are_installed() -> None:
    pinned = pins()
    stale = {name: seen for name, seen in page.versions().items() if seen not in pinned[name]}
    assert stale == {}, RERUN


def test_the_table_has_the_number_of_tools() -> None:
    tools = sum(operation.tool is not None for operation in REGISTRY)
    offered = re.findall(r"\| all (\d+)", TEXT)
    assert len(offered) == len(page.versions())
    assert {*offered} == {str(tools)}, RERUN


def test_the_other_tables_have_the_versions_that_are_tested() -> None:
    """A version in the text is that of the requirements, where they have the package."""
    pinned = pins()
    _, _, rest = TEXT.partition(page.END)
    rows = re.findall(r"^\| [^|]*?`([@\w/-]+)`[^|]*\| ([\d.]+)[^|]*\|.*$", rest, re.MULTILINE)
    tested = {name: version for name, version in rows if name in pinned}
    assert {"openapi-generator", "openapi-typescript", "mcp-remote", "orval"} <= tested.keys()
    by_hand = {("orval", "7.13.2")}  # its other client, ``fetch``
    assert {row for row in rows if row[0] in pinned and row[1] not in pinned[row[0]]} == by_hand

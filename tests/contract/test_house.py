"""Each folder describes its content, and each domain has its floor and its documents."""

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

from tests.support.registers import check_register
from tests.support.sweep import sweep

ROOT = Path(__file__).parents[2]
MODULES = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "app.py", "chalicelib/*.py", "infra/*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    if (ROOT / name).exists()
]
PACKAGES = sorted({path.parent for path in MODULES if path.name == "__init__.py"})
PAGE = "docs/architecture.md"
DOMAINS = sorted(path.name for path in (ROOT / "chalicelib" / "domains").iterdir() if path.is_dir())


@sweep("package", PACKAGES)
def test_a_folder_says_what_is_in_it(package: Path) -> None:
    path = package / "__init__.py"
    assert ast.get_docstring(ast.parse(path.read_text())), (
        f"Add a docstring to {path.relative_to(ROOT)} that says what the folder has."
    )


def test_every_domain_has_a_floor_and_a_place_in_the_architecture() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (floors,) = (
        contract["layers"]
        for contract in contracts["contracts"]
        if contract["name"] == "Floors of the domains"
    )
    named_domains = re.findall(r"chalicelib\.domains\.(\w+)", " ".join(floors))
    check_register(
        named_domains,
        declared=[name for name in DOMAINS if name != "__pycache__"],
        place='layers of "Floors of the domains" in pyproject.toml',
        line="the domain, below the domains that use it",
    )
    page = (ROOT / PAGE).read_text()
    diagram, table = page.split("```mermaid")[1].split("```")[0], page.split("| folder |")[1]
    for name in named_domains:
        assert re.search(rf"\b{name}\b", diagram), f"{name}: add it to the diagram of {PAGE}"
        assert f"domains/{name})" in table, f"{name}: add a row to the table of folders in {PAGE}"


def test_the_arrows_of_the_architecture_are_the_imports_between_domains() -> None:
    uses: dict[str, set[str]] = {domain: set() for domain in DOMAINS}
    for path in MODULES:
        match path.relative_to(ROOT).parts:
            case ("chalicelib", "domains", domain, _, *_):
                named = re.findall(
                    r"^ *from chalicelib\.domains\.(\w+)", path.read_text(), re.MULTILINE
                )
                uses[domain] |= {*named} - {domain}
    diagram = (ROOT / PAGE).read_text().split("    subgraph domains")[1].split("    end")[0]
    drawn = {
        (upper, lower)
        for left, right in re.findall(r"(.+) --> (.+)", diagram)
        for upper in left.strip().split(" & ")
        for lower in right.split(" & ")
    }
    needed = {
        (domain, used)
        for domain, direct in uses.items()
        for used in direct
        if not any(used in _reached(uses, other) for other in direct - {used})
    }
    assert drawn == needed, f"{PAGE} lacks {needed - drawn}, and has {drawn - needed} too much."


def _reached(uses: dict[str, set[str]], domain: str) -> set[str]:
    return uses[domain].union(*(_reached(uses, used) for used in uses[domain]))


def test_a_module_name_stands_once_in_a_domain_but_for_an_operations_noun_and_its_rows() -> None:
    layers = defaultdict(list)
    for path in MODULES:
        match path.relative_to(ROOT).parts:
            case ("chalicelib", "domains", domain, layer, name) if name != "__init__.py":
                layers[f"{domain}/{name}"].append(layer)
    shared = {name: found for name, found in layers.items() if len(found) > 1}
    assert {name for name, found in shared.items() if {*found} != {"operations", "store"}} == set()

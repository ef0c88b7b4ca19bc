"""The skeleton of a noun that ``make new-noun`` writes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.local.new_noun import writing
from infra.local.new_noun.noun import WrongNounError
from tests.support.clone import commit, git

FACTS = """
import json
from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.engine.listing.registry import NOUNS
from chalicelib.transports.console.menu import BUSINESS
from chalicelib.transports.console.routes import ROUTES
from chalicelib.transports.web import texts
from infra.local.demo.seed import STEPS
load_all()
listing = NOUNS["GIFT_CARD"]
print(json.dumps({
    "operations": [e.name for e in REGISTRY.entries() if "gift_card" in e.module],
    "scopes": sorted({e.scope for e in REGISTRY.entries() if "gift_card" in e.module}),
    "not found": listing.not_found().message,
    "routes": [route for route in ROUTES if "gift-card" in route],
    "views": [page.get.resolve().__name__ for path, page in ROUTES.items() if "gift-card" in path],
    "menu": [link.text for link in BUSINESS if link.path == "/gift-cards"],
    "steps": [step.__name__ for step in STEPS if "gift_card" in step.__module__],
    "texts": [texts.has(language, "no_gift_cards") for language in texts.LANGUAGES],
}))
"""


def copy_of_project(folder: Path) -> Path:
    """Copy the files that git knows or would add, and commit them."""
    names = git("ls-files", "-z", "-co", "--exclude-standard", at=writing.ROOT)
    for name in filter(None, names.split("\0")):
        source = writing.ROOT / name
        if source.is_file() and not source.is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    git("init", "-q", at=folder)
    commit(folder, "Before the noun")
    return folder


def run(folder: Path, *command: str) -> str:
    """Run a Python module in a copy, and return its output."""
    process = subprocess.run(
        [sys.executable, *command], cwd=folder, check=False, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout[-5000:] + process.stderr[-5000:]
    return process.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of this checkout."""
    return copy_of_project(tmp_path)


def test_a_new_noun_is_formatted_and_in_every_register(project: Path) -> None:
    report = run(project, "-m", "infra", "new-noun", "gift_card", "--domain", "services")
    paths = [line.split()[1] for line in report.splitlines() if line[:7] in {"written", "changed"}]
    changed = {line[3:] for line in git("status", "--porcelain", "-uall", at=project).splitlines()}
    assert changed == {*paths}
    assert "tests/domains/services/test_gift_cards.py" in changed
    python = [path for path in paths if path.endswith(".py")]
    run(project, "-m", "ruff", "check", "--no-cache", *python)
    run(project, "-m", "ruff", "format", "--no-cache", "--check", *python)
    facts: dict[str, Any] = json.loads(run(project, "-c", FACTS))
    assert sorted(facts["operations"]) == [
        "create_gift_card",
        "delete_gift_card",
        "get_gift_card",
        "list_gift_cards",
        "update_gift_card",
    ]
    assert facts["scopes"] == ["services:read", "services:write"]
    assert "list_gift_cards" in facts["not found"]
    assert len(facts["routes"]) == len(facts["views"]) == 4
    assert facts["menu"] == ["gift_cards"]
    assert facts["steps"] == ["make_gift_cards"]
    assert facts["texts"] == [True, True]
    form = (project / "chalicelib/transports/web/templates/console/gift_card.html").read_text()
    assert "{{ own_controls() }}" in form  # a field with ``drawn_as`` needs no control there
    assert '"create_gift_card"' in (project / "tests/contract/test_events.py").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1_500)  # It runs many checks of the project in a copy.
def test_a_new_noun_passes_the_types_the_import_rules_and_the_sweeps(project: Path) -> None:
    run(project, "-m", "infra", "new-noun", "coupon")
    commit(project, "The noun")
    run(project, "-m", "mypy", "chalicelib", "infra/local/demo", "infra/local/new_noun")
    run(project, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
    pytest_of = ("-m", "pytest", "-q", "-p", "no:randomly")
    run(project, *pytest_of, "tests/contract", "--update-snapshots")
    run(project, "-m", "infra", "reference")
    names = ",".join(f"{verb}_coupon" for verb in ("create", "get", "update", "delete"))
    run(
        project,
        *(*pytest_of, "-n", "2", f"--operations={names},list_coupons"),
        *("tests/contract", "tests/transports/console/test_console_pages.py"),
        *("tests/transports/console/test_coupon_pages.py", "tests/domains/catalog/test_coupons.py"),
        *("tests/lib/test_po_files.py", "tests/transports/web/test_web_texts.py"),
    )


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("product", {}, "create_product"),
        ("Coupon", {}, "gift_card"),
        ("gift-card", {}, "gift_card"),
        ("gift__card", {}, "gift_card"),
        ("coupon2", {}, "gift_card"),
        ("class", {"plural": "classes"}, "gift_card"),
        ("match", {"plural": "matches"}, "gift_card"),
        ("value", {}, "variable"),
        ("tax", {}, "PLURAL"),
        ("person", {}, "PLURAL"),
        ("tax", {"plural": "Taxes"}, "PLURAL"),
        ("sheep", {"plural": "sheep"}, "PLURAL"),
        ("coupon", {"domain": "shop"}, "catalog"),
        ("coupon", {"domain": "identity"}, "catalog"),
        ("workspace_setting", {"plural": "workspace_settings"}, "console.po"),
    ],
)
def test_a_name_that_cannot_be_written_is_refused_before_anything_is_written(
    name: str, options: dict[str, str], told: str
) -> None:
    before = git("status", "--porcelain", at=writing.ROOT)
    with pytest.raises(WrongNounError, match=told):
        writing.write(name, **{"domain": "catalog", **options})
    assert git("status", "--porcelain", at=writing.ROOT) == before


def test_a_file_that_exists_is_not_replaced(project: Path) -> None:
    demo = project / "infra/local/demo/coupons.toml"
    demo.write_text("mine = true\n")
    with pytest.raises(WrongNounError, match=r"coupons\.toml"):
        writing.write("coupon", domain="catalog", root=project)
    assert demo.read_text() == "mine = true\n"
    assert not (project / "infra/local/demo/coupons.py").exists()


def test_a_register_without_its_place_is_named(project: Path) -> None:
    menu = project / "chalicelib/transports/console/menu.py"
    menu.write_text(menu.read_text().replace("BUSINESS = (", "SHOWN = ("))
    with pytest.raises(WrongNounError, match=r"menu\.py"):
        writing.write("coupon", domain="catalog", root=project)


def test_an_irregular_plural_is_the_one_that_is_sent(project: Path) -> None:
    written = writing.write("tax", plural="taxes", domain="catalog", root=project)
    assert "chalicelib/domains/catalog/store/taxes.py" in written.new
    assert "class TaxRow(" in (project / "chalicelib/domains/catalog/store/taxes.py").read_text()

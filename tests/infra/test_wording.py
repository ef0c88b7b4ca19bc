"""The check that habits of wording do not spread."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infra import wording

MODULE = '''"""Checkout: carts, orders and payments."""

MAX_CARTS = 3
"""Carts of a customer."""


def of_customer(found):
    """Return the carts. Expired ones are removed."""
    data = found  # mails are sent at once
    return data
'''
HABITS = {
    "docstring of a module that lists its parts": 1,
    "several facts in a docstring of one line": 2,
    "MAX_ that is not described as a maximum": 1,
    "function without a verb": 1,
    "name that is not a noun": 1,
    "vague name": 1,
    "mails: write e-mails": 1,
    "alone, at once, for good": 1,
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one module and one document, whose habits are stored."""
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    monkeypatch.setattr(wording, "BASELINE", tmp_path / "wording.json")
    (tmp_path / "chalicelib").mkdir()
    (tmp_path / "chalicelib" / "carts.py").write_text(MODULE)
    (tmp_path / "README.md").write_text("Carts are kept for 30 days. `mails` is a queue.\n")
    assert run("--update").exit_code == 0
    return tmp_path


def run(*options: str) -> Result:
    return CliRunner().invoke(wording.main, options)


def test_every_habit_is_counted(checkout: Path) -> None:
    assert json.loads((checkout / "wording.json").read_text()) == HABITS


@pytest.mark.parametrize(
    ("path", "added_text", "habit"),
    [
        ("README.md", "The receipt mails are sent.\n", "mails"),
        ("chalicelib/carts.py", "kept = 1\n", "not a noun"),
        ("chalicelib/carts.py", "# The answers stay in the cache.\n", "answer"),
    ],
)
def test_a_new_occurrence_fails_the_check_and_is_listed(
    checkout: Path, path: str, added_text: str, habit: str
) -> None:
    file = checkout / path
    file.write_text(file.read_text() + added_text)
    check = run()
    assert check.exit_code == 1
    assert habit in check.stderr
    assert path in run("--show", habit).stdout


def test_fewer_occurrences_pass_and_can_be_stored(checkout: Path) -> None:
    file = checkout / "chalicelib" / "carts.py"
    file.write_text(MODULE.replace("mails are", "an e-mail is"))
    check = run()
    assert (check.exit_code, "--update" in check.stdout) == (0, True)
    run("--update")
    assert "mails: write e-mails" not in json.loads((checkout / "wording.json").read_text())
    assert run().stdout == ""
    file.write_text(MODULE)
    assert run().exit_code == 1

"""Cold starts and warm calls may only become cheaper (``make check-speed``)."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from infra.bench import ratchet

MEASURED = {"first read": 1.1, "1,000 warm read": 6.0}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose only commit has the measured ratios."""
    monkeypatch.setattr(ratchet, "ROOT", tmp_path)
    monkeypatch.setattr(ratchet, "RATIOS", tmp_path / "ratios.json")
    monkeypatch.setattr(ratchet, "_measured", lambda: MEASURED)
    monkeypatch.setattr(ratchet.shutil, "which", lambda _: "/usr/bin/valgrind")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, MEASURED, "# Changelog\n")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True)


def commit(folder: Path, ratios: dict[str, float], changelog: str) -> None:
    (folder / "ratios.json").write_text(json.dumps(ratios))
    (folder / "CHANGELOG.md").write_text(changelog)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Set ratios")


def check(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(ratchet.main, arguments)
    return result.exit_code, result.output


@pytest.mark.parametrize("former_ratio", [1.1, 1.09, 1.5])
def test_ratio_within_the_tolerance_passes(repository: Path, former_ratio: float) -> None:
    (repository / "ratios.json").write_text(json.dumps({**MEASURED, "first read": former_ratio}))
    assert check()[0] == 0


def test_risen_ratio_is_refused_with_both_numbers(repository: Path) -> None:
    (repository / "ratios.json").write_text(json.dumps({**MEASURED, "first read": 1.05}))
    code, output = check()
    assert code == 1
    assert "first read: expected at most 1.05, measured 1.1. Make it cheaper" in output


def test_new_cold_start_without_a_committed_ratio_is_refused(repository: Path) -> None:
    (repository / "ratios.json").write_text(json.dumps({"first read": 1.1}))
    assert "1,000 warm read: expected at most 0" in check()[1]


def test_raised_ratio_needs_a_line_of_the_changelog(repository: Path) -> None:
    commit(repository, {**MEASURED, "first read": 1.2}, "# Changelog\n- Another change.\n")
    code, output = check()
    assert (code, "first read was raised" in output) == (1, True)


def test_raised_ratio_with_a_line_of_the_changelog_passes(repository: Path) -> None:
    commit(repository, {**MEASURED, "first read": 1.2}, "# Changelog\n- `ratios.json`: a reason.\n")
    assert check()[0] == 0


def test_update_lowers_ratios_and_raises_none(repository: Path) -> None:
    former_ratios = {"first read": 1.05, "1,000 warm read": 7.0}
    (repository / "ratios.json").write_text(json.dumps(former_ratios))
    assert check("--update")[0] == 0
    lowered = json.loads((repository / "ratios.json").read_text())
    assert lowered == {"first read": 1.05, "1,000 warm read": 6.0}


def test_nothing_is_compared_without_valgrind(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ratchet.shutil, "which", lambda _: None)
    (repository / "ratios.json").write_text("{}")
    assert check() == (0, "No valgrind was found: the instructions are not compared.\n")

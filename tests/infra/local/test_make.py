"""The targets of make that run several tools run each of them, whatever the others find."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = {"ruff", "mypy", "lint-imports", "cfn-lint", "python"}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., tuple[int, list[str]]]:
    """Run make with tools that only log their calls. Those that are named fail."""
    log, installed, uv = tmp_path / "log", tmp_path / ".installed", tmp_path / "uv"

    def run(target: str, *failing: str) -> tuple[int, list[str]]:
        for tool in TOOLS:
            path, status = tmp_path / tool, 1 if tool in failing else 0
            path.write_text(f'#!/bin/sh\necho "{tool} $*" >> {log}\nexit {status}\n')
            path.chmod(0o755)
        uv.touch()
        installed.write_text("python3")
        places = (f"VENV={tmp_path}", f"BIN={tmp_path}", f"UV={uv}", "PYTHON=python3")
        command = ["make", "--no-print-directory", target, *places]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        assert log.exists(), done.stderr
        return done.returncode, log.read_text().splitlines()

    return run


def test_check_runs_every_tool_and_fails_if_one_has_failed(
    make: Callable[..., tuple[int, list[str]]],
) -> None:
    status, calls = make("check", "ruff", "mypy", "cfn-lint")
    assert status != 0
    assert {call.split()[0] for call in calls} == TOOLS - {"python"}
    assert {"ruff format --check .", "ruff check ."} <= {*calls}


def test_check_passes_if_no_tool_has_found_anything(
    make: Callable[..., tuple[int, list[str]]],
) -> None:
    assert make("check")[0] == 0


def test_update_records_before_it_writes_the_documents_that_show_what_was_recorded(
    make: Callable[..., tuple[int, list[str]]],
) -> None:
    status, (record, write) = make("update")
    assert status == 0
    assert record.endswith("--update-snapshots")
    assert write == "python -m infra reference"

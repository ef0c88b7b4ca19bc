"""Logs of the local stack are short lines on a terminal, and JSON in a file."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local import logs as local_logs
from tests.conftest import Time

REQUEST = {"method": "GET", "route": "/api/projects/list", "status": 200, "ms": 12.3}


@pytest.fixture(autouse=True)
def restored_loggers() -> Iterator[None]:
    """Restore the loggers after a test."""
    root = logging.getLogger("chalicelib")
    old_logging = root.handlers[:], root.level, root.propagate
    yield
    for handler in root.handlers[1:]:
        handler.close()
    root.handlers[:], root.level, root.propagate = old_logging


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_logs, "is_terminal", lambda: True)


def logged(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_request_is_one_short_line_on_a_terminal_and_json_in_the_file(
    terminal: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], time: Time
) -> None:
    local_logs.configure(tmp_path / "service.log")
    logging.getLogger("chalicelib.x").info("request", extra=REQUEST)
    logging.getLogger("chalicelib.x").info("request", extra={**REQUEST, "code": "not_found"})
    first, second = capsys.readouterr().err.splitlines()
    assert first.split()[1:] == ["200", "GET", "/api/projects/list", "12", "ms"]
    assert second.endswith("12 ms  not_found")
    assert [line["route"] for line in logged(tmp_path / "service.log")] == [
        "/api/projects/list"
    ] * 2


def test_a_crash_shows_its_traceback_on_a_terminal(
    terminal: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local_logs.configure(tmp_path / "service.log")
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        logging.getLogger("chalicelib.x").exception("a handler crashed")
    stderr = capsys.readouterr().err
    assert "error: a handler crashed\nTraceback" in stderr
    assert "ZeroDivisionError: division by zero" in stderr


@pytest.mark.parametrize("setting", ["json", None])
def test_stderr_gets_json_in_a_pipe_or_on_request(
    setting: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if setting:
        monkeypatch.setattr(local_logs, "is_terminal", lambda: True)
        monkeypatch.setenv("LOG", setting)
    local_logs.configure(tmp_path / "service.log")
    logging.getLogger("chalicelib.x").info("request", extra=REQUEST)
    assert json.loads(capsys.readouterr().err)["route"] == "/api/projects/list"

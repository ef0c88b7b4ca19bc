"""Each line that the streaming function writes to stderr is JSON."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from infra.deploy.stacks import alarms
from tests.fakes import lambda_runtime_api
from tests.fakes.lambda_runtime_api import Function, event
from tests.support.patience import PATIENCE
from tests.transports.chat.test_stream_runtime import BOOTSTRAP, ENVIRONMENT, ROOT

LOOP = "chalicelib.transports.chat.stream_runtime"


@pytest.fixture(scope="module")
def function() -> Iterator[Function]:
    with lambda_runtime_api.function(BOOTSTRAP, ENVIRONMENT, task=ROOT) as running:
        yield running


def logged(function: Function, arguments: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """Return what the function logs while it answers an event, and until it takes the next."""
    lines_before = len(function.log())
    for body in (arguments, {}):
        function.invoke(event(json.dumps(body)), **(options if body is arguments else {})).body()
    return function.log()[lines_before:-1]


def test_a_request_is_one_line(function: Function) -> None:
    (line,) = logged(function, {"pieces": 2})
    assert (line["level"], line["message"], line["status"]) == ("info", "request", 200)


@pytest.mark.parametrize(
    ("arguments", "message", "error"),
    [
        ({"crash": True}, "a handler crashed", "the secret reason"),
        ({"pieces": 3, "break": 1}, "a stream failed before its end", "the secret reason"),
    ],
)
def test_a_failure_is_one_error_line_that_the_alarm_counts(
    function: Function, arguments: dict[str, Any], message: str, error: str
) -> None:
    lines = {line["message"]: line for line in logged(function, arguments)}
    assert set(lines) == {"request", message}
    assert error in lines[message]["exception"]
    assert lines[message]["logger"].startswith("chalicelib.")
    assert alarms.LINES["ErrorLines"][0] == f'$.level = "{lines[message]["level"]}"'


def test_an_invalid_event_is_an_error_line(function: Function) -> None:
    lines_before = len(function.log())
    function.invoke({"Records": []}).body()
    (line,) = function.log()[lines_before:]
    assert (line["level"], line["logger"]) == ("error", LOOP)
    assert "KeyError" in line["exception"]


def test_a_response_that_lambda_stops_reading_is_a_warning(function: Function) -> None:
    arguments = {"pieces": 10_000, "every": 0.001}
    _, line = logged(function, arguments, hang_up_after=3)
    assert (line["level"], line["logger"]) == ("warning", LOOP)
    assert line["message"] == "the response was not sent to its end"


@pytest.mark.parametrize(
    ("kind", "level", "text"),
    [
        ("warning", "warning", "FutureWarning: an old name"),
        ("library", "warning", "a library's words"),
        ("thread", "error", "ValueError: in a thread"),
        ("exit of a thread", None, ""),
        ("finalizer", "error", "ValueError: in a finalizer"),
        ("print", "warning", "two"),
        ("traceback", "warning", "streaming_handlers.py"),
        ("bad record", "warning", "--- Logging error ---"),
    ],
)
def test_what_others_write_to_stderr_is_json(
    function: Function, kind: str, level: str | None, text: str
) -> None:
    *lines, arguments = logged(function, {"noise": [kind]})
    assert arguments["message"] == "request"
    assert {line["level"] for line in lines} == ({level} if level else set())
    assert text in " ".join(f"{line['message']} {line.get('exception')}" for line in lines)


def test_a_lost_runtime_api_ends_the_process_with_an_error_line() -> None:
    with lambda_runtime_api.function(BOOTSTRAP, ENVIRONMENT, task=ROOT) as function:
        assert function.api.ready.wait(PATIENCE)
        function.api.waiting.put(None)
        assert function.process.wait(PATIENCE) == 1
        (line,) = function.log()
    assert (line["level"], line["message"]) == ("error", "uncaught exception")


def test_the_log_needs_no_library() -> None:
    """A broken library fails the start of the function, and the log must report it."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import chalicelib.core.logs; print(1)"
    process = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert (process.stdout, process.stderr) == ("1\n", "")

"""The streaming function runs its real bootstrap against Lambda's Runtime API."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.transports.chat import stream_runtime
from chalicelib.transports.http import HttpResponse
from tests.fakes import lambda_runtime_api
from tests.fakes.lambda_runtime_api import Function, Invocation, event
from tests.support.patience import PATIENCE, stretched

ROOT = Path(__file__).parents[3]
BOOTSTRAP = ROOT / "vendor" / "stream_bootstrap"
ENVIRONMENT = {
    "STAGE": "dev",
    "STREAM_HANDLER": "tests.fakes.streaming_handlers:handle",
    "LLM_PROVIDER": "demo",
    "OBJECT_STORE": "s3://none",
}


@pytest.fixture(scope="module")
def stream_function() -> Iterator[Function]:
    with lambda_runtime_api.function(BOOTSTRAP, ENVIRONMENT, task=ROOT) as function:
        yield function
        assert function.api.faults == []
        assert function.process.poll() is None
        assert function.log()


SECRET = "s3cret-of-the-edge"


@pytest.fixture(scope="module")
def behind_edge() -> Iterator[Function]:
    """The function, configured for requests through the edge."""
    variables = {**ENVIRONMENT, "EDGE_SECRET": SECRET}
    with lambda_runtime_api.function(BOOTSTRAP, variables, task=ROOT) as function:
        yield function


def events_of(invocation: Invocation) -> list[dict[str, Any]]:
    """Return the events of a complete answer."""
    lines = invocation.body().decode().split("\n\n")
    assert lines.pop() == ""
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def invoke(function: Function, request_body: dict[str, Any], **options: Any) -> Invocation:
    return function.invoke(event(json.dumps(request_body), **options))


def test_an_answer_has_its_status_and_headers_followed_by_its_body(
    stream_function: Function,
) -> None:
    invocation = invoke(stream_function, {"text": "Ёж 🦔"}, query="a=1&a=2&b=")
    start, done_event = events_of(invocation)
    assert (start["text"], start["query"]) == ("Ёж 🦔", {"a": ["1", "2"], "b": [""]})
    assert start["id"] == invocation.event["requestContext"]["requestId"]
    assert start["trace"] == f"Root=1-{invocation.id}"
    assert done_event == {"type": "done"}
    assert invocation.prelude["statusCode"] == 200
    headers = invocation.prelude["headers"]
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["X-Request-Id"] == start["id"]
    assert headers["Cache-Control"] == "no-store"
    assert invocation.prelude["cookies"] == []
    assert invocation.trailers == {}


def test_an_event_without_a_trace_has_not_that_of_the_event_before(
    stream_function: Function,
) -> None:
    assert events_of(invoke(stream_function, {}))[0]["trace"]
    invocation = stream_function.invoke(event(), traced=False)
    assert events_of(invocation)[0]["trace"] == ""


def test_chunks_are_sent_as_they_are_made(stream_function: Function) -> None:
    def attempt(every: float) -> bool:
        invocation = invoke(stream_function, {"pieces": 4, "every": every})
        pieces = list(invocation.pieces())
        assert [piece.count(b"data: ") for piece in pieces] == [1] * 6
        arrivals = [at for at, _ in invocation.arrived[-6:]]
        times = [json.loads(piece.removeprefix(b"data: "))["at"] for piece in pieces[1:5]]
        # Each chunk has arrived before the next one is made.
        following = [times[1], *times[1:]]
        return all(this < later for this, later in zip(arrivals[:4], following, strict=True))

    stretched(attempt, 0.3, bool)


def test_one_process_answers_many_times(stream_function: Function) -> None:
    answers = [events_of(invoke(stream_function, {"pieces": n}))[0] for n in range(3)]
    assert len({answer["pid"] for answer in answers}) == 1
    assert [answer["started"] - answers[0]["started"] for answer in answers] == [0, 1, 2]


def test_a_base64_body_is_decoded(stream_function: Function) -> None:
    invocation = stream_function.invoke(event(json.dumps({"text": "Ёж"}).encode()))
    assert events_of(invocation)[0]["text"] == "Ёж"


@pytest.mark.parametrize(
    ("request_body", "options", "status", "code"),
    [
        ({"missing": True}, {}, 404, "not_found"),
        ({"crash": True}, {}, 500, "internal_error"),
        ({}, {"method": "GET"}, 405, "method_not_allowed"),
        ({}, {"path": "/api/elsewhere"}, 404, "not_found"),
        ({"text": "x" * 200_000}, {}, 413, "payload_too_large"),
    ],
)
def test_a_failure_is_an_envelope_with_its_status_readable_from_any_origin(
    stream_function: Function,
    request_body: dict[str, Any],
    options: dict[str, str],
    status: int,
    code: str,
) -> None:
    invocation = invoke(stream_function, request_body, **options)
    answer = json.loads(invocation.body())
    assert invocation.prelude["statusCode"] == status
    assert (answer["data"]["status"], answer["data"]["code"]) == (False, code)
    assert "secret" not in json.dumps(answer)
    headers = invocation.prelude["headers"]
    assert headers["Content-Type"] == "application/json"
    assert headers["Access-Control-Allow-Origin"] == "*"


def test_a_preflight_is_answered_with_a_body(stream_function: Function) -> None:
    """CloudFront waits for the body of a streamed answer, even of a 204."""
    invocation = invoke(stream_function, {}, method="OPTIONS", headers={"origin": "null"})
    assert invocation.body() == b"\n"
    assert invocation.prelude["statusCode"] == 200
    headers = {name.lower(): text for name, text in invocation.prelude["headers"].items()}
    assert headers["access-control-allow-origin"] == "*"
    assert headers["access-control-allow-methods"] == "POST"
    assert headers["access-control-allow-headers"].lower() == "content-type, idempotency-key"
    assert headers["access-control-expose-headers"].lower() == "retry-after, x-request-id"


def test_a_stream_that_breaks_off_reports_an_error_in_the_trailers(
    stream_function: Function, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    invocation = invoke(stream_function, {"pieces": 5, "break": 2, "mark": str(mark)})
    pieces = list(invocation.pieces())
    assert len(pieces) == 3
    assert invocation.trailers["lambda-runtime-function-error-type"] == "Runtime.RuntimeError"
    error = invocation.broken_off
    assert error
    assert error["errorType"] == "Runtime.RuntimeError"
    assert "secret" not in json.dumps(error)
    assert mark.read_text() == "closed"
    assert events_of(invoke(stream_function, {}))  # The process continues.


@pytest.mark.parametrize("unclosable", [False, True])
def test_a_stream_that_lambda_stops_reading_is_closed(
    unclosable: bool, stream_function: Function, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    request_body = {"pieces": 10_000, "every": 0.001, "mark": str(mark), "unclosable": unclosable}
    assert stream_function.invoke(event(json.dumps(request_body)), hang_up_after=3).body()
    assert events_of(invoke(stream_function, {}))
    assert mark.read_text() == "closed"


def test_an_invalid_event_is_an_error_of_the_invocation(stream_function: Function) -> None:
    invocation = stream_function.invoke({"Records": []})
    assert invocation.body() == b""
    assert invocation.error
    assert invocation.error["errorType"] == "Runtime.KeyError"
    assert events_of(invoke(stream_function, {}))


class TestStartup:
    @pytest.mark.parametrize(
        ("environment", "error"),
        [
            ({"STREAM_HANDLER": "tests.fakes.nowhere:handle"}, "ModuleNotFoundError"),
            ({"STREAM_HANDLER": "tests.fakes.streaming_handlers:nobody"}, "AttributeError"),
            ({"STAGE": ""}, "RuntimeError"),
        ],
    )
    def test_a_failed_start_is_reported_and_ends_the_process(
        self, environment: dict[str, str], error: str
    ) -> None:
        variables = {**ENVIRONMENT, **environment}
        with lambda_runtime_api.function(BOOTSTRAP, variables, task=ROOT) as function:
            assert function.process.wait(PATIENCE) == 1
            assert function.api.init_error
            assert function.api.init_error["errorType"] == f"Runtime.{error}"
            (logged,) = function.log()
            assert logged["level"] == "error"
            assert error in logged["exception"]

    def test_lambdas_import_paths_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "extra").mkdir()
        (tmp_path / "extra" / "layered.py").write_text(
            "import sys\n"
            "from chalicelib.transports.http import HttpResponse\n"
            "def handle(request):\n"
            "    return HttpResponse(200, '\\n'.join(sys.path).encode())\n"
        )
        variables = {
            **ENVIRONMENT,
            "STREAM_HANDLER": "layered:handle",
            "PYTHONPATH": str(tmp_path / "extra"),
        }
        with lambda_runtime_api.function(BOOTSTRAP, variables, task=ROOT) as function:
            paths = invoke(function, {}).body().decode().split("\n")
        order = [str(ROOT), "/opt/python", "/var/runtime", str(tmp_path / "extra")]
        assert paths[:4] == order


class TestEdge:
    def test_a_request_through_the_edge_has_the_visitors_ip(self, behind_edge: Function) -> None:
        headers = {"x-origin-secret": SECRET, "x-viewer-address": "2001:db8::7"}
        assert events_of(invoke(behind_edge, {}, headers=headers))[0]["ip"] == "2001:db8::7"

    @pytest.mark.parametrize("method", ["POST", "OPTIONS", "GET"])
    @pytest.mark.parametrize(
        "headers",
        [{}, {"x-origin-secret": "guess"}, {"x-origin-secret": ""}, {"x-origin-secret": "ёж"}],
    )
    def test_a_request_that_bypasses_the_edge_is_refused(
        self, behind_edge: Function, headers: dict[str, str], method: str
    ) -> None:
        invocation = invoke(
            behind_edge, {}, method=method, headers={**headers, "x-viewer-address": "192.0.2.1"}
        )
        assert json.loads(invocation.body())["data"]["code"] == "forbidden"
        assert invocation.prelude["statusCode"] == 403
        assert invocation.prelude["headers"]["Access-Control-Allow-Origin"] == "*"

    def test_without_an_edge_forwarded_headers_are_ignored(self, stream_function: Function) -> None:
        headers = {"x-viewer-address": "192.0.2.1", "x-forwarded-for": "192.0.2.2"}
        assert events_of(invoke(stream_function, {}, headers=headers))[0]["ip"] == "203.0.113.9"


def test_a_response_that_lambda_does_not_accept_is_closed() -> None:
    class Body(Iterator[bytes]):
        closed = False

        def __next__(self) -> bytes:
            return b"piece"

        def close(self) -> None:
            self.closed = True

    body = Body()
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionRefusedError):
        stream_runtime.RuntimeApi(address).send("1", HttpResponse(200, body))
    assert body.closed


def test_without_the_bootstrap_the_whole_answer_is_returned_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app import chat_stream

    monkeypatch.setenv("STREAM_HANDLER", ENVIRONMENT["STREAM_HANDLER"])
    answer = chat_stream(event(json.dumps({"pieces": 2})), None)
    assert answer["statusCode"] == 200
    assert answer["headers"]["Content-Type"].startswith("text/event-stream")
    assert answer["body"].count("data: ") == 4

"""The probe for streaming fails if a layer of the real runtime loop buffers."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from chalicelib.core import clock
from chalicelib.transports.chat import stream_probe
from infra.deploy import smoke
from infra.deploy.smoke import Check, Target
from tests.fakes import edge_front, lambda_runtime_api
from tests.fakes.lambda_runtime_api import Function, event
from tests.support.patience import stretched
from tests.transports.chat.test_stream_runtime import BOOTSTRAP, ENVIRONMENT, ROOT

SECRET = "s3cret-of-the-edge"
FORMER = "the former one"
NAME = "chat: probe streams"

pytestmark = pytest.mark.usefixtures("real_clock")  # which the function's process has


@pytest.fixture(scope="module")
def function() -> Iterator[Function]:
    secrets = {"EDGE_SECRET": SECRET, "EDGE_SECRET_PREVIOUS": FORMER}
    with lambda_runtime_api.function(BOOTSTRAP, ENVIRONMENT | secrets, task=ROOT) as running:
        yield running


def probe(url: str, secret: str = SECRET) -> Check:
    return {check.name: check for check in smoke.run(Target(url, edge_secret=secret))}[NAME]


def test_the_probe_passes_an_edge_that_streams(function: Function) -> None:
    def attempt(_: float) -> Check:
        with edge_front.serving(function, SECRET) as url:
            return probe(url)

    # A busy machine may hold an event up until the next one has come.
    check = stretched(attempt, 1, lambda check: check.ok is True)
    assert check.why.startswith("events after ")
    assert check.why.count(",") == 2


def test_the_probe_fails_at_an_edge_that_buffers(function: Function) -> None:
    with edge_front.serving(function, SECRET, buffers=True) as url:
        check = probe(url)
    assert check.ok is False
    assert check.why.startswith("expected 0.5 s between events (a layer buffers); came 'after ")


def test_the_probe_fails_without_the_edges_secret(function: Function) -> None:
    with edge_front.serving(function, SECRET) as url:
        assert probe(url, "another").why.startswith("expected status 200; came 404")
        check = probe(url, "")
    assert (check.ok, check.why[:9]) == (None, "not tried")


def request_probe(
    function: Function, token: str | None, *, method: str = "GET", path: str = stream_probe.PATH
) -> tuple[int, dict[str, str], bytes]:
    headers = {"x-origin-secret": SECRET}
    if token is not None:
        headers[stream_probe.TOKEN_HEADER.lower()] = token
    invocation = function.invoke(event("", method, path, headers))
    body = invocation.body()
    return invocation.prelude["statusCode"], invocation.prelude["headers"], body


def tokens() -> dict[str, str | None]:
    valid = stream_probe.token(SECRET)
    time, _, signature = valid.partition(".")
    expired = clock.now() - stream_probe.TOKEN_LIFE - timedelta(seconds=1)
    with clock.using(lambda: expired):
        old = stream_probe.token(SECRET)
    return {
        "none": None,
        "empty": "",
        "the secret itself": SECRET,
        "no signature": time,
        "another time": f"{int(time) + 1}.{signature}",
        "another secret": stream_probe.token("another"),
        "expired": old,
        "huge": "9" * 5_000 + f".{signature}",
        "not ASCII": f"²{valid}",
    }


@pytest.mark.parametrize("kind", tokens())
def test_without_a_valid_token_the_path_is_as_unknown_as_any_other(
    function: Function, kind: str
) -> None:
    status, headers, body = request_probe(function, tokens()[kind])
    other = request_probe(function, None, path=f"{stream_probe.PATH}s")
    del headers["X-Request-Id"], other[1]["X-Request-Id"]
    assert (status, headers) == other[:2]
    data, unknown = json.loads(body)["data"], json.loads(other[2])["data"]
    del data["requestId"], unknown["requestId"]
    assert data == unknown
    assert (status, data["code"]) == (404, "not_found")


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "HEAD"])
def test_the_probe_has_no_method_but_get(function: Function, method: str) -> None:
    assert request_probe(function, stream_probe.token(SECRET), method=method)[0] == 404


def test_a_token_does_not_replace_the_edge(function: Function) -> None:
    headers = {stream_probe.TOKEN_HEADER.lower(): stream_probe.token(SECRET)}
    invocation = function.invoke(event("", "GET", stream_probe.PATH, headers))
    invocation.body()
    assert invocation.prelude["statusCode"] == 403


def test_tokens_of_both_secrets_are_valid_while_the_secret_is_replaced(function: Function) -> None:
    status, headers, body = request_probe(function, stream_probe.token(FORMER))
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    numbers = [json.loads(line[6:])["number"] for line in body.splitlines() if line]
    assert numbers == [1, 2, 3]


def test_the_token_is_in_no_line_of_the_log(function: Function) -> None:
    token = stream_probe.token(SECRET)
    request_probe(function, token, method="POST")
    request_probe(function, f"{token}0")
    logged = json.dumps(function.log())
    assert stream_probe.PATH in logged
    assert token.partition(".")[2] not in logged

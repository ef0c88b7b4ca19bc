"""Lambda runtime that receives events and streams responses piece by piece.

Lambda's Python runtime buffers responses, so ``vendor/stream_bootstrap`` starts this module. It
imports only the standard library and the logs, so that any failure of the service's own code is
reported in Lambda's format (developer guide, Runtime API) and logged as JSON.
"""

import base64
import gc
import importlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from chalicelib.core import logs

if TYPE_CHECKING:
    from chalicelib.transports.chat.chat_route import Handler
    from chalicelib.transports.http import HttpResponse

# The default handler; ``STREAM_HANDLER`` overrides it.
HANDLER = "chalicelib.transports.chat.chat_stream:handle"
BASE = "/2018-06-01/runtime"
PRELUDE_TYPE = "application/vnd.awslambda.http-integration-response"
DELIMITER = bytes(8)  # Separates the prelude, which has the status and the headers, from the body.
# Environment variable with the trace of the current event, for AWS's libraries.
TRACE = "_X_AMZN_TRACE_ID"
ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY = "Lambda-Runtime-Function-Error-Body"

Serve = Callable[[dict[str, Any]], "HttpResponse"]

# Not ``__name__``, which is ``__main__`` on Lambda: its records would not be the service's.
log = logging.getLogger("chalicelib.transports.chat.stream_runtime")


class Invocation(NamedTuple):
    id: str
    event: bytes


class RuntimeApi:
    """Client of the Lambda Runtime API at an address. Each call opens its own connection."""

    def __init__(self, address: str) -> None:
        self._address = address

    def next(self) -> Invocation:
        # Lambda freezes the process between events, so a connection that is kept open may be dead.
        with closing(HTTPConnection(self._address)) as connection:
            connection.request("GET", f"{BASE}/invocation/next")
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                msg = f"the Runtime API answers with {answer.status}"
                raise HTTPException(msg)
            # An event without a trace must not continue the trace of the one before.
            os.environ.pop(TRACE, None)
            if trace := answer.getheader("Lambda-Runtime-Trace-Id"):
                os.environ[TRACE] = trace
            return Invocation(answer.headers["Lambda-Runtime-Aws-Request-Id"], answer.read())

    def report(self, where: str, error: BaseException) -> None:
        """Report a failure at start (``init``), or of an event (``invocation/<id>``)."""
        with closing(HTTPConnection(self._address)) as connection:
            headers = {"Content-Type": "application/json", ERROR_TYPE: _type(error)}
            connection.request("POST", f"{BASE}/{where}/error", _encode_error(error), headers)
            connection.getresponse().read()

    def send(self, invocation_id: str, response: "HttpResponse") -> None:
        """Send a response and close it. Raises OSError if Lambda no longer accepts the response."""
        with closing(HTTPConnection(self._address)) as connection:
            try:
                path = f"{BASE}/invocation/{invocation_id}/response"
                # If the body fails, the trailers report the error.
                trailers = _send_body(connection, path, response)
            finally:
                _close(response)
            connection.send(b"0\r\n%b\r\n" % trailers)
            connection.getresponse().read()


def _send_body(connection: HTTPConnection, path: str, response: "HttpResponse") -> bytes:
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", PRELUDE_TYPE)
    connection.putheader("Lambda-Runtime-Function-Response-Mode", "streaming")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.putheader("Trailer", f"{ERROR_TYPE}, {ERROR_BODY}")
    connection.endheaders()
    try:
        for piece in _pieces(response):
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    except _BrokenOffError as broken:
        error = broken.__cause__ or broken
        body = base64.b64encode(_encode_error(error)).decode()
        return f"{ERROR_TYPE}: {_type(error)}\r\n{ERROR_BODY}: {body}\r\n".encode()
    return b""


class _BrokenOffError(Exception):
    """A response's body failed with the original error as the cause."""


def _pieces(response: "HttpResponse") -> Iterator[bytes]:
    prelude = {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "cookies": list(response.cookies),
    }
    yield json.dumps(prelude).encode() + DELIMITER
    body = response.body
    pieces = iter([body] if isinstance(body, bytes) else body)
    while True:
        try:
            piece = next(pieces, None)
        except Exception as error:
            log.exception("a stream failed before its end")
            raise _BrokenOffError from error
        if piece is None:
            return
        if piece:
            yield piece


def _close(response: "HttpResponse") -> None:
    try:
        response.close()
    except Exception:
        log.exception("a stream could not be closed")


def _type(error: BaseException) -> str:
    return f"Runtime.{type(error).__name__}"


def _encode_error(error: BaseException) -> bytes:
    # Only the log has the failure's message, which may be private.
    return json.dumps(
        {"errorMessage": "see the log", "errorType": _type(error), "stackTrace": []}
    ).encode()


def run(api: RuntimeApi, serve: Serve) -> None:
    """Process events for as long as Lambda sends them."""
    while True:
        invocation = api.next()
        try:
            response = serve(json.loads(invocation.event))
        except Exception as error:
            log.exception("an event could not be answered")
            api.report(f"invocation/{invocation.id}", error)
            continue
        try:
            api.send(invocation.id, response)
        except Exception:  # One failed response must not affect the next.
            log.warning("the response was not sent to its end", exc_info=True)


def load() -> Serve:
    """Import the code that processes events, but only the modules that the handler needs."""
    from chalicelib.lib import precompiled  # import errors are reported to Lambda

    precompiled.use()
    from chalicelib.core.settings import settings
    from chalicelib.transports.chat import function_url

    settings()  # A function with missing settings fails here, not at its first request.
    request_handler = handler()
    return lambda event: function_url.respond(event, request_handler)


def handler() -> "Handler":
    """Import and return the handler of requests."""
    module, _, name = os.environ.get("STREAM_HANDLER", HANDLER).partition(":")
    function: Handler = getattr(importlib.import_module(module), name)
    return function


def main() -> None:
    """Run the function that the environment variables configure."""
    logs.configure_process()
    gc.disable()  # As in app.py: imported modules are never freed.
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        serve = load()
    except BaseException as error:
        api.report("init", error)
        raise
    gc.freeze()
    gc.set_threshold(50_000)  # As in app.py, for the modules of the first message.
    gc.enable()
    run(api, serve)


if __name__ == "__main__":
    main()

"""A Lambda function that streams: the loop that takes events and sends answers as they come.

Lambda's managed Python runtime sends whole answers only. ``vendor/stream_bootstrap`` starts this
module in its place; it needs the standard library alone, so that whatever goes wrong with the
service's own code is reported as Lambda wants it (Lambda developer guide, Runtime API).
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

if TYPE_CHECKING:
    from chalicelib.transports.chat.chat_route import Handler
    from chalicelib.transports.http import HttpResponse

HANDLER = "chalicelib.transports.chat.chat_stream:handle"
"""What answers, unless ``STREAM_HANDLER`` names another."""
BASE = "/2018-06-01/runtime"
PRELUDE_TYPE = "application/vnd.awslambda.http-integration-response"
DELIMITER = bytes(8)
"""Between the prelude, which has the status and the headers, and the body."""
ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY = "Lambda-Runtime-Function-Error-Body"

Serve = Callable[[dict[str, Any]], "HttpResponse"]

log = logging.getLogger(__name__)


class Invocation(NamedTuple):
    """An event to answer."""

    id: str
    event: bytes


class RuntimeApi:
    """Lambda's side, by its address. Each call takes a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address = address

    def next(self) -> Invocation:
        """Wait for the next event; the process is frozen meanwhile."""
        with closing(HTTPConnection(self._address)) as connection:
            connection.request("GET", f"{BASE}/invocation/next")
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                msg = f"the Runtime API answers with {answer.status}"
                raise HTTPException(msg)
            trace = answer.getheader("Lambda-Runtime-Trace-Id")
            if trace:
                os.environ["_X_AMZN_TRACE_ID"] = trace
            return Invocation(answer.headers["Lambda-Runtime-Aws-Request-Id"], answer.read())

    def report(self, where: str, error: BaseException) -> None:
        """Report a failure to begin (``init``), or to answer (``invocation/<id>``)."""
        with closing(HTTPConnection(self._address)) as connection:
            headers = {"Content-Type": "application/json", ERROR_TYPE: _type(error)}
            connection.request("POST", f"{BASE}/{where}/error", _described(error), headers)
            connection.getresponse().read()

    def send(self, id_: str, response: "HttpResponse") -> None:
        """Send an answer piece by piece. One that breaks off ends with trailers that say so.

        Raises:
            OSError: Lambda takes no more of it.
        """
        with closing(HTTPConnection(self._address)) as connection:
            connection.putrequest("POST", f"{BASE}/invocation/{id_}/response")
            connection.putheader("Content-Type", PRELUDE_TYPE)
            connection.putheader("Lambda-Runtime-Function-Response-Mode", "streaming")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.putheader("Trailer", f"{ERROR_TYPE}, {ERROR_BODY}")
            connection.endheaders()
            trailers = b""
            try:
                for piece in _pieces(response):
                    connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            except _BrokenOffError as broken:
                error = broken.__cause__ or broken
                body = base64.b64encode(_described(error)).decode()
                trailers = f"{ERROR_TYPE}: {_type(error)}\r\n{ERROR_BODY}: {body}\r\n".encode()
            finally:
                _close(response)
            connection.send(b"0\r\n%b\r\n" % trailers)
            connection.getresponse().read()


class _BrokenOffError(Exception):
    """An answer's body failed; the cause says why."""


def _pieces(response: "HttpResponse") -> Iterator[bytes]:
    """Yield the prelude, then the body, without the empty piece that would end it."""
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
            log.exception("a stream broke off")
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


def _described(error: BaseException) -> bytes:
    """Return a failure as Lambda's JSON. Its message stays in our log: it may hold anything."""
    return json.dumps(
        {"errorMessage": "see the log", "errorType": _type(error), "stackTrace": []}
    ).encode()


def run(api: RuntimeApi, serve: Serve) -> None:
    """Answer events for as long as Lambda sends any."""
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
        except Exception:  # The next answer is not to suffer from this one.
            log.warning("the answer was not taken to its end", exc_info=True)


def load() -> Serve:
    """Import what answers events: the service's code, as far as the handler needs it."""
    from chalicelib.core import logs  # noqa: PLC0415  what fails here is reported to Lambda
    from chalicelib.core.settings import settings  # noqa: PLC0415
    from chalicelib.transports.chat import function_url  # noqa: PLC0415

    logs.configure()
    settings()  # A function without its settings ends here, not at its first request.
    answering = handler()
    return lambda event: function_url.respond(event, answering)


def handler() -> "Handler":
    """Import and return what answers requests."""
    module, _, name = os.environ.get("STREAM_HANDLER", HANDLER).partition(":")
    found: Handler = getattr(importlib.import_module(module), name)
    return found


def main() -> None:
    """Run the function that the environment describes."""
    gc.disable()  # As in app.py: what is imported stays.
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        serve = load()
    except BaseException as error:
        api.report("init", error)
        raise
    gc.freeze()
    gc.enable()
    run(api, serve)


if __name__ == "__main__":
    main()

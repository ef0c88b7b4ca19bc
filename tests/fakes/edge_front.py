"""The edge and the function URL in one HTTP server, in front of a running streaming function.

It adds the edge's secret to each request, as CloudFront does, and passes the request to the
function as an event. The response is sent piece by piece, or, with ``buffers``, when it is
complete, as a proxy in the wrong place does.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any

from tests.fakes.lambda_runtime_api import Function, event


@contextmanager
def serving(function: Function, secret: str, *, buffers: bool = False) -> Iterator[str]:
    """Run the server. Yield its base URL."""

    class Handler(_Handler):
        def answer(self) -> None:
            self.respond(function, secret, buffers=buffers)

        do_GET = do_POST = do_OPTIONS = answer  # noqa: N815  http.server's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def respond(self, function: Function, secret: str, *, buffers: bool) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(headers.get("content-length", 0))).decode()
        added_headers = {"x-origin-secret": secret, "x-viewer-address": "192.0.2.1"}
        invocation = function.invoke(
            event(body, self.command, path, {**headers, **added_headers}, query)
        )
        pieces = invocation.pieces()
        first = [next(pieces, b"")]  # The prelude is known once the body begins.
        if buffers:
            first = [b"".join([*first, *pieces])]
        self.send_response(invocation.prelude["statusCode"])
        for name, value in invocation.prelude["headers"].items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in filter(None, chain(first, pieces)):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

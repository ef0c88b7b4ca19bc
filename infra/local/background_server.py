"""Runs an HTTP server of a measurement or a proof in a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Thread


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    """Serve during the block, and close the server at its end."""
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

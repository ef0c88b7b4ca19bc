"""The database of the tests over HTTP, for processes that a test starts."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


@pytest.fixture(scope="session")
def endpoint(_server: Callable[[], None]) -> Iterator[str]:
    """The URL at which another process reaches the database, and moto's other services."""
    if "AWS_ENDPOINT_URL_DYNAMODB" in os.environ:
        yield os.environ["AWS_ENDPOINT_URL_DYNAMODB"]
        return
    backends = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, backends, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()

"""Run moto's server, which replaces DynamoDB Local on machines without Java.

It listens on a free port of the loopback interface, and prints that port. Data is kept in memory.
"""

from threading import Lock
from typing import Any

from moto.dynamodb.responses import DynamoHandler
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def main() -> None:
    """Serve until killed, one request at a time, because moto's tables are not thread-safe."""
    lock, call_action = Lock(), DynamoHandler.call_action

    def locked(handler: Any) -> Any:  # noqa: ANN401  moto's types
        with lock:
            return call_action(handler)

    DynamoHandler.call_action = locked  # type: ignore[method-assign]
    server = make_server(
        "127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True
    )
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

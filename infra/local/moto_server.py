"""Run moto's server, which replaces DynamoDB Local on machines without Java.

It listens on a free port of the loopback interface, and prints that port. Data is kept in memory.
"""

import sys
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

sys.path.append(str(Path(__file__).parents[2]))  # Python in isolated mode does not search it.

from infra.local import quick_moto


def main() -> None:
    """Serve until killed."""
    quick_moto.make_quick()
    server = make_server(
        "127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True
    )
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

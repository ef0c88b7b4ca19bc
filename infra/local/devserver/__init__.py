"""What is missing in ``chalice local``: HTTP as the deployed system speaks it.

Stock Chalice echoes the Authorization header of a request to an unknown path, answers malformed
requests with HTML or not at all, streams nothing, and delays each answer on a kept-alive connection
by 44 ms (chalice.md). ``install`` has it run a maintained server instead (cheroot, ADR 12), which
hands requests to the same ``App`` that runs on Lambda.
"""

from collections.abc import Sequence

import chalice.local
from chalice.app import Chalice
from chalice.config import Config

from chalicelib.transports import schedules
from infra.local.devserver import chat, files, playground
from infra.local.devserver.api_gateway import ApiGateway, LocalRoute
from infra.local.devserver.server import Server

__all__ = ["ROUTES", "DevServer", "LocalRoute", "install"]

ROUTES = (*files.ROUTES, *chat.ROUTES, *playground.ROUTES)
"""What other parts than the API answer on AWS, or only developers see."""


class DevServer:
    """The server that ``chalice local`` runs, with the methods that Chalice calls."""

    def __init__(
        self,
        app_object: Chalice,
        config: Config,
        host: str,
        port: int,
        *,
        routes: Sequence[LocalRoute] = ROUTES,
    ) -> None:
        self.server = Server(host, port, ApiGateway(app_object, config, routes).respond)

    def serve_forever(self) -> None:
        """Answer requests, and run jobs in the background, as a schedule does on AWS."""
        schedules.run_in_background()
        host, port = self.server.bind_addr
        print(f"Serving on http://{host}:{port}")
        try:
            self.server.start()
        finally:
            self.server.stop()

    def shutdown(self) -> None:
        """Stop; called from another thread."""
        self.server.stop()


def install(routes: Sequence[LocalRoute] = ROUTES, port: int | None = None) -> None:
    """Have ``chalice local`` run our server; Chalice's other commands never make one.

    It serves on ``port``, or on Chalice's, which is 8000 without ``--port``.
    """

    def make(app_object: Chalice, config: Config, host: str, chalices_port: int) -> DevServer:
        return DevServer(app_object, config, host, port or chalices_port, routes=routes)

    chalice.local.LocalDevServer = make  # type: ignore[assignment,misc]

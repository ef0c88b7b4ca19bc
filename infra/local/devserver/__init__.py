"""The HTTP server of ``chalice local``, which behaves like the deployed system.

Stock Chalice echoes the Authorization header of a request to an unknown path, responds to malformed
requests with HTML or not at all, cannot stream, and delays each response on a kept-alive connection
by 44 ms. ``install`` replaces it with a maintained server (cheroot, ADR 12), which passes requests
to the same ``App`` that runs on Lambda.
"""

from collections.abc import Sequence

import chalice.local
from chalice.app import Chalice
from chalice.config import Config

from chalicelib.transports import scheduled_functions
from infra.local import receptionist, telegram_polling
from infra.local.devserver import chat, files, playground
from infra.local.devserver.api_gateway import ApiGateway, LocalRoute
from infra.local.devserver.inboxes import mail, max_messenger, merchant, sms, telegram, webhooks
from infra.local.devserver.server import Server

__all__ = ["ROUTES", "DevServer", "LocalRoute", "install"]

ROUTES = (
    *files.ROUTES,
    *chat.ROUTES,
    *playground.ROUTES,
    *mail.ROUTES,
    *max_messenger.ROUTES,
    *sms.ROUTES,
    *merchant.ROUTES,
    *telegram.ROUTES,
    *webhooks.ROUTES,
)
"""Routes that other parts than the API serve on AWS, and routes for developers only."""


class DevServer:
    """The server of ``chalice local``, with the methods that Chalice calls."""

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
        """Serve requests. In the background, run jobs and poll Telegram.

        On AWS, the schedule runs the jobs, and Telegram calls the webhook.
        """
        receptionist.install()
        self.server.prepare()
        scheduled_functions.run_in_background()
        # The Telegram of this server can be reached from now on.
        telegram_polling.run_in_background()
        host, port = self.server.bind_addr
        print(f"Serving on http://{host}:{port}")
        try:
            self.server.serve()
        finally:
            self.server.stop()

    def shutdown(self) -> None:
        """Stop the server, from another thread."""
        self.server.stop()


def install(routes: Sequence[LocalRoute] = ROUTES, port: int | None = None) -> None:
    """Make ``chalice local`` use this server. Chalice's other commands do not create a server.

    It serves on ``port``, or on Chalice's port, which is 8000 without ``--port``.
    """

    def make(app_object: Chalice, config: Config, host: str, chalices_port: int) -> DevServer:
        return DevServer(app_object, config, host, port or chalices_port, routes=routes)

    chalice.local.LocalDevServer = make  # type: ignore[assignment,misc]

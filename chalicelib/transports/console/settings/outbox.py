"""The page of the messages that a test workspace did not send."""

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the newest messages, newest first."""
    return request.page("outbox", messages=request.call("list_outbox")["messages"])

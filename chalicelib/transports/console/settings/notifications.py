"""Page of the messages that the account gets about a workspace."""

from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

CHANNELS = ("mail", "telegram")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the kinds of messages by channel, and the Telegram chat."""
    return _page(request, 200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the kinds of messages and their language, or the Telegram chat."""
    try:
        match request.form_value("action"):
            case "link":
                return _page(request, 200, code=request.call("link_telegram"))
            case "unlink":
                request.call("unlink_telegram")
                return redirect(f"{_path(request)}?done=telegram_unlinked")
        _save_choices(request)
    except AppError as error:
        return _page(request, error.status, request.problem(error))
    return redirect(f"{_path(request)}?done=notifications_saved")


def _save_choices(request: ConsoleRequest) -> None:
    chosen = {channel: set(request.form.get(channel, ())) for channel in CHANNELS}
    choices = [
        {"kind": kind, **{channel: kind in chosen[channel] for channel in CHANNELS}}
        for kind in MESSAGE_KINDS
    ]
    request.call("set_notifications", language=request.form_value("language"), choices=choices)


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/notifications"


def _page(
    request: ConsoleRequest,
    status: int,
    problem: Problem | None = None,
    code: dict[str, Any] | None = None,
) -> HttpResponse:
    try:
        telegram = request.call("get_telegram")
    except AppError:  # The page is of use without Telegram.
        telegram = None
    return request.page(
        "notifications",
        status,
        problem=problem,
        own=request.call("get_notifications"),
        telegram=telegram,
        code=code,
        path=_path(request),
    )

"""Page of the messages that the account gets about a workspace."""

from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Field, Record, Ticks, Typed
from chalicelib.transports.http import HttpResponse, redirect

CHANNELS = ("mail", "telegram")


@dataclass(frozen=True)
class Channels(Ticks):
    def read_form(self, request: ConsoleRequest) -> Typed:
        return {
            self.name: [
                channel for channel in CHANNELS if self.name in request.form.get(channel, [])
            ]
        }


def _channel_names(request: ConsoleRequest) -> dict[str, str]:
    return {"mail": request.translate("by_mail"), "telegram": "Telegram"}


FORM = Form(
    Field("language", "notify_language"),
    *(Channels(kind, f"notify_{kind}", names=_channel_names) for kind in MESSAGE_KINDS),
    changes="set_notifications",
)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the kinds of messages by channel, and the Telegram chat."""
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the kinds of messages and their language, or the Telegram chat."""
    try:
        match request.form_value("action"):
            case "link":
                return _page(request, _find(request), code=request.call("link_telegram"))
            case "unlink":
                request.call("unlink_telegram")
                return redirect(f"{_path(request)}?done=telegram_unlinked")
            case "all_mail" | "all_telegram" | "no_mail" | "no_telegram" as action:
                which, channel = action.split("_")
                _tick(request, which, channel=channel)
    except AppError as error:
        return _page(request, _find(request), State(error.status, request.problem(error)))

    return FORM.save(request, HOW)


def _tick(request: ConsoleRequest, which: str, *, channel: str) -> None:
    kinds = [choice["kind"] for choice in request.call("get_notifications")["choices"]]
    request.form[channel] = kinds if which == "all" else []


def _arguments(_: Record, changes: dict[str, Any]) -> dict[str, Any]:
    language = {"language": changes.pop("language")} if "language" in changes else {}
    choices = [
        {"kind": kind, **{channel: channel in channels for channel in CHANNELS}}
        for kind, channels in changes.items()
    ]
    return {**language, "choices": choices}


def _find(request: ConsoleRequest) -> Record:
    preferences = request.call("get_notifications")
    channels_by_kind = {
        kind["kind"]: [channel for channel in CHANNELS if kind[channel]]
        for kind in preferences["choices"]
    }
    return {**preferences, **channels_by_kind}


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/notifications"


def _page(
    request: ConsoleRequest,
    preferences: Record,
    state: State = STORED,
    code: dict[str, Any] | None = None,
) -> HttpResponse:
    try:
        telegram = request.call("get_telegram")
    except AppError:  # The page is of use without Telegram.
        telegram = None
    return request.page(
        "notifications",
        own=preferences,
        channels={
            channel: all(choice[channel] for choice in preferences["choices"])
            for channel in CHANNELS
        },
        telegram=telegram,
        code=code,
        path=_path(request),
        **FORM.page_values(request, preferences, state),
    )


HOW = Save(_find, _page, "notifications_saved", "", _arguments)

"""Pages of dialogs."""

from functools import partial
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

SIZE = 20
CHANNELS = ("widget", "page", "api", "test")
# Names in the page's address, and the filters of the operation.
FILTERS = {
    "bot": "agentId",
    "channel": "channel",
    "lead": "leadId",
    "q": "search",
    "from": "from",
    "to": "to",
}


def _list_values(request: ConsoleRequest, _: object) -> dict[str, Any]:
    return {"channels": CHANNELS, "bots": request.call("list_agents")["agents"]}


index = ListPage(
    *("dialogs", "list_dialogs", SIZE, FILTERS, _list_values), empty={"dialogs": [], "total": 0}
).index


def reply(request: ConsoleRequest) -> HttpResponse:
    """Send the visitor a reply, or show the dialog again with the reply and the problem."""
    try:
        request.call_once(
            "reply_to_visitor", id=request.http.path["dialog"], text=request.form_value("text")
        )
    except AppError as error:
        return _show(request, error)
    return redirect(f"{request.path}?done=reply_sent#replies")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the transcript of a dialog, with the bot's actions and the replies of members."""
    return _show(request)


def _show(request: ConsoleRequest, error: AppError | None = None) -> HttpResponse:
    page = request.page_number
    details = request.call("get_dialog_details", id=request.http.path["dialog"], page=page)
    return request.page(
        "dialog",
        error.status if error else 200,
        problem=request.problem(error) if error else Problem(),
        typed=request.form_value("text") if error else "",
        details=details,
        dialog=details["dialog"],
        entries=_entries(details, is_last=page * details["size"] >= details["total"]),
        page=page,
        tool_text=partial(_tool_text, request),
    )


def _tool_text(request: ConsoleRequest, name: str) -> str:
    key = f"tool_{name}"
    return request.translate(key) if texts.has(request.language, key) else name


def _entries(details: dict[str, Any], *, is_last: bool) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for message in details["messages"]:
        entries.append({"kind": "message", "at": message["createdAt"], **message})
        entries += (
            {**action, "action": action["kind"], "kind": "action"}
            for action in details["actions"]
            if action["messageId"] == message["id"]
        )
    handover_at = details["dialog"]["handoverAt"]
    times = [message["createdAt"] for message in details["messages"]]
    if handover_at and times and times[0] <= handover_at and (is_last or handover_at <= times[-1]):
        place = next(
            (
                n
                for n, dialog_entry in enumerate(entries)
                if dialog_entry.get("at", "") > handover_at
            ),
            None,
        )
        entries.insert(
            len(entries) if place is None else place, {"kind": "handover", "at": handover_at}
        )
    return entries

"""Page of what a bot may do: look things up, and propose bookings and orders."""

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.gateways import llm
from chalicelib.transports.console.bots.bots import bot_path, find_bot
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

MAX_FORMS = 100
"""The newest forms, from which the form of orders is chosen."""


def show(request: ConsoleRequest) -> HttpResponse:
    """Show what a bot may do and what it has done, with a form to change it."""
    return _page(request, 200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Set what a bot may do. The form sends all of its fields."""
    bot = find_bot(request)
    form_id = request.form_value("orderFormId") or None
    try:
        request.call(
            "update_agent",
            id=bot["id"],
            capabilities=request.form.get("capabilities", []),
            orderFormId=form_id,
            privacyUrl=request.form_value("privacyUrl").strip() or None,
        )
    except NotFoundError as error:  # The bot has just been found, so it is the form.
        text = request.translate("wrong_orderFormId")
        problem = Problem(request.translate("wrong_fields"), {"orderFormId": text})
        return _page(request, error.status, problem)
    except AppError as error:
        return _page(request, error.status, request.problem(error))
    return redirect(f"{bot_path(request, bot)}/capabilities?done=capabilities_saved")


def _page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    bot = find_bot(request)
    listed = request.call("list_forms", size=MAX_FORMS)
    shown = {
        "capabilities": bot["capabilities"],
        "orderFormId": bot["orderFormId"] or "",
        "privacyUrl": bot["privacyUrl"] or "",
    }
    if request.form:
        shown = {
            "capabilities": request.form.get("capabilities", []),
            "orderFormId": request.form_value("orderFormId"),
            "privacyUrl": request.form_value("privacyUrl"),
        }
    return request.page(
        "bot_capabilities",
        status,
        problem=problem,
        bot=bot,
        tab="capabilities",
        path=bot_path(request, bot),
        capabilities=CAPABILITIES,
        typed=shown,
        forms=listed["forms"],
        form_known=shown["orderFormId"] in {"", *(form["id"] for form in listed["forms"])},
        calls_no_tools=not llm.takes_tools(str(bot["model"])),
        actions=request.call("agent_stats", agentId=bot["id"])["actions"],
    )

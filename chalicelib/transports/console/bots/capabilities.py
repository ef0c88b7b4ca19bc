"""The page that sets which tools a bot may use."""

from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.gateways import llm
from chalicelib.transports.console.bots.bots import agent, bot_page
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Ticks, names_of
from chalicelib.transports.http import HttpResponse

MAX_FORMS = 100
"""Maximum forms, the newest first, from which the form of orders is chosen."""


def _problem(request: ConsoleRequest, error: AppError) -> Problem | None:
    if isinstance(error, NotFoundError):  # of the form
        text = request.translate("wrong_orderFormId")
        return Problem(request.translate("wrong_fields"), {"orderFormId": text})
    return None


def _names(request: ConsoleRequest) -> dict[str, str]:
    return {
        capability: request.translate(f"capability_{capability}") for capability in CAPABILITIES
    }


FORM = Form(
    Ticks("capabilities", "may_do", names=_names),
    Field(
        "orderFormId",
        "order_form",
        names=names_of("list_forms", list_name="forms", label_field="title", size=100),
    ),
    Field("privacyUrl", "privacy_url"),
    problems=_problem,
)


def _page(request: ConsoleRequest, bot: dict[str, Any], state: State = STORED) -> HttpResponse:
    forms = request.call("list_forms", size=MAX_FORMS)["forms"]
    form = FORM.page_values(request, bot, state)
    return bot_page(
        request,
        "bot_capabilities",
        tab="capabilities",
        capabilities=CAPABILITIES,
        forms=forms,
        form_known=form["typed"]["orderFormId"]
        in {"", *(form_option["id"] for form_option in forms)},
        calls_no_tools=not llm.takes_tools(str(bot["model"])),
        actions=request.call("agent_stats", agentId=bot["id"])["actions"],
        **form,
    )


show, save = FORM.editing(agent, "update_agent", _page, "capabilities_saved")

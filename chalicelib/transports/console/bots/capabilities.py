"""The page that sets which tools a bot may use."""

from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.gateways import llm
from chalicelib.transports.console.bots.bots import agent, bot_page
from chalicelib.transports.console.choices import FORMS
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Ticks
from chalicelib.transports.http import HttpResponse


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
    Field("orderFormId", "order_form", names=FORMS.names),
    Field("privacyUrl", "privacy_url"),
    changes="update_agent",
    problems=_problem,
)


def _page(request: ConsoleRequest, bot: dict[str, Any], state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, bot, state)
    order_form = form["typed"]["orderFormId"]
    forms = FORMS.offer(request, "orderFormId", [order_form])
    return bot_page(
        request,
        "bot_capabilities",
        tab="capabilities",
        capabilities=CAPABILITIES,
        forms=forms,
        form_known=order_form in {"", *forms.names},
        calls_no_tools=not llm.takes_tools(
            str(bot["model"]), tenant=request.current_membership.workspace.id
        ),
        actions=request.call("agent_stats", agentId=bot["id"])["actions"],
        **form,
    )


show, save = FORM.editing(agent, _page, "capabilities_saved")

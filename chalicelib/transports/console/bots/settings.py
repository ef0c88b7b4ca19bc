"""Pages that create a bot and change its settings."""

from typing import Any

from chalicelib.domains.bots.rules import answer_costs
from chalicelib.transports.console.bots.bots import agent, bot_page, bot_path
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Switch, lines
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

TRIAL_MODEL = "demo"  # The embedded model, which needs no provider.


FORM = Form(
    Field("name", "bot_name", empty="", wrong="wrong_bot_name"),
    Field("systemPrompt", "system_prompt", empty=""),
    Field("welcomeMessage", "welcome_message"),
    Field("model", empty=""),
    Switch("isActive", "bot_is_active", new=True),
    Switch("isPrivate", "bot_is_private"),
    lines("allowedOrigins", label="allowed_origins"),
    creates="create_agent",
    changes="update_agent",
)


def _redirect_to_new_bot(request: ConsoleRequest, answer: dict[str, Any]) -> HttpResponse:
    return redirect(f"{bot_path(request, answer['agent'])}/chat?done=bot_created")


def _models(request: ConsoleRequest, current_model: str) -> list[tuple[str, str]]:
    models = [
        (
            answer_costs.rubles_per_thousand(
                model["inputPrice"], output_price=model["outputPrice"]
            ),
            model["name"],
        )
        for model in request.call("list_models")["models"]
    ]
    options = [
        (
            name,
            request.translate(
                "model_for_trying" if name == TRIAL_MODEL else "model_costs",
                model=name,
                rubles=texts.number(request.language, cost),
            ),
        )
        for cost, name in sorted(models)
    ]
    if current_model and current_model not in dict(options):
        options.append((current_model, request.translate("model_unknown", model=current_model)))
    return options


def _default_model(models: list[tuple[str, str]]) -> str:
    # The cheapest model that is not only for trying out, if there is one.
    names = [name for name, _ in models]
    return next((name for name in names if name != TRIAL_MODEL), TRIAL_MODEL)


def _new_page(request: ConsoleRequest, _: None, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, None, state)
    form_values = form["typed"]
    models = _models(request, form_values["model"])
    form_values["model"] = form_values["model"] or _default_model(models)
    return request.page("bot_new", models=models, **form)


def _settings_page(
    request: ConsoleRequest, bot: dict[str, Any], state: State = STORED
) -> HttpResponse:
    form = FORM.page_values(request, bot, state)
    models = _models(request, form["typed"]["model"])
    return bot_page(request, "bot_settings", tab="settings", models=models, **form)


new_bot_page, create = FORM.creation(_new_page, _redirect_to_new_bot)
show, save = FORM.editing(agent, _settings_page, "bot_saved")

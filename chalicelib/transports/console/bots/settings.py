"""Pages that create a bot and change its settings: prompt, greeting, model and access."""

from typing import Any

from chalicelib.core.errors import AppError, ConflictError
from chalicelib.domains.bots.operations.bots import MAX_AGENTS
from chalicelib.domains.bots.rules import answer_costs
from chalicelib.transports.console.bots.bots import bot_path, find_bot
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

SEEN = "seen"
"""Hidden field with the time of the bot's last change when the page was shown."""
TRIAL_MODEL = "demo"
"""The embedded model, which needs no provider."""
_LABELS = {
    "name": "bot_name",
    "systemPrompt": "system_prompt",
    "welcomeMessage": "welcome_message",
    "model": "model",
    "allowedOrigins": "allowed_origins",
}
_FLAGS = {"isActive": "bot_is_active", "isPrivate": "bot_is_private"}


def new_bot_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form that creates a bot."""
    return _new_page(request, 200)


def create(request: ConsoleRequest) -> HttpResponse:
    """Create a bot. A form that is sent twice creates one bot."""
    try:
        made = request.call_once("create_agent", **_typed_settings(request))
    except ConflictError as error:
        problem = Problem(request.translate("bots_full", most=MAX_AGENTS))
        return _new_page(request, error.status, problem)
    except AppError as error:
        return _new_page(request, error.status, _problem(request, error))
    return redirect(f"{bot_path(request, made['agent'])}/chat?done=bot_created")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a bot's settings, with a form to change them."""
    return _settings_page(request, 200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Change a bot's settings, unless they have changed since the page was shown."""
    bot = find_bot(request)
    settings = _typed_settings(request)
    if request.form_value(SEEN) not in {"", str(bot["updatedAt"])}:
        rows = _differences(request, bot, settings)
        if rows:
            return _settings_page(request, ConflictError.status, conflicts=rows)
    try:
        request.call("update_agent", id=bot["id"], **settings)
    except AppError as error:
        return _settings_page(request, error.status, _problem(request, error))
    return redirect(f"{bot_path(request, bot)}/settings?done=bot_saved")


def _typed_settings(request: ConsoleRequest) -> dict[str, Any]:
    """Return the arguments of the operations. The form sends all of its fields."""
    return {
        "name": request.form_value("name"),
        "systemPrompt": _text(request, "systemPrompt"),
        "welcomeMessage": _text(request, "welcomeMessage") or None,
        "model": request.form_value("model"),
        **{name: request.form_value(name) == "on" for name in _FLAGS},
        "allowedOrigins": request.form_value("allowedOrigins").split(),
    }


def _text(request: ConsoleRequest, name: str) -> str:
    """Return a text of several lines. Browsers send line breaks as CR LF."""
    return request.form_value(name).replace("\r\n", "\n").strip()


def _differences(
    request: ConsoleRequest, bot: dict[str, Any], settings: dict[str, Any]
) -> list[tuple[str, str, str]]:
    """Return the label, the stored and the typed value of each setting that differs."""

    def words(value: Any) -> str:  # noqa: ANN401  any JSON
        if isinstance(value, bool):
            return request.translate("switch_on" if value else "switch_off")
        return " ".join(value) if isinstance(value, list) else str(value or "")

    return [
        (request.translate(label), words(bot[name]), words(settings[name]))
        for name, label in (_LABELS | _FLAGS).items()
        if (bot[name] or None) != (settings[name] or None)
    ]


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the messages of a failure. An error in one of the origins is shown at their field."""
    problem = request.problem(error)
    fields = dict(problem.fields)
    if any(each.field.startswith("allowedOrigins") for each in error.errors):
        fields = {k: v for k, v in fields.items() if not k.startswith("allowedOrigins")}
        fields["allowedOrigins"] = request.translate("wrong_allowedOrigins")
    if "name" in fields:
        fields["name"] = request.translate("wrong_bot_name")
    return problem._replace(fields=fields)


def _models(request: ConsoleRequest, chosen: str) -> list[tuple[str, str]]:
    """Return the names of models with their price in words, the cheapest first."""
    listed = [
        (answer_costs.rubles_per_thousand(model["inputPrice"], model["outputPrice"]), model["name"])
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
        for cost, name in sorted(listed)
    ]
    if chosen and chosen not in dict(options):
        options.append((chosen, request.translate("model_unknown", model=chosen)))
    return options


def _default_model(models: list[tuple[str, str]]) -> str:
    """Return the cheapest model that is not only for trying out, if there is one."""
    names = [name for name, _ in models]
    return next((name for name in names if name != TRIAL_MODEL), TRIAL_MODEL)


def _shown(request: ConsoleRequest, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the form: what was typed, or else what is stored."""
    if request.form:
        return {name: request.form_value(name) for name in (*_LABELS, *_FLAGS)}
    words = {name: stored.get(name) or "" for name in _LABELS}
    flags = {name: "on" if stored[name] else "" for name in _FLAGS}
    return words | flags | {"allowedOrigins": "\n".join(stored.get("allowedOrigins") or [])}


def _new_page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    typed = _shown(request, {"isActive": True, "isPrivate": False})
    models = _models(request, typed["model"])
    typed["model"] = typed["model"] or _default_model(models)
    return request.page("bot_new", status, problem=problem, typed=typed, models=models)


def _settings_page(
    request: ConsoleRequest,
    status: int,
    problem: Problem | None = None,
    conflicts: list[tuple[str, str, str]] | None = None,
) -> HttpResponse:
    bot = find_bot(request)
    typed = _shown(request, bot)
    return request.page(
        "bot_settings",
        status,
        problem=problem,
        bot=bot,
        tab="settings",
        path=bot_path(request, bot),
        typed=typed,
        models=_models(request, typed["model"]),
        conflicts=conflicts,
    )

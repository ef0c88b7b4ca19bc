"""Pages of bots."""

from collections.abc import Iterable
from typing import Any

from chalicelib.core.errors import (
    AlreadyCreatedError,
    AppError,
)
from chalicelib.core.settings import settings
from chalicelib.core.text import matches_search
from chalicelib.domains.billing.rules.spending_windows import WINDOWS
from chalicelib.transports.chat import chat_route
from chalicelib.transports.console import record_states
from chalicelib.transports.console.console_request import (
    SEARCH_THRESHOLD,
    ConsoleRequest,
    Problem,
    find_by_id,
)
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Record, rubles
from chalicelib.transports.http import HttpResponse, redirect

# Error codes of the chat that the page translates. The others appear in English.
FAILURES = (
    "unauthorized",
    "forbidden",
    "not_found",
    "rate_limited",
    "limit_daily",
    "limit_weekly",
    "limit_monthly",
    "insufficient_balance",
    "session_busy",
    "not_configured",
)


def index(request: ConsoleRequest) -> HttpResponse:
    """List the bots."""
    bots_in_order = request.call("list_agents")["agents"]
    query = request.query_value("q").strip()
    bots = [bot for bot in bots_in_order if matches_search([bot["name"]], query)]
    return request.page(
        "bots",
        bots=_add_states(request, bots),
        count=len(bots_in_order),
        searchable=len(bots_in_order) > SEARCH_THRESHOLD,
        query=query,
        base_url=settings().public_url,
        no_money=has_no_money(request),
    )


def show(request: ConsoleRequest) -> HttpResponse:
    """Redirect to the first page of a bot."""
    return redirect(f"{bot_path(request, find_bot(request))}/settings")


def keys(request: ConsoleRequest) -> HttpResponse:
    """List a bot's keys, with a form to create one."""
    return _keys_page(request, 200)


def create_key(request: ConsoleRequest) -> HttpResponse:
    """Create a bot's key and show its token once."""
    bot = find_bot(request)
    try:
        response = request.call_once(
            "create_bot_key", agentId=bot["id"], name=request.form_value("name")
        )
    except AlreadyCreatedError as error:
        key = _key(request, bot, str(error.details["keyId"]))
        return request.page(
            "bot_key_made_before", 409, bot=bot, key=key, path=bot_path(request, bot)
        )
    except AppError as error:
        return _keys_page(request, error.status, request.problem(error))
    return request.page(
        "bot_key_made",
        bot=bot,
        path=bot_path(request, bot),
        key=_key(request, bot, response["keyId"]),
        token=response["token"],
        chat_url=chat_route.url(),
    )


def limits(request: ConsoleRequest) -> HttpResponse:
    """Show a bot's spending limits, and its spending."""
    return _limits_page(request, _budget(request))


def set_limits(request: ConsoleRequest) -> HttpResponse:
    """Set a bot's spending limits. An empty field removes one; a missing field changes nothing."""
    form = _limits_form(filter(request.form.__contains__, WINDOWS))
    how = Save(_budget, _limits_page, "limits_set", "agentId")
    return form.save(request, how)


def _limits_form(windows: Iterable[str]) -> Form:
    fields = (rubles(window, label=window) for window in windows)
    return Form(*fields, changes="set_bot_limits")


def _budget(request: ConsoleRequest) -> Record:
    budget = request.call("get_bot_limits", agentId=agent(request)["id"])
    limits: dict[str, Any] = {window: budget[window]["limit"] for window in WINDOWS}
    return {"id": budget["agentId"], "budget": budget, **limits}


def chat(request: ConsoleRequest) -> HttpResponse:
    """Show a test chat with the bot."""
    return bot_page(
        request,
        "bot_chat",
        tab="chat",
        chat_path=chat_route.PATH if not settings().chat_url else None,
        chat_url=chat_route.url(),
        failures={code: request.translate(f"chat_{code}") for code in FAILURES},
    )


def agent(request: ConsoleRequest) -> dict[str, Any]:
    """Return the bot of a page, or raise NotFoundError."""
    bot: dict[str, Any] = request.call("get_agent", id=request.http.path["id"])["agent"]
    return bot


def find_bot(request: ConsoleRequest) -> dict[str, Any]:
    """Return the bot of a page with its state, or raise NotFoundError."""
    return _add_states(request, [agent(request)])[0]


def has_no_money(request: ConsoleRequest) -> bool:
    """Whether the balance is empty, for members who may see it."""
    return (
        request.current_membership.may("get_balance")
        and request.call("get_balance")["available"] <= 0
    )


def _add_states(request: ConsoleRequest, bots: list[dict[str, Any]]) -> list[dict[str, Any]]:
    held_bots = request.call("list_held_back_bots")["bots"]
    reasons = {held_bot["agentId"]: held_bot["reason"] for held_bot in held_bots}
    has_money = not has_no_money(request)
    return record_states.add_states(
        bots,
        lambda bot: record_states.compute_bot_state(
            bot, is_held=reasons.get(bot["id"]), has_money=has_money
        ),
    )


def bot_page(
    request: ConsoleRequest,
    template: str,
    *,
    tab: str,
    status: int = 200,
    **values: Any,  # noqa: ANN401  of the template
) -> HttpResponse:
    """Return a page of a bot, with the common layout."""
    bot = find_bot(request)
    path = bot_path(request, bot)
    return request.page(template, status, bot=bot, tab=tab, path=path, **values)


def bot_path(request: ConsoleRequest, bot: dict[str, object]) -> str:
    """Return the path of a bot's pages."""
    return f"{request.current_membership.path}/bots/{bot['id']}"


def _key(request: ConsoleRequest, bot: dict[str, object], key_id: str) -> dict[str, object]:
    return find_by_id(request.call("list_bot_keys", agentId=bot["id"])["keys"], key_id)


def _keys_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    keys = request.call("list_bot_keys", agentId=request.http.path["id"])
    page_values = {"listed": keys, "typed_name": request.form_value("name")}
    return bot_page(request, "bot_keys", tab="keys", status=status, problem=problem, **page_values)


def _limits_page(request: ConsoleRequest, budget: Record, state: State = STORED) -> HttpResponse:
    form = _limits_form(WINDOWS).page_values(request, budget, state)
    form["typed"] = dict.fromkeys(WINDOWS, "") | form["typed"]
    page_values = {"budget": budget["budget"], "windows": WINDOWS}
    return bot_page(request, "bot_limits", tab="limits", **page_values, **form)


def _confirmation_values(request: ConsoleRequest) -> dict[str, Any]:
    bot = find_bot(request)
    key = _key(request, bot, request.http.path["key"])
    return {"bot": bot, "key": key, "path": bot_path(request, bot)}


confirm_delete_key, delete_key = deletion(
    "bot_key_delete",
    _confirmation_values,
    "delete_bot_key",
    notice="bot_key_deleted",
    agentId="id",
    keyId="key",
)

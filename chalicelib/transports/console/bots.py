"""Pages of bots: keys, limits, a test chat, and the code that embeds a bot in a site."""

import re
from contextlib import suppress

from chalicelib.core.errors import (
    AlreadyCreatedError,
    AppError,
    ConflictError,
    FieldError,
    NotFoundError,
    ValidationError,
)
from chalicelib.core.settings import settings
from chalicelib.core.text import search_fold
from chalicelib.core.wire.schema import MAX_KOPECKS
from chalicelib.domains.billing.rules.spending import WINDOWS
from chalicelib.transports.chat import chat_route
from chalicelib.transports.console.console_request import SEARCH_FROM, ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

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
"""Error codes of the chat that the page has its own texts for. The others appear in English."""
_RUBLES = re.compile(r"([0-9]{1,12})(?:[.,]([0-9]{1,2}))?", re.ASCII)
_SPACES = re.compile(r"[\s\u00a0\u202f]")


def index(visit: ConsoleRequest) -> HttpResponse:
    """List the bots."""
    listed = visit.call("list_agents")["agents"]
    wanted = visit.asked("q").strip()
    bots = [bot for bot in listed if search_fold(wanted) in search_fold(bot["name"])]
    return visit.page(
        "bots",
        bots=_with_states(visit, bots),
        count=len(listed),
        searchable=len(listed) > SEARCH_FROM,
        wanted=wanted,
        base_url=settings().public_url,
    )


def show(visit: ConsoleRequest) -> HttpResponse:
    """Redirect to the first page of a bot."""
    return redirect(f"{_path(visit, _bot(visit))}/keys")


def keys(visit: ConsoleRequest) -> HttpResponse:
    """List a bot's keys, with a form to create one."""
    return _keys_page(visit, 200)


def create_key(visit: ConsoleRequest) -> HttpResponse:
    """Create a bot's key and show its token once."""
    bot = _bot(visit)
    try:
        made = visit.call_once("create_bot_key", agentId=bot["id"], name=visit.text("name"))
    except AlreadyCreatedError as error:
        key = _key(visit, bot, str(error.details["keyId"]))
        return visit.page("bot_key_made_before", 409, bot=bot, key=key, path=_path(visit, bot))
    except AppError as error:
        problem = visit.problem(error)
        if error.code == ConflictError.code:
            most = visit.call("list_bot_keys", agentId=bot["id"])["most"]
            problem = Problem(visit.say("bot_keys_full", most=most))
        return _keys_page(visit, error.status, problem)
    return visit.page(
        "bot_key_made",
        bot=bot,
        path=_path(visit, bot),
        key=_key(visit, bot, made["keyId"]),
        token=made["token"],
        chat_url=settings().public_url + chat_route.PATH,
    )


def ask_to_delete_key(visit: ConsoleRequest) -> HttpResponse:
    """Show the confirmation to delete a bot's key; redirect to the list if the key is gone."""
    bot = _bot(visit)
    try:
        key = _key(visit, bot, visit.request.path["key"])
    except NotFoundError:
        return _deleted(visit, bot)
    return visit.page("bot_key_delete", bot=bot, key=key, path=_path(visit, bot))


def delete_key(visit: ConsoleRequest) -> HttpResponse:
    """Delete a bot's key. A second click may have deleted it already."""
    bot = _bot(visit)
    with suppress(NotFoundError):
        visit.call("delete_bot_key", agentId=bot["id"], keyId=visit.request.path["key"])
    return _deleted(visit, bot)


def _deleted(visit: ConsoleRequest, bot: dict[str, object]) -> HttpResponse:
    return redirect(f"{_path(visit, bot)}/keys?done=bot_key_deleted")


def limits(visit: ConsoleRequest) -> HttpResponse:
    """Show a bot's spending limits, and its spending."""
    return _limits_page(visit, 200)


def set_limits(visit: ConsoleRequest) -> HttpResponse:
    """Set a bot's spending limits. An empty field removes a limit; a missing one keeps it."""
    bot = _bot(visit)
    try:
        visit.call("set_bot_limits", agentId=bot["id"], **_amounts(visit))
    except AppError as error:
        return _limits_page(visit, error.status, visit.problem(error))
    return redirect(f"{_path(visit, bot)}/limits?done=limits_set")


def chat(visit: ConsoleRequest) -> HttpResponse:
    """Show a test chat with the bot."""
    bot = _bot(visit)
    return visit.page(
        "bot_chat",
        bot=bot,
        tab="chat",
        path=_path(visit, bot),
        chat_path=chat_route.PATH,
        chat_url=settings().public_url + chat_route.PATH,
        failures={code: visit.say(f"chat_{code}") for code in FAILURES},
    )


def embed(visit: ConsoleRequest) -> HttpResponse:
    """Show the code that embeds the bot in a site."""
    bot = _bot(visit)
    code = (
        f'<script src="{settings().public_url}/widget.js" data-agent="{bot["id"]}" async></script>'
    )
    return visit.page("bot_embed", bot=bot, tab="embed", path=_path(visit, bot), code_text=code)


def _amounts(visit: ConsoleRequest) -> dict[str, int | None]:
    """Return the limits of the form, in kopecks.

    Raises:
        ValidationError: some fields are not amounts; it names each of them.
    """
    amounts: dict[str, int | None] = {}
    wrong: list[FieldError] = []
    for window in filter(visit.form.__contains__, WINDOWS):
        try:
            amounts[window] = kopecks(window, visit.text(window))
        except ValidationError as error:
            wrong += error.errors
    if wrong:
        raise ValidationError("Some limits are no amounts.", errors=wrong)
    return amounts


def kopecks(field: str, text: str) -> int | None:
    """Convert an amount in rubles to kopecks; None if the text is empty.

    Raises:
        ValidationError: the text is not an amount.
    """
    compact = _SPACES.sub("", text)
    if not compact:
        return None
    found = _RUBLES.fullmatch(compact.removesuffix("₽"))
    amount = int(found[1]) * 100 + int((found[2] or "0").ljust(2, "0")) if found else -1
    if not 0 <= amount <= MAX_KOPECKS:
        raise ValidationError.of(field, "expected an amount in rubles from 0, such as 99.90")
    return amount


def _bot(visit: ConsoleRequest) -> dict[str, object]:
    (found,) = _with_states(visit, [visit.call("get_agent", id=visit.request.path["id"])["agent"]])
    return found


def _with_states(visit: ConsoleRequest, bots: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return bots with their ``state``: active, inactive, stopped or limit_reached."""
    held = visit.call("list_held_back_bots")["bots"]
    reasons = {each["agentId"]: each["reason"] for each in held}
    return [
        {**bot, "state": reasons.get(bot["id"], "active") if bot["isActive"] else "inactive"}
        for bot in bots
    ]


def _path(visit: ConsoleRequest, bot: dict[str, object]) -> str:
    return f"{visit.here.path}/bots/{bot['id']}"


def _key(visit: ConsoleRequest, bot: dict[str, object], key_id: str) -> dict[str, object]:
    for key in visit.call("list_bot_keys", agentId=bot["id"])["keys"]:
        if key["id"] == key_id:
            return dict(key)
    raise NotFoundError("No key of this bot has this id.")


def _keys_page(visit: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    bot = _bot(visit)
    listed = visit.call("list_bot_keys", agentId=bot["id"])
    return visit.page(
        "bot_keys",
        status,
        problem=problem,
        bot=bot,
        tab="keys",
        path=_path(visit, bot),
        listed=listed,
        typed_name=visit.text("name"),
    )


def _limits_page(
    visit: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    bot = _bot(visit)
    budget = visit.call("get_bot_limits", agentId=bot["id"])
    typed = {w: visit.text(w) if visit.form else _rubles(budget[w]["limit"]) for w in WINDOWS}
    return visit.page(
        "bot_limits",
        status,
        problem=problem,
        bot=bot,
        tab="limits",
        path=_path(visit, bot),
        budget=budget,
        typed=typed,
        windows=WINDOWS,
    )


def _rubles(kopecks_of: int | None) -> str:
    """Return an amount in rubles, as a person would type it."""
    if kopecks_of is None:
        return ""
    whole, rest = divmod(kopecks_of, 100)
    return f"{whole}.{rest:02d}" if rest else str(whole)

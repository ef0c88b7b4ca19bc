"""Pages of API keys."""

import re
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.areas import SCOPED, WORKSPACE
from chalicelib.core.errors import (
    AlreadyCreatedError,
    AppError,
    ValidationError,
)
from chalicelib.core.plans import PLANS_WITH_API
from chalicelib.core.scopes import Scope, expand
from chalicelib.core.settings import settings
from chalicelib.core.text import matches_search
from chalicelib.transports.console.console_request import (
    SEARCH_THRESHOLD,
    ConsoleRequest,
    Problem,
    find_by_id,
)
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, number
from chalicelib.transports.http import HttpResponse, redirect

PRESETS = ("read", "agent", "everything")
FAILED_CALLS = 20  # on a page
FORM = Form(
    Field("name", "key_name", empty=""),
    number("callsPerMinute", label="key_limit", wrong="wrong_key_limit"),
    changes="update_key",
)
MAX_INACTIVE_SHOWN = 20  # Maximum revoked and expired keys on the page, the latest first.


def index(request: ConsoleRequest) -> HttpResponse:
    """List the keys. Active keys come first."""
    response = request.call("list_keys")
    query = request.query_value("q")
    keys = [
        {**key, "rights": rights(key["scopes"])}
        for key in response["keys"]
        if matches_search((key["name"], key["masked"]), query)
    ]
    live = [key for key in keys if key["state"] == "live"]
    inactive = [key for key in keys if key["state"] != "live"]
    return request.page(
        "keys",
        keys=live,
        inactive=inactive[:MAX_INACTIVE_SHOWN],
        inactive_count=len(inactive),
        listed=response,
        searchable=len(response["keys"]) > SEARCH_THRESHOLD,
        query=query,
        plan_lacks_api=plan_lacks_api(request),
        base_url=settings().public_url,
    )


def new_key_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a new key, or the list if no key can be created."""
    response = request.call("list_keys")
    if plan_lacks_api(request) or response["live"] >= response["most"]:
        return redirect(f"{request.current_membership.path}/keys")
    return _key_form(request, 200, ticked=preset("read", admin=_admin(request)))


def create(request: ConsoleRequest) -> HttpResponse:
    """Create a key and show its token once. If the form chooses a preset, only tick its boxes."""
    if preset_name := request.form_value("preset"):
        return _key_form(request, 200, ticked=preset(preset_name, admin=_admin(request)))
    ticked = frozenset(request.form.get("scopes", ()))
    try:
        response = request.call_once(
            "create_key",
            name=request.form_value("name"),
            scopes=sorted(ticked),
            expires=_end_of_day(
                request.form_value("expires"),
                timezone=request.current_membership.workspace.timezone,
            ),
        )
    except AlreadyCreatedError as error:
        return request.page("key_made_before", 409, key=_key(request, str(error.details["keyId"])))
    except AppError as error:
        return _key_form(request, error.status, ticked=ticked, problem=request.problem(error))
    return request.page(
        "key_made",
        token=response["token"],
        key=_key(request, response["keyId"]),
        base_url=settings().public_url,
        example_path=_example_path(response["scopes"]),
    )


def confirm_revoke(request: ConsoleRequest) -> HttpResponse:
    """Show the confirmation to revoke a key."""
    key = _key(request, request.http.path["id"])
    if key["state"] == "revoked":
        return redirect(f"{request.current_membership.path}/keys?done=key_revoked")
    return request.page("key_revoke", key=key)


def revoke(request: ConsoleRequest) -> HttpResponse:
    """Revoke a key permanently."""
    request.call("revoke_key", id=request.http.path["id"])
    return redirect(f"{request.current_membership.path}/keys?done=key_revoked")


def preset(name: str, *, admin: bool) -> frozenset[str]:
    """Return the scopes of a preset. Only ADMIN accounts get the blog's scopes."""
    scopes = [scope for scope in Scope if not scope.by_name and (admin or not scope.admin_only)]
    reads = {str(scope) for scope in scopes if scope.endswith(":read")}
    match name:
        case "read":
            return frozenset(reads)
        case "agent":
            written_scopes = {
                f"{scope.name}:write" for scope in SCOPED.values() if scope.written_by_agents
            }
            return frozenset(reads | written_scopes)
        case "everything":
            return frozenset(map(str, scopes))
    return frozenset()


def rights(scopes: list[str]) -> list[tuple[str, str]]:
    """Return the rights (``read``, ``write`` or ``both``) by the catalogue key of an area."""
    rights_by_text: dict[str, set[str]] = {}
    for scope in scopes:
        area, _, right = scope.partition(":")
        text = SCOPED[area].text if area in SCOPED else "area_all"
        rights_by_text.setdefault(text, set()).add(right)
    return [
        (text, "both" if len(kinds) > 1 else next(iter(kinds)))
        for text, kinds in rights_by_text.items()
    ]


def meanings(scopes: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what scopes let a key do: rights with catalogue keys, by the one of their area."""
    texts_by_area: dict[str, list[tuple[str, str]]] = {}
    for scope in sorted(expand(tuple(scopes)), key=list(Scope).index):
        area, right = SCOPED[scope.area], scope.partition(":")[2]
        texts_by_area.setdefault(area.text, []).append((right, area.meaning(right)))
    return list(texts_by_area.items())


def failed_calls(request: ConsoleRequest, key_id: str) -> dict[str, Any]:
    """Return what a page shows of the failed calls of a key or an app."""
    before = request.query_value("before")
    position = {"before": before} if before else {}
    log = request.call("list_errors_of_key", id=key_id, limit=FAILED_CALLS, **position)
    return {"log": log, "first": not position}


def _find(request: ConsoleRequest) -> dict[str, Any]:
    return _key(request, request.http.path["id"])


def _page(request: ConsoleRequest, key: dict[str, Any], state: State = STORED) -> HttpResponse:
    return request.page(
        "key",
        key=key,
        meanings=meanings(key["scopes"]),
        **failed_calls(request, key["id"]),
        **FORM.page_values(request, key, state),
    )


show, save = FORM.editing(_find, _page, "key_saved")


def _key_form(
    request: ConsoleRequest, status: int, *, ticked: frozenset[str], problem: Problem | None = None
) -> HttpResponse:
    zone = request.current_membership.workspace.timezone
    return request.page(
        "key_new",
        status,
        problem=problem,
        typed_name=request.form_value("name"),
        expires=request.form_value("expires"),
        tomorrow=(clock.local_day(clock.now(), zone) + timedelta(days=1)).isoformat(),
        ticked=ticked,
        areas=[area for area in SCOPED.values() if _admin(request) or not area.admin_only],
        presets={name: sorted(preset(name, admin=_admin(request))) for name in PRESETS},
    )


def _key(request: ConsoleRequest, key_id: str) -> dict[str, Any]:
    key = find_by_id(request.call("list_keys")["keys"], key_id)
    return {**key, "rights": rights(key["scopes"])}


def _admin(request: ConsoleRequest) -> bool:
    return request.signed_in_account.role == "admin"


def plan_lacks_api(request: ConsoleRequest) -> bool:
    """Whether the workspace's plan excludes the API."""
    return request.current_membership.workspace.plan not in PLANS_WITH_API


def _end_of_day(text: str, *, timezone: str) -> str | None:
    if not text.strip():
        return None
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip(), re.ASCII):
        raise ValidationError.of("expires", message="expected a date such as 2027-01-31")
    try:
        day = date.fromisoformat(text.strip())
        return datetime.combine(day, time(23, 59, 59), ZoneInfo(timezone)).isoformat()
    except (ValueError, OverflowError):
        raise ValidationError.of("expires", message="expected a date such as 2027-01-31") from None


def _example_path(scopes: list[str]) -> str:
    for scope in scopes:
        area, _, right = scope.partition(":")
        if right == "read" and area in SCOPED and SCOPED[area].example:
            return SCOPED[area].example
    return WORKSPACE.example

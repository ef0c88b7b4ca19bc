"""Pages of clients: the list, one person with what they did, and the erasure of a person."""

import hashlib
import re
from contextlib import suppress
from typing import Any

from chalicelib.core.errors import (
    AppError,
    NotFoundError,
    RateLimitedError,
    ValidationError,
    VersionConflictError,
)
from chalicelib.core.settings import settings
from chalicelib.lib import emails
from chalicelib.transports.console import record_links
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

PER_PAGE = 25
MAX_PAGE = 100
"""Last page of the list, which takes about 56 read units. Clients beyond it are searched for."""
SORTS = ("lastActivityDesc", "createdAtDesc", "nameAsc")
FIELDS = ("name", "email", "phone", "tags", "notes")
CONTACTS = ("name", "email", "phone")
DUPLICATE = "duplicate_client"
UNFINISHED = "erasure_unfinished"
MAX_SHOWN = 50
"""Records that the page before an erasure lists. Its counts include all."""

Client = dict[str, Any]


def index(request: ConsoleRequest) -> HttpResponse:
    """List the clients that match the filter. An invalid filter is reported and ignored."""
    query, tag = (request.query_value(name).strip() for name in ("q", "tag"))
    sort = request.query_value("sort")
    arguments = {"size": PER_PAGE, "sort": sort if sort in SORTS else SORTS[0]}
    filters = {name: text for name, text in (("search", query), ("tag", tag)) if text}
    page, problem, status = min(request.page_number, MAX_PAGE), None, 200
    try:
        listed = request.call("list_clients", **arguments, page=page, **filters)
    except (RateLimitedError, ValidationError) as error:
        problem, status, page = request.problem(error), error.status, 1
        listed = request.call("list_clients", **arguments)
    total = listed["total"]
    return request.page(
        "clients",
        status,
        problem=problem,
        clients=listed["clients"],
        total=total,
        page=page,
        size=PER_PAGE,
        is_last=page == MAX_PAGE and total > page * PER_PAGE,
        query=query,
        tag=tag,
        sort=arguments["sort"],
        sorts=SORTS,
        filtered=bool(filters),
        searchable=total > SEARCH_THRESHOLD or bool(filters),
        base_url=settings().public_url,
    )


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a client with their leads, bookings and orders."""
    return _client_page(request, 200, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Save a client, unless another person has changed it since the form was opened."""
    typed = _typed(request)
    try:
        if not any(typed[name] for name in CONTACTS):
            raise ValidationError.of("name", "expected a name, an e-mail address or a phone")
        request.call(
            "update_client",
            id=request.http.path["client"],
            ifVersion=_version(request),
            tags=_tags(typed["tags"]),
            **{name: typed[name] or None for name in FIELDS if name != "tags"},
        )
    except VersionConflictError as error:
        return _conflict_page(request, error, typed)
    except AppError as error:
        found = _find(request)
        if error.code == DUPLICATE:
            other = request.call("get_client", id=error.details["clientId"])["client"]
            return _client_page(
                request, error.status, found, _duplicate(request, other, typed), typed, other=other
            )
        return _client_page(request, error.status, found, _problem(request, error, typed), typed)
    return redirect(f"{_path(request)}?done=client_saved")


def confirm_erase(request: ConsoleRequest) -> HttpResponse:
    """Show what an erasure would remove, and ask for confirmation."""
    client = _find(request)["client"]
    if _is_nobody(client):
        return request.page("client_erased", client=client, gone=None, path=_path(request))
    plan = request.call("erase_client", clientId=client["id"], dryRun=True)
    return request.page(
        "client_erase",
        client=client,
        plan=plan,
        shown=plan["found"][:MAX_SHOWN],
        path=_path(request),
        link=record_links.links(request),
    )


def erase(request: ConsoleRequest) -> HttpResponse:
    """Erase a person and show what was removed. A second click removes nothing more."""
    client = _find(request)["client"]
    try:
        gone = request.call("erase_client", clientId=client["id"])
    except AppError as error:
        if error.code != UNFINISHED:
            raise
        return redirect(f"{_path(request)}/erase?done={UNFINISHED}")
    return request.page("client_erased", client=client, gone=gone, path=_path(request))


def _conflict_page(
    request: ConsoleRequest, error: VersionConflictError, typed: dict[str, str]
) -> HttpResponse:
    """Show the changes of another person beside the typed values.

    The form keeps the fields that its reader changed, and takes over the other changes.
    """
    found = _find(request)
    client = found["client"]
    if _is_nobody(client):
        return _client_page(request, error.status, found, erased_meanwhile=True)
    now = _values(client)
    changed = [name for name in FIELDS if _mark(now[name]) != request.form_value(f"was_{name}")]
    if all(now[name] == typed[name] for name in FIELDS):  # The form was sent twice.
        return redirect(f"{_path(request)}?done=client_saved")
    conflicts, taken_over = [], []
    for name in changed:
        label = request.translate(f"client_{name}")
        if _mark(typed[name]) == request.form_value(f"was_{name}"):
            typed[name] = now[name]
            taken_over.append((label, now[name]))
        else:
            conflicts.append((label, now[name], typed[name]))
    return _client_page(
        request, error.status, found, typed=typed, conflicts=conflicts, taken_over=taken_over
    )


def _client_page(
    request: ConsoleRequest,
    status: int,
    found: Client,
    problem: Problem | None = None,
    typed: dict[str, str] | None = None,
    **values: Any,  # noqa: ANN401  values of the template
) -> HttpResponse:
    client = found["client"]
    now = _values(client)
    version, marks = client["version"], {name: _mark(text) for name, text in now.items()}
    if problem and typed:  # The form stays one of the version that it was made for.
        version = _version(request) or version
        marks = {name: request.form_value(f"was_{name}") for name in FIELDS}
    return request.page(
        "client",
        status,
        problem=problem,
        client=client,
        version=version,
        nobody=_is_nobody(client),
        values=typed or now,
        marks=marks,
        leads=found["leads"],
        bookings=found["bookings"],
        orders=_orders(request, found["leads"]),
        path=_path(request),
        link=record_links.links(request),
        **{"conflicts": (), "taken_over": (), "other": None, "erased_meanwhile": False} | values,
    )


def _orders(request: ConsoleRequest, leads: list[Client]) -> list[Client]:
    """Return the client's latest orders of products. Bookings are listed separately."""
    if not leads:
        return []
    with suppress(NotFoundError):  # The lead was removed since it was listed.
        listed = request.call("lead_orders", id=leads[0]["id"])["orders"]
        return [order for order in listed if order["kind"] == "order"]
    return []


def _duplicate(request: ConsoleRequest, other: Client, typed: dict[str, str]) -> Problem:
    """Return the message about another client with the same e-mail address or phone."""
    field = "email" if emails.is_same(other["email"] or "", typed["email"]) else "phone"
    text = request.translate("duplicate_client")
    return Problem(request.translate("wrong_fields"), {field: text})


def _find(request: ConsoleRequest) -> Client:
    return request.call("get_client", id=request.http.path["client"])


def _is_nobody(client: Client) -> bool:
    """Whether a client has neither a name nor contacts, as after an erasure."""
    return not any(client[name] for name in CONTACTS)


def _problem(request: ConsoleRequest, error: AppError, typed: dict[str, str]) -> Problem:
    """Return the messages of a failure. An error of one tag is shown beside all tags."""
    problem = request.problem(error)
    if not problem.fields:
        return problem
    if not any(typed[name] for name in CONTACTS):
        return problem._replace(fields={"name": request.translate("client_needs_contact")})
    wrong = {re.split(r"\W", field)[0]: text for field, text in problem.fields.items()}
    if "tags" in wrong:
        wrong["tags"] = request.translate("wrong_tags")
    return problem._replace(fields=wrong)


def _version(request: ConsoleRequest) -> int | None:
    """Return the version that the form was made for, if it is a number."""
    version = request.form_value("ifVersion")
    return int(version) if re.fullmatch("[1-9][0-9]{0,14}", version, re.ASCII) else None


def _typed(request: ConsoleRequest) -> dict[str, str]:
    """Return the values of the form. Browsers send line breaks as CR and LF."""
    texts = {name: request.form_value(name).replace("\r\n", "\n") for name in FIELDS}
    return {name: text if name == "notes" else text.strip() for name, text in texts.items()}


def _values(client: Client) -> dict[str, str]:
    """Return the stored values as the form shows them."""
    values = {name: client[name] or "" for name in FIELDS if name != "tags"}
    return {**values, "tags": ", ".join(client["tags"])}


def _tags(text: str) -> list[str]:
    return [tag for each in text.split(",") if (tag := each.strip())]


def _mark(text: str) -> str:
    """Return a short mark of a value, by which a change of it is recognized later."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/clients/{request.http.path['client']}"

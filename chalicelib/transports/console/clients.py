"""Pages of clients."""

import json
from contextlib import suppress
from datetime import date
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import (
    AppError,
    ConflictError,
    NotFoundError,
    PayloadTooLargeError,
    ValidationError,
)
from chalicelib.lib import emails
from chalicelib.lib.markup import csv_text
from chalicelib.transports.console import record_links
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, tags
from chalicelib.transports.console.leads import DELIMITERS, csv_file
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

PER_PAGE = 25
# Maximum page number of the list, which costs about 56 read units. Search finds further clients.
MAX_PAGE = 100
SORTS = ("lastActivityDesc", "createdAtDesc", "nameAsc")
CONTACTS = ("name", "email", "phone")
DUPLICATE = "duplicate_client"
UNFINISHED = "erasure_unfinished"
MAX_ORDERS = 100  # Latest orders and bookings of a client among which the page shows the orders.
MAX_SHOWN = 50  # Maximum records that the page before an erasure lists. Its counts include all.

Client = dict[str, Any]


def _sort(request: ConsoleRequest) -> dict[str, str]:
    sort = request.query_value("sort")
    return {"sort": sort if sort in SORTS else SORTS[0]}


def _list_values(request: ConsoleRequest, response: dict[str, Any]) -> dict[str, Any]:
    number = min(request.page_number, LIST.last)
    is_last = number == LIST.last and response["total"] > number * LIST.size
    return {**_sort(request), "sorts": SORTS, "is_last": is_last}


LIST = ListPage(
    *("clients", "list_clients", PER_PAGE, {"q": "search", "tag": "tag"}, _list_values, _sort),
    last=MAX_PAGE,
)
index = LIST.index


class ErasedMeanwhileError(ConflictError):
    """The client was erased while the form was open."""


def _problem(request: ConsoleRequest, error: AppError) -> Problem | None:
    wrong = {error_field.field for error_field in error.errors}
    if "contacts" in wrong or any(each.key == "no_contact" for each in error.errors):
        messages = {"name": request.translate("client_needs_contact")}
    elif error.code == DUPLICATE:
        other = request.call("get_client", id=error.details["clientId"])["client"]
        is_mail = emails.is_same(other["email"] or "", request.form_value("email").strip())
        messages = {"email" if is_mail else "phone": request.translate("duplicate_client")}
    else:
        return None
    return Problem(request.translate("wrong_fields"), messages)


FORM = Form(
    Field("name", "client_name"),
    Field("phone", "client_phone"),
    Field("email", "client_email"),
    Field("birthday", "client_birthday", drawn_as="date"),
    tags("tags", label="client_tags"),
    Field("notes", "client_notes"),
    creates="create_client",
    changes="update_client",
    problems=_problem,
)


def save(request: ConsoleRequest) -> HttpResponse:
    """Change a client. A client that was erased during the edit is not created again."""
    try:
        return _save(request)
    except ErasedMeanwhileError as error:
        return _client_page(request, _find(request), State(error.status), erased_meanwhile=True)


def _find_somebody(request: ConsoleRequest) -> Client:
    if _is_nobody(client := _find(request)):
        raise ErasedMeanwhileError("The person was erased.", key="client_erased")
    return client


def _arguments(client: Record, changes: dict[str, Any]) -> dict[str, Any]:
    if _is_nobody({**client, **changes}):
        raise ValidationError.of(
            "contacts", message="expected a name, an e-mail address or a phone"
        )
    return changes


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a client with their leads, bookings and orders."""
    return _client_page(request, _find(request))


def export(request: ConsoleRequest) -> HttpResponse:
    """Return the clients that the filters select as a CSV file."""
    filters = {name: request.form_value(name).strip() for name in LIST.filters}
    try:
        table = request.call("export_clients", **LIST.arguments(filters))
    except AppError as error:
        key = "clients_too_large" if isinstance(error, PayloadTooLargeError) else ""
        problem = Problem(request.translate(key)) if key else request.problem(error)
        return LIST.page(request, filters, error.status, problem)
    head = [request.translate("client_csv_" + name) for name in table["columns"]]
    text = csv_text.write([head, *table["rows"]], DELIMITERS[request.language])
    return csv_file(text, name=f"{_file_name(request, 'clients')}.csv")


def show_advertising(request: ConsoleRequest) -> HttpResponse:
    """Show to which advertising a client has agreed, with a button that withdraws it."""
    client = _find(request)
    consents = request.call("get_advertising_consents", id=client["id"])
    return request.page("client_advertising", client=client, consents=consents, path=_path(request))


def withdraw_advertising(request: ConsoleRequest) -> HttpResponse:
    """Withdraw a client's consent to advertising. A second click changes nothing."""
    request.call("withdraw_advertising_consent", id=request.http.path["client"])
    return redirect(f"{_path(request)}/advertising?done=advertising_withdrawn")


def show_file(request: ConsoleRequest) -> HttpResponse:
    """Show what the workspace knows of a client, as far as one page has room."""
    return request.page("client_file", client=_find(request), path=_path(request))


def download_file(request: ConsoleRequest) -> HttpResponse:
    """Return everything that the workspace knows of a client as a JSON file."""
    try:
        known = request.call("export_client", id=request.http.path["client"])
    except PayloadTooLargeError as error:
        problem = Problem(request.translate("client_file_too_large"))
        values = {"client": _find(request), "path": _path(request)}
        return request.page("client_file", error.status, problem=problem, **values)
    known.pop("status", None)
    body = json.dumps(known, ensure_ascii=False, indent=2).encode()
    name = f"{_file_name(request, 'client')}.json"
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return HttpResponse(200, body, headers)


def _file_name(request: ConsoleRequest, what: str) -> str:
    workspace = request.current_membership.workspace
    return f"{workspace.slug}-{what}-{clock.local_day(clock.now(), workspace.timezone)}"


def confirm_erase(request: ConsoleRequest) -> HttpResponse:
    """Show what an erasure would remove, and ask for confirmation."""
    client = _find(request)
    if _is_nobody(client):
        return request.page("client_erased", client=client, gone=None, path=_path(request))
    plan = request.call("erase_client", id=client["id"], dryRun=True)
    return request.page(
        "client_erase",
        client=client,
        plan=plan,
        shown=plan["found"][:MAX_SHOWN],
        path=_path(request),
        link=record_links.links(request),
    )


def erase(request: ConsoleRequest) -> HttpResponse:
    """Erase a client and show what was removed. A second click removes nothing more."""
    client = _find(request)
    try:
        gone = request.call("erase_client", id=client["id"])
    except AppError as error:
        if error.code != UNFINISHED:
            raise
        return redirect(f"{_path(request)}/erase?done={UNFINISHED}")
    return request.page("client_erased", client=client, gone=gone, path=_path(request))


def unlink_chat(request: ConsoleRequest) -> HttpResponse:
    """End a link of the client to a chat in a messenger. A second click changes nothing."""
    messenger, booking_id = request.form_value("messenger"), request.form_value("booking")
    request.call(
        "unlink_client_chat",
        clientId=request.http.path["client"],
        messenger=messenger,
        bookingId=booking_id or None,
    )
    return redirect(f"{_path(request)}?done=client_chat_unlinked")


def _new_client_page(request: ConsoleRequest, _: None, state: State = STORED) -> HttpResponse:
    return request.page(
        "client_new",
        other=_other(request, state),
        **FORM.page_values(request, None, state),
    )


def _created(request: ConsoleRequest, answer: Client) -> HttpResponse:
    path = f"{request.current_membership.path}/clients/{answer['client']['id']}"
    return redirect(f"{path}?done=client_created")


def _other(request: ConsoleRequest, state: State) -> Client | None:
    """Return the client that has a contact of the form already, or None."""
    other = state.details.get("clientId")
    client: Client | None = request.call("get_client", id=other)["client"] if other else None
    return client


def _client_page(
    request: ConsoleRequest,
    client: Client,
    state: State = STORED,
    *,
    erased_meanwhile: bool = False,
) -> HttpResponse:
    return request.page(
        "client",
        client=client,
        birthday=_day_text(request, client["birthday"]),
        nobody=_is_nobody(client),
        erased_meanwhile=erased_meanwhile,
        other=_other(request, state),
        leads=client["leads"],
        bookings=client["bookings"],
        chats=request.call("list_client_chats", clientId=client["id"])["chats"],
        **_orders(request, client["leads"]),
        path=_path(request),
        link=record_links.links(request),
        **FORM.page_values(request, client, state),
    )


def _orders(request: ConsoleRequest, leads: list[Client]) -> Client:
    """Return the client's latest orders of products.

    Bookings are listed separately.
    """
    orders: list[Client] = []
    has_more = False
    with suppress(NotFoundError):  # The lead was removed since it was listed.
        if leads:
            response = request.call("lead_orders", id=leads[0]["id"], size=MAX_ORDERS)
            orders = [order for order in response["orders"] if order["kind"] == "order"]
            has_more = response["total"] > MAX_ORDERS
    return {"orders": orders, "has_more_orders": has_more}


def _find(request: ConsoleRequest) -> Client:
    response = request.call("get_client", id=request.http.path["client"])
    return {**response, **response["client"]}


def _day_text(request: ConsoleRequest, day: str | None) -> str:
    return texts.day(request.language, date.fromisoformat(day)) if day else ""


def _is_nobody(client: Client) -> bool:
    return not any(client[name] for name in CONTACTS)


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/clients/{request.http.path['client']}"


new_client_page, create = FORM.creation(_new_client_page, _created)
_, _save = FORM.editing(_find_somebody, _client_page, "client_saved", arguments=_arguments)

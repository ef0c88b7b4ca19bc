"""The console page that changes the public booking page."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.transports.console import record_states
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import KEPT, Field, Record, Switch, Typed
from chalicelib.transports.console.services.services import add_states
from chalicelib.transports.http import HttpResponse

_PAGE = re.compile("[1-9][0-9]{0,4}", re.ASCII)


@dataclass(frozen=True)
class Offer(Switch):
    """The tick of a service. A service that the page does not list has an unknown state."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        return {self.name: self.name in request.form.get("offered", [])}

    def stored_value(self, record: Record) -> Any:  # noqa: ANN401  as Field
        return record.get(self.name, KEPT)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the settings of the booking page."""
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the settings. Services that the form did not list do not change."""
    how = Save(_find, _page, "booking_page_saved", "", _arguments)
    return _form(request.form.get("listed", [])).save(request, how)


def _arguments(_: Record, changes: dict[str, Any]) -> dict[str, Any]:
    fixed = {name: changes.pop(name) for name in ("isOn", "isIndexed", "phone") if name in changes}
    lists = {
        "offer": [service_id for service_id, is_on in changes.items() if is_on],
        "withdraw": [service_id for service_id, is_on in changes.items() if not is_on],
    }
    return fixed | {name: ids for name, ids in lists.items() if ids}


def _form(services: Iterable[str]) -> Form:
    return Form(
        Switch("isOn", "booking_page_switch"),
        Switch("isIndexed", "booking_page_indexed"),
        Field("phone", "booking_page_phone", wrong="wrong_booking_phone"),
        *(Offer(service_id, "booking_page_services") for service_id in services),
        changes="set_booking_page",
        problems=_problem,
    )


def _problem(request: ConsoleRequest, error: AppError) -> Problem | None:
    if isinstance(error, NotFoundError):
        return request.problem(error)
    return None


def _find(request: ConsoleRequest) -> Record:
    number = _PAGE.fullmatch(request.query_value("page"))
    page = int(number[0]) if number else 1
    settings_page = request.call("get_booking_page", q=_query(request) or None, page=page)
    return {
        **settings_page.pop("bookingPage"),
        **settings_page,
        **{service["id"]: service["isOffered"] for service in settings_page["services"]},
    }


def _query(request: ConsoleRequest) -> str:
    return request.query_value("q").strip()[:200]


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/booking-page"


def _page(request: ConsoleRequest, booking_page: Record, state: State = STORED) -> HttpResponse:
    query, form = _query(request), _form(service["id"] for service in booking_page["services"])
    page = booking_page["pagination"]["page"]
    total, size = booking_page["pagination"]["total"], booking_page["pagination"]["size"]
    values = form.page_values(request, booking_page, state)
    is_new = state is STORED and not booking_page["isOn"] and not booking_page["offered"]
    if is_new and request.current_membership.may("set_booking_page"):
        # Most owners offer all services, so only the others have to be unticked.
        values["typed"] |= {service["id"]: True for service in booking_page["services"]}
    return request.page(
        "booking_page",
        shown=booking_page,
        page_state=record_states.compute_booking_page_state(
            booking_page, add_states(request, booking_page["services"])
        ),
        query=query,
        searchable=total > SEARCH_THRESHOLD,
        number_of_page=page,
        size=size,
        url=booking_page["url"],
        path=_path(request),
        action=_path(request) + (request.query_with() if page > 1 or query else ""),
        embed=_embed(booking_page["slug"]),
        **values,
    )


def _embed(slug: str) -> str:
    return f'<script src="{settings().public_url}/book.js" data-workspace="{slug}" async></script>'

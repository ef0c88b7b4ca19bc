"""Page of the public booking page: its switches, the services that it offers, and its links."""

import re
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.core.settings import settings
from chalicelib.domains.bookings.flows import booking_pages
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

_PAGE = re.compile("[1-9][0-9]{0,4}", re.ASCII)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the settings of the booking page."""
    return _page(request, 200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the settings. Services that the form did not list stay as they are."""
    chosen, listed = request.form.get("offered", []), request.form.get("listed", [])
    try:
        request.call(
            "set_booking_page",
            isOn=bool(request.form_value("isOn")),
            isIndexed=bool(request.form_value("isIndexed")),
            phone=request.form_value("phone").strip() or None,
            offer=[each for each in listed if each in chosen],
            withdraw=[each for each in listed if each not in chosen],
        )
    except AppError as error:
        return _page(request, error.status, _problem(request, error))
    return redirect(f"{_path(request)}?done=booking_page_saved")


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the messages of a failure. Too many services have a text of their own."""
    if error.code == "conflict":
        return Problem(request.translate("booking_page_services_full"))
    problem = request.problem(error)
    if "phone" in problem.fields:
        own = {"phone": request.translate("wrong_booking_phone")}
        return problem._replace(fields={**problem.fields, **own})
    return problem


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/booking-page"


def _page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    query = request.query_value("q").strip()[:200]
    number = _PAGE.fullmatch(request.query_value("page"))
    page = int(number[0]) if number else 1
    shown = request.call("get_booking_page", q=query or None, page=page)
    total, size = shown["pagination"]["total"], shown["pagination"]["size"]
    url = f"{settings().public_url}{booking_pages.PATH}/{shown['slug']}"
    return request.page(
        "booking_page",
        status,
        problem=problem,
        shown=shown,
        typed=_typed(request, shown),
        query=query,
        searchable=total > SEARCH_THRESHOLD,
        number_of_page=page,
        last=-(-total // size),
        url=url,
        path=_path(request),
        embed=_embed(shown["slug"]),
    )


def _embed(slug: str) -> str:
    return f'<script src="{settings().public_url}/book.js" data-workspace="{slug}" async></script>'


def _typed(request: ConsoleRequest, shown: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the form: those of a refused one, or those that are stored."""
    if "listed" in request.form or "phone" in request.form:
        return {
            "isOn": bool(request.form_value("isOn")),
            "isIndexed": bool(request.form_value("isIndexed")),
            "phone": request.form_value("phone"),
            "offered": set(request.form.get("offered", [])),
        }
    offered = {each["id"] for each in shown["services"] if each["isOffered"]}
    return {name: shown[name] for name in ("isOn", "isIndexed", "phone")} | {"offered": offered}

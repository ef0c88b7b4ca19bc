"""The page behind the link of one who waits for a free time.

It shows what is offered, and ends the waiting. Programs that check links send GET, which therefore
changes nothing.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.booking_page.flows.brand import brand_of
from chalicelib.domains.waiting.flows import waiting_links
from chalicelib.transports import form_data
from chalicelib.transports.http import (
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
)
from chalicelib.transports.web import brand_pages, render, texts
from chalicelib.transports.web.booking_facts import zone_text
from chalicelib.transports.web.texts import Language
from chalicelib.transports.web.visitor_requests import call


def show(request: HttpRequest) -> HttpResponse:
    """Show what is offered to one who waits, with a button that ends the waiting."""
    return render.private(_show)(request)


def leave(request: HttpRequest) -> HttpResponse:
    """End the waiting. Repeating it has no effect."""
    return render.private(_leave)(request)


def _show(request: HttpRequest) -> HttpResponse:
    token, language = request.path["token"], render.preferred_language(request)
    workspace_id = waiting_links.parse(token).workspace_id
    try:
        place = call(request, "open_own_waiting", {"token": token})
    except NotFoundError:
        return _page(request, workspace_id, "wait_ended", "wait_ended_about")
    is_free, is_offered = place["isFree"], place["offeredUntil"] is not None
    heading = "wait_free" if is_free else "wait_taken" if is_offered else "wait_done"
    about = "wait_free_about" if is_free else "wait_taken_about" if is_offered else "wait_about"
    return _page(
        request,
        workspace_id,
        heading,
        about,
        is_free=is_free,
        facts=_facts(language, place),
        link=_times_link(workspace_id, place) if is_free else None,
        may_leave=True,
    )


def _leave(request: HttpRequest) -> HttpResponse:
    check_body(request, *form_data.TYPES, limit=MAX_PUBLIC_BODY_BYTES)
    token = request.path["token"]
    # A forged token ends here, before the call is counted or read from the database.
    workspace_id = waiting_links.parse(token).workspace_id
    call(request, "leave_waiting_list", {"token": token})
    return _page(request, workspace_id, "wait_left", "wait_ended_about")


def _page(  # noqa: PLR0913  the parts of the page
    request: HttpRequest,
    workspace_id: str,
    heading: str,
    about: str,
    *,
    is_free: bool = False,
    facts: list[tuple[str, str, str]] | None = None,
    link: str | None = None,
    may_leave: bool = False,
) -> HttpResponse:
    return brand_pages.show(
        request,
        workspace_id,
        "waiting",
        heading=heading,
        about=about,
        is_free=is_free,
        facts=facts or [],
        link=link,
        may_leave=may_leave,
    )


def _facts(language: Language, place: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    day, zone = date.fromisoformat(place["day"]), place["timezone"]
    facts = [
        ("scroll-text", "book_what", place["serviceName"]),
        ("calendar-check", "wait_day", texts.day(language, day)),
    ]
    if place["offeredUntil"]:
        until = datetime.fromisoformat(place["offeredUntil"])
        moment = texts.moment(language, until, zone)
        facts += [
            ("clock", "wait_until", moment),
            ("globe", "book_zone", zone_text(zone, until)),
        ]
    return [(mark, texts.translate(language, key), text) for mark, key, text in facts]


def _times_link(workspace_id: str, place: Mapping[str, Any]) -> str | None:
    # The page of the day, on which anybody may book. None if the booking page is off.
    home = brand_of(workspace_id).home
    query = {"staff": place["resourceId"] or "any", "day": place["day"]}
    return f"{home}/{place['serviceId']}?{urlencode(query)}" if home else None

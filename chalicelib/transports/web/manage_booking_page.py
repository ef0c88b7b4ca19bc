"""The page behind a booking's link, on which the client moves or cancels the booking.

Programs that check links send GET, which therefore changes nothing. The page needs no script and no
session, because its address is the secret.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from secrets import token_urlsafe
from typing import Any, Self, cast
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ConflictError, UpstreamFailedError, ValidationError
from chalicelib.core.messengers import NAMES, Messenger
from chalicelib.core.wire.times import find_moment
from chalicelib.domains.booking_page.flows.book_for_visitor import ChangedError
from chalicelib.domains.booking_page.operations.cancel_and_move import BookingStartedError
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.rules import repeats
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.lib import localized
from chalicelib.transports import form_data
from chalicelib.transports.http import (
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
)
from chalicelib.transports.web import brand_pages, free_times, render, texts
from chalicelib.transports.web.booking_facts import (
    booking_facts,
    payment_facts,
    price_text,
    span_text,
    zone_text,
)
from chalicelib.transports.web.visitor_requests import call, find_number, query_value

ICONS = {"cancelled": "ban", "no_show": "ban", "pending_payment": "clock"}
ANYONE = "any"  # Value of ``staff`` if others of the staff may take the booking.


def show(request: HttpRequest) -> HttpResponse:
    """Show a booking without contacts, or a step to move or cancel it."""
    return render.private(_show)(request)


def change(request: HttpRequest) -> HttpResponse:
    """Move or cancel a booking that has not begun, and show it. Repeating it has no effect."""
    return render.private(_change)(request)


@dataclass(frozen=True)
class _Visit:
    request: HttpRequest
    managed: Mapping[str, Any]

    @classmethod
    def from_request(cls, request: HttpRequest) -> Self:
        # A malformed link costs no request to the database.
        booking_links.parse(request.path["token"])
        return cls(request, call(request, "get_managed_booking", {"token": request.path["token"]}))

    @property
    def path(self) -> str:
        return booking_links.PAGE.format(token=self.request.path["token"])

    @property
    def zone(self) -> str:
        zone: str = self.managed["booking"]["timezone"]
        return zone

    @property
    def workspace_id(self) -> str:
        return booking_links.parse(self.request.path["token"]).workspace_id

    @property
    def currency(self) -> str:
        return currency_of(self.workspace_id)

    def show(self, template: str, status: int = 200, **values: Any) -> HttpResponse:  # noqa: ANN401  values of any type
        language = render.preferred_language(self.request)
        booking = self.managed["booking"]
        return brand_pages.show(
            self.request,
            self.workspace_id,
            template,
            status,
            script="booking",
            visit=self,
            managed=self.managed,
            booking=booking,
            facts=booking_facts(language, booking, self.currency) + self._payment_facts(language),
            length=partial(localized.length, language),
            price=partial(price_text, language, currency=self.currency),
            mark=ICONS.get(booking["status"], "calendar-check"),
            **values,
        )

    def _payment_facts(self, language: texts.Language) -> list[tuple[str, str, str]]:
        managed = self.managed
        if managed["booking"]["status"] == "cancelled":
            return []
        return payment_facts(
            language,
            managed["booking"],
            self.currency,
            due=managed["amountDue"],
            paid=managed["paid"],
            left=managed["amountLeft"],
            refund_until=managed["refundUntil"],
            held_until=managed["holdExpiresAt"],
        )

    def overview(self, status: int = 200, problem: str = "", *, notice: str = "") -> HttpResponse:
        # ``problem`` and ``notice`` are catalogue keys.
        return self.show(
            "booking", status, problem=problem, done=notice, again=self._repeat_links()
        )

    def _repeat_links(self) -> list[tuple[int, str]]:
        url, booking = self.managed["repeatUrl"], self.managed["booking"]
        if url is None or booking["status"] == "pending_payment":
            return []
        start = datetime.fromisoformat(booking["startAt"])
        return [
            (repeat.weeks, f"{url}&{urlencode({repeats.PARAMETER: clock.iso(repeat.start)})}")
            for repeat in repeats.offered(start, self.zone, now=clock.now())
        ]


def _show(request: HttpRequest) -> HttpResponse:
    visit = _Visit.from_request(request)
    match query_value(request, "step"):
        case "cancel" if visit.managed["canCancel"]:
            return visit.show("booking_cancel")
        case "move" if visit.managed["canMove"]:
            return _confirm(visit) or _times(visit)
    return visit.overview()


def _times(visit: _Visit, status: int = 200, problem: str = "") -> HttpResponse:
    request, managed = visit.request, visit.managed
    language = render.preferred_language(request)
    anyone = query_value(request, "staff") == ANYONE and managed["hasOtherResources"]
    arguments = {"token": request.path["token"], "anyResource": anyone}
    period = {name: query_value(request, name) or None for name in ("month", "day")}
    try:
        response = call(request, "find_move_times", arguments | period)
    except ValidationError:  # The month or day is invalid: show the first free one.
        response = call(request, "find_move_times", arguments)

    def link(ids: Sequence[str] = (), **query: str) -> str:
        resource_id = managed["resourceId"]
        resource = {"resource": resource_id if resource_id in ids else ids[0]} if ids else {}
        return _link(visit, anyone=anyone, **query, **resource)

    return visit.show(
        "booking_move",
        status,
        problem=problem,
        anyone=anyone,
        view=free_times.month_view(language, response, link),
        switch=_link(visit, anyone=not anyone),
    )


def _link(visit: _Visit, *, anyone: bool, **query: str) -> str:
    staff = {"staff": ANYONE} if anyone else {}
    return f"{visit.path}?{urlencode({'step': 'move', **staff, **query})}"


def _confirm(visit: _Visit) -> HttpResponse | None:
    start = find_moment(query_value(visit.request, "at"))
    if start is None:
        return None
    zone = ZoneInfo(visit.zone)
    resource = query_value(visit.request, "resource")
    lengths = {each["resourceId"]: each["durationMin"] for each in visit.managed["otherLengths"]}
    end = start + timedelta(minutes=lengths.get(resource, visit.managed["durationMin"]))
    language = render.preferred_language(visit.request)
    return visit.show(
        "booking_confirm",
        at=query_value(visit.request, "at"),
        resource=resource,
        when=span_text(language, start.astimezone(zone), end=end.astimezone(zone)),
        zone=zone_text(visit.zone, start),
        once=token_urlsafe(18),
        back_link=_link(visit, anyone=query_value(visit.request, "staff") == ANYONE),
    )


def _change(request: HttpRequest) -> HttpResponse:
    check_body(request, *form_data.TYPES, limit=MAX_PUBLIC_BODY_BYTES)
    visit = _Visit.from_request(request)
    form_values = form_data.last_values(request)
    match form_values.get("action"):
        case "cancel":
            return _cancel(visit, form_values)
        case "move":
            return _move(visit, form_values)
        case "messenger" if form_values.get("messenger") in visit.managed["messengers"]:
            return _link_messenger(visit, cast("Messenger", form_values["messenger"]))
    return visit.overview()


def _link_messenger(visit: _Visit, messenger: Messenger) -> HttpResponse:
    # A form may not redirect to another site, so the page shows the link to the messenger.
    arguments = {"token": visit.request.path["token"], "messenger": messenger}
    name = NAMES[messenger]
    try:
        chat = call(visit.request, "link_client_chat", arguments)
    except (UpstreamFailedError, ConflictError) as error:
        return visit.show("booking_messenger", error.status, messenger=name, chat=None)
    return visit.show("booking_messenger", messenger=name, chat=chat)


def _cancel(visit: _Visit, form_values: Mapping[str, str]) -> HttpResponse:
    refund = find_number(form_values.get("refund", ""))
    arguments = {"token": visit.request.path["token"], "refund": refund}
    try:
        call(visit.request, "cancel_public_booking", arguments)
    except BookingStartedError:
        pass  # The page then has no button.
    except ChangedError as error:
        # A refund that the page has shown is no longer given, so the question is shown again.
        return _Visit.from_request(visit.request).show("booking_cancel", error.status)
    return _Visit.from_request(visit.request).overview()


def _move(visit: _Visit, form_values: Mapping[str, str]) -> HttpResponse:
    arguments = {
        "token": visit.request.path["token"],
        "startAt": form_values.get("at", ""),
        "resourceId": form_values.get("resource") or None,
    }
    try:
        call(visit.request, "move_public_booking", arguments, form_values.get("once", "")[:100])
    except (SlotUnavailableError, ValidationError) as error:
        return _show_refusal(visit, error, form_values)
    except ConflictError as error:
        return _Visit.from_request(visit.request).overview(
            error.status, problem=f"error_{error.code}"
        )
    return _Visit.from_request(visit.request).overview(notice="booked_moved")


def _show_refusal(visit: _Visit, error: AppError, form_values: Mapping[str, str]) -> HttpResponse:
    if not visit.managed["canMove"]:
        return visit.overview(error.status)
    slots = error.details.get("alternatives", ())
    anyone = (
        bool(form_values.get("resource")) and form_values["resource"] != visit.managed["resourceId"]
    )
    language = render.preferred_language(visit.request)

    def link(ids: Sequence[str] = (), **query: str) -> str:
        return _link(visit, anyone=anyone, **query, **({"resource": ids[0]} if ids else {}))

    if not slots:
        return _times(visit, error.status, problem="book_taken")
    return visit.show(
        "booking_taken",
        error.status,
        choices=free_times.choices(language, list(slots), link),
        back_link=_link(visit, anyone=anyone),
    )

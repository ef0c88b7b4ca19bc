"""The public booking page of a workspace, in steps from the service to the contacts.

Each step is a GET with its choices in the query, and only the last one posts. No cookie is read or
set, so the form needs no token against forged requests: another site could only book what anyone
can. Any site may show the page in a frame, also a sandboxed one, whose forms have no origin.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from http import HTTPStatus
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.errors import (
    AppError,
    ValidationError,
)
from chalicelib.core.ids import new_id
from chalicelib.core.settings import settings
from chalicelib.core.wire.times import find_moment
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.flows.book_for_visitor import ByPhoneOnlyError, ChangedError
from chalicelib.domains.booking_page.flows.brand import home
from chalicelib.domains.booking_page.flows.visitor_shares import BookingLimitError
from chalicelib.domains.booking_page.rules import advertising_texts, refusals
from chalicelib.domains.booking_page.rules.advertising_texts import MAX_VERSION, AdvertisingText
from chalicelib.domains.booking_page.rules.prepared_links import MAX_TOKEN, PARAMETER
from chalicelib.domains.booking_page.rules.refusals import Advice
from chalicelib.domains.booking_page.rules.repeat_links import ANYONE, SEPARATOR
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.rules import booking_tokens, repeats
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store.bookings import MAX_IN_VISIT
from chalicelib.domains.leads.flows import form_checks, form_html
from chalicelib.domains.waiting.flows.joining import NotAwaitedError
from chalicelib.lib import localized, zoned_times
from chalicelib.lib.markup.brands import Brand
from chalicelib.transports import form_data
from chalicelib.transports.http import MAX_PUBLIC_BODY_BYTES, HttpRequest, HttpResponse, check_body
from chalicelib.transports.web import discovery, free_times, render, texts
from chalicelib.transports.web.booking_facts import (
    booking_facts,
    payment_facts,
    price_text,
    span_text,
    terms_texts,
    zone_text,
)
from chalicelib.transports.web.texts import Language
from chalicelib.transports.web.visitor_requests import call, find_number, query_value

WAIT = "wait"  # The step, and the field of its form, by which a visitor waits for a free time.
# Fields of the form that the visitor fills in, each with the catalogue key of its error.
CONTACTS = {
    "name": "book_wrong_name",
    "phone": "book_wrong_phone",
    "email": "book_wrong_email",
    "notes": "book_wrong_notes",
}
# What the form shows of the service, and sends back with the booking.
TERMS = ("price", "durationMin", "amountDue", "refundUntilMin")
MAX_KEY = 100
ADVERTISING = "advertising"  # The box by which the client agrees: the version of its text.
# Catalogue keys of failures after which the visitor can send the form again, by error code.
REFUSALS = {
    "too_fast": "book_too_fast",
    "rate_limited": "book_full",
    "idempotency_mismatch": "book_sent_before",
}
# As above, of the form by which a visitor waits.
WAIT_ERRORS = {
    "day": "wait_wrong_day",
    "name": "book_wrong_name",
    "email": "book_wrong_email",
    "phone": "book_wrong_phone",
}
WAIT_REFUSALS = {
    "too_fast": "book_too_fast",
    "rate_limited": "wait_too_many",
    "idempotency_mismatch": "book_sent_before",
}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def show(request: HttpRequest) -> HttpResponse:
    """Show a step, which the query selects."""
    return render.framed_anywhere(_show)(request)


def book(request: HttpRequest) -> HttpResponse:
    """Book, and show the booking, or that a link in an e-mail books.

    If that fails, show the form again with all typed values.
    """
    return render.framed_anywhere(_book)(request)


@dataclass(frozen=True)
class _Visit:
    request: HttpRequest
    page: Mapping[str, Any]

    @classmethod
    def from_request(cls, request: HttpRequest) -> "_Visit":
        # Raises NotFoundError if the page is off, unknown, or does not offer the service.
        arguments = {
            "workspace": request.path["workspace"],
            "serviceId": request.path.get("service"),
            "andThen": _and_then(request),
            "prepared": _prepared(request),
        }
        try:
            return cls(request, call(request, "open_booking_page", arguments))
        except ValidationError:  # No slug or id looks like this.
            raise open_page.not_found() from None

    @cached_property
    def language(self) -> Language:
        return render.preferred_language(self.request)

    @property
    def home(self) -> str:
        return home(self.request.path["workspace"])

    @cached_property
    def service(self) -> Mapping[str, Any]:
        if len(self.parts) == 1:
            return self.parts[0]
        return _as_one(self.parts)

    @cached_property
    def parts(self) -> list[Mapping[str, Any]]:
        # The chosen services in order: one, or those of a visit.
        by_id = {service["id"]: service for service in self.page["services"]}
        ids = [self.request.path["service"], *_and_then(self.request)]
        return [by_id[service_id] for service_id in ids]

    @property
    def may_add(self) -> bool:
        is_prepared = bool(query_value(self.request, PARAMETER))
        more = self.page["hasOtherServices"] and not is_prepared
        is_alone = any(part["fixedStarts"] for part in self.parts)
        return more and not is_alone and len(self.parts) < MAX_IN_VISIT

    @property
    def may_wait(self) -> bool:
        """Whether a visitor may wait for a free time. A visit of several services has no line."""
        return len(self.parts) == 1

    def with_part(self, service_id: str) -> str:
        """Return the link that adds a service to the visit."""
        return self.link(then=SEPARATOR.join([*_and_then(self.request), service_id]))

    def without_part(self, number: int) -> str:
        """Return the link that takes a service out of a visit."""
        first, *further = [each["id"] for place, each in enumerate(self.parts) if place != number]
        query = f"?{urlencode({'then': SEPARATOR.join(further)})}" if further else ""
        return f"{self.home}/{first}{query}"

    def offer(self, staff: str) -> Mapping[str, Any]:
        """Return the service with a member of the staff, or with the cheapest for anyone."""
        resource = self._resource(staff)
        if resource is None:
            return self.service
        own = {name: resource[name] for name in (*TERMS, "holdMinutes", "byPhone")}
        return {**self.service, **own, "priceFrom": None, "durationFromMin": None}

    def cheapest(self, ids: Sequence[str]) -> str:
        """Return who of the staff offers the service for least, of several the quickest."""
        offers = {staff: self.offer(staff) for staff in ids}
        return min(ids, key=lambda staff: (offers[staff]["price"], offers[staff]["durationMin"]))

    @cached_property
    def depends_on_staff(self) -> bool:
        """Whether the price or the length depends on who of the staff is chosen."""
        return any(self.service[name] is not None for name in ("priceFrom", "durationFromMin"))

    @property
    def path(self) -> str:
        return f"{self.home}/{self.service['id']}"

    @property
    def canonical(self) -> str:
        return settings().public_url + (self.path if "service" in self.request.path else self.home)

    @property
    def tools_path(self) -> str:
        return f"{settings().base_path}{self.home}/mcp"

    @property
    def json_ld(self) -> str:
        return discovery.json_ld(
            self.page, self.canonical, service_url=settings().public_url + self.home
        )

    @property
    def advertising(self) -> AdvertisingText | None:
        """The text beside the box by which the client agrees to advertising, if it is shown."""
        if not self.service["asksForAdvertising"]:
            return None
        return advertising_texts.text(self.language, self.page["name"])

    def staff(self, staff_id: str) -> str | None:
        # An id, ``any``, or None if one must be chosen first.
        ids = {resource["id"] for resource in self.page["resources"]}
        # With only one member of the staff, there is nothing to choose.
        if staff_id in ids or (staff_id == ANYONE and len(ids) > 1):
            return staff_id
        return None if len(ids) > 1 else next(iter(ids), ANYONE)

    def staff_name(self, staff: str) -> str:
        if (resource := self._resource(staff)) is not None:
            return str(resource["name"])
        return texts.translate(self.language, "book_anyone") if self.page["resources"] else ""

    def _resource(self, staff: str) -> Mapping[str, Any] | None:
        return next(
            (resource for resource in self.page["resources"] if resource["id"] == staff), None
        )

    def zone(self, staff: str) -> str:
        resource = self._resource(staff) or {}
        zones = [bookable["timezone"] for bookable in self.page["resources"]]
        return zoned_times.resolve_timezone(
            None, resource=resource.get("timezone"), bound=zones, workspace=self.page["timezone"]
        )

    def link(self, **query: str | None) -> str:
        query = {"then": SEPARATOR.join(_and_then(self.request)), **query}
        parameters = {name: value for name, value in query.items() if value}
        return f"{self.path}?{urlencode(parameters)}" if parameters else self.path

    @property
    def brand(self) -> Brand:
        page = self.page
        return Brand(
            name=page["name"],
            phone=page["phone"],
            logo_url=page["logoUrl"],
            accent=page["accent"],
            address=page["address"],
            country=page["country"],
            home=self.home,
            privacy_url=page["privacyUrl"],
        )

    def weekday(self, number: int) -> str:
        # 0 is Monday.
        return texts.dated(self.language, date(2024, 1, 1 + number), "ccc")

    def show(self, template: str, status: int = 200, **values: Any) -> HttpResponse:  # noqa: ANN401  values of any type
        offer = self.offer(values.get("staff", "")) if "service" in self.request.path else None
        indexed = self.page["isIndexed"] and status == HTTPStatus.OK and not self.request.query
        response = render.page(
            self.request,
            f"book/{template}.html",
            status,
            cached=False,
            script="booking",
            visit=self,
            offer=offer,
            page=self.page,
            brand=self.brand,
            indexed=indexed,
            is_test=self.page["isTest"],
            price=partial(price_text, self.language, currency=self.page["currency"]),
            length=partial(localized.length, self.language),
            terms=partial(terms_texts, self.language, self.page["currency"]),
            **values,
        )
        if indexed:
            return response
        return response.with_headers({**response.headers, "X-Robots-Tag": "noindex"})


def _show(request: HttpRequest) -> HttpResponse:
    visit = _Visit.from_request(request)
    if "service" not in request.path:
        return visit.show("services")
    return visit.show("by_phone") if visit.service["byPhone"] else _show_service(visit)


def _show_service(visit: _Visit) -> HttpResponse:
    request = visit.request
    if query_value(request, "step") == "add" and visit.may_add:
        return _offer_more(visit)
    staff = visit.staff(query_value(request, "staff"))
    if query_value(request, "step") == WAIT and visit.may_wait:
        return _wait_form(visit, 200, {"staff": staff or ANYONE, "day": _day_in_query(request)})
    if staff is None:
        return visit.show("staff", again=query_value(request, repeats.PARAMETER))
    if visit.offer(staff)["byPhone"]:
        return visit.show("by_phone", staff=staff)
    return _show_step(visit, staff)


def _show_step(visit: _Visit, staff: str) -> HttpResponse:
    # The form if a link names the start, else the times.
    request = visit.request
    repeated = find_moment(query_value(request, repeats.PARAMETER))
    if repeated is not None and repeated >= clock.now():
        return _repeat(visit, staff, repeated)
    # A link to a time that has passed leads to the calendar instead of a form that must fail.
    start = find_moment(query_value(request, "at"))
    token = query_value(request, PARAMETER)
    # The link of an assistant is for 30 minutes; then the visitor chooses a time.
    if start is not None and start >= clock.now() and (visit.page["isPrepared"] or not token):
        return _form(
            visit,
            200,
            {"staff": staff, PARAMETER: token},
            start,
            summary=_changed_since(
                visit, visit.offer(staff), {name: query_value(request, name) for name in TERMS}
            ),
        )
    return _times(visit, staff)


def _repeat(visit: _Visit, staff: str, start: datetime) -> HttpResponse:
    # The form with the wished time, or if it is taken, with the free times near it.
    if staff == ANYONE and visit.depends_on_staff:
        return _times(visit, staff)  # There, a time also chooses a person, and so the price.
    arguments = {
        "workspace": visit.request.path["workspace"],
        "serviceId": visit.service["id"],
        "andThen": _and_then(visit.request),
        "resourceId": None if staff == ANYONE else staff,
        "startAt": clock.iso(start),
    }
    times = call(visit.request, "find_repeat_times", arguments)
    if times["isFree"]:
        return _form(visit, 200, {"staff": staff}, start)
    if not times["slots"]:
        return _times(visit, staff)
    summary = texts.translate(visit.language, "again_taken")
    return _form(visit, 200, {"staff": staff}, None, summary=summary, slots=times["slots"])


def _offer_more(visit: _Visit) -> HttpResponse:
    # A service that is booked by phone, or on dates, cannot be a part of a visit.
    page = call(visit.request, "open_booking_page", {"workspace": visit.request.path["workspace"]})
    offered = [
        service
        for service in page["services"]
        if not (service["byPhone"] or service["fixedStarts"])
    ]
    return visit.show("add", offered=offered)


def _and_then(request: HttpRequest) -> list[str]:
    ids = query_value(request, "then").split(SEPARATOR)
    return [service_id for service_id in ids if service_id]


def _as_one(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # A visit as a service, as the operations that book it see it.
    paid = [part for part in parts if part["holdMinutes"] is not None]
    return {
        **parts[0],
        "name": ", ".join(part["name"] for part in parts),
        "description": None,
        "durationMin": sum(part["durationMin"] for part in parts),
        "price": sum(part["price"] for part in parts),
        "durationFromMin": _from(parts, "durationFromMin", "durationMin"),
        "priceFrom": _from(parts, "priceFrom", "price"),
        "byPhone": any(part["byPhone"] for part in parts),
        "amountDue": sum(part["amountDue"] for part in parts),
        "refundUntilMin": max((part["refundUntilMin"] for part in paid), default=None),
        "holdMinutes": paid[0]["holdMinutes"] if paid else None,
    }


def _from(parts: Sequence[Mapping[str, Any]], least: str, own: str) -> int | None:
    # The sum of what values begin from, or None if no value depends on the staff.
    if all(part[least] is None for part in parts):
        return None
    return sum(int(part[own] if part[least] is None else part[least]) for part in parts)


def _changed_since(visit: _Visit, offer: Mapping[str, Any], shown: Mapping[str, str]) -> str:
    # ``shown`` is what the visitor was shown, as a link says.
    if all(text in {"", _text(offer[name])} for name, text in shown.items()):
        return ""
    return texts.translate(visit.language, "book_changed")


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _prepared(request: HttpRequest) -> dict[str, str] | None:
    # A link that was changed is treated as one whose time is over.
    token, start = query_value(request, PARAMETER), find_moment(query_value(request, "at"))
    staff = query_value(request, "staff")
    if not (token and start and staff) or max(len(token), len(staff)) > MAX_TOKEN:
        return None
    return {"resourceId": staff, "startAt": clock.iso(start), "token": token}


def _times(visit: _Visit, staff: str) -> HttpResponse:
    arguments = {
        "workspace": visit.request.path["workspace"],
        "serviceId": visit.service["id"],
        "andThen": _and_then(visit.request),
        "resourceId": None if staff == ANYONE else staff,
    }
    period = {name: query_value(visit.request, name) or None for name in ("month", "day")}
    try:
        response = call(visit.request, "find_page_times", arguments | period)
    except ValidationError:  # The month or day is invalid: show the first free one.
        response = call(visit.request, "find_page_times", arguments)

    is_open = staff == ANYONE and visit.depends_on_staff

    def link(ids: Sequence[str] = (), **query: str) -> str:
        # With other prices, the next step shows one person's. Else one is chosen when booking.
        return visit.link(staff=visit.cheapest(ids) if is_open and ids else staff, **query)

    def note(ids: Sequence[str]) -> str:
        # A time at which nobody can do the whole visit has the terms of the cheapest.
        offer = visit.offer(visit.cheapest(ids)) if is_open and ids else visit.service
        return "" if offer is visit.service else _note(visit, offer)

    view = free_times.month_view(visit.language, response, link, note)
    wait_link = visit.link(step=WAIT, staff=staff, day=_day_in_query(visit.request))
    return visit.show(
        "times",
        staff=staff,
        view=view,
        zone=view.zone,
        wait_link=wait_link if visit.may_wait else None,
    )


def _day_in_query(request: HttpRequest) -> str:
    day = query_value(request, "day")
    return day if _DAY.fullmatch(day) else ""


def _wait_form(  # noqa: PLR0913  the parts of the form
    visit: _Visit,
    status: int,
    form_values: Mapping[str, str],
    *,
    summary: str = "",
    errors: Mapping[str, str] | None = None,
    is_free: bool = False,
) -> HttpResponse:
    # ``is_free`` is set if the day has free times, so that they can be booked.
    staff = _staff_of(visit, form_values)
    day = form_values.get("day", "")
    return visit.show(
        "wait",
        status,
        staff=staff,
        zone=zone_text(visit.zone(staff), clock.now()),
        typed={name: form_values.get(name, "") for name in ("day", "name", "email", "phone")},
        once=form_values.get("once") or token_urlsafe(18),
        message=summary,
        errors=errors or {},
        free_link=visit.link(staff=staff, day=day) if is_free else None,
        honeypot=form_html.HONEYPOT,
        elapsed=form_html.ELAPSED,
    )


def _wait(visit: _Visit, form_values: Mapping[str, str]) -> HttpResponse:
    staff = _staff_of(visit, form_values)
    email = form_values.get("email", "").strip()
    try:
        if form_checks.is_robot(form_values):
            made: Mapping[str, Any] = {"mail": "sent", "waitingUrl": settings().public_url}
        else:
            form_checks.check_fill_time(form_values)
            arguments = {
                "serviceId": visit.service["id"],
                "day": form_values.get("day", "").strip(),
                "resourceId": None if staff == ANYONE else staff,
                "client": {
                    "name": form_values.get("name", ""),
                    "email": email,
                    "phone": form_values.get("phone", "").strip() or None,
                },
                "language": visit.language,
            }
            once = form_values.get("once", "")[:MAX_KEY]
            made = call(visit.request, "join_waiting_list", arguments, once)
    except ValidationError as error:
        wrong = {each.field.removeprefix("client.") for each in error.errors}
        keys = {name: key for name, key in WAIT_ERRORS.items() if name in wrong}
        errors = {name: texts.translate(visit.language, key) for name, key in keys.items()}
        summary = texts.translate(visit.language, "book_wrong")
        return _wait_form(visit, error.status, form_values, summary=summary, errors=errors)
    except AppError as error:
        key = f"wait_{error.key}" if error.code == NotAwaitedError.code else None
        key = key or WAIT_REFUSALS.get(error.code)
        if key is None:
            raise
        summary, is_free = texts.translate(visit.language, key), error.key == "times_free"
        refused = _wait_form(visit, error.status, form_values, summary=summary, is_free=is_free)
        return refused.with_headers({**refused.headers, **error.headers})
    day = texts.day(visit.language, date.fromisoformat(form_values["day"].strip()))
    response = visit.show("waits", day=day, mail=made["mail"], email=email, url=made["waitingUrl"])
    headers = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    return response.with_headers({**response.headers, **headers})


def _note(visit: _Visit, offer: Mapping[str, Any]) -> str:
    # What depends on the staff, such as ``1 h, 1,500 ₽``.
    parts = []
    if visit.service["durationFromMin"]:
        parts.append(localized.length(visit.language, offer["durationMin"]))
    if visit.service["priceFrom"] is not None:
        parts.append(price_text(visit.language, offer["price"], visit.page["currency"]))
    return ", ".join(filter(None, parts))


def _form(  # noqa: PLR0913  the parts of the form
    visit: _Visit,
    status: int,
    form_values: Mapping[str, str],
    start: datetime | None,
    *,
    summary: str = "",
    errors: Mapping[str, str] | None = None,
    slots: list[dict[str, Any]] | None = None,
) -> HttpResponse:
    # ``slots`` are times to choose from, if the chosen one is taken.
    staff = _staff_of(visit, form_values)
    zone = visit.zone(staff)
    return visit.show(
        "form",
        status,
        staff=staff,
        at=start,
        when=start and _span(visit, start, zone, staff),
        zone=zone_text(zone, start or clock.now()),
        zone_name=zone,
        typed={name: form_values.get(name, "") for name in CONTACTS},
        # The key makes a second click on the button a repetition of the same booking.
        once=form_values.get("once") or token_urlsafe(18),
        prepared=form_values.get(PARAMETER, ""),
        shown={name: visit.offer(staff)[name] for name in TERMS},
        message=summary,
        advises_call=status == HTTPStatus.TOO_MANY_REQUESTS,
        errors=errors or {},
        advertising=visit.advertising,
        agrees=form_values.get(ADVERTISING, ""),
        choices=None if slots is None else free_times.choices(visit.language, slots),
        honeypot=form_html.HONEYPOT,
        elapsed=form_html.ELAPSED,
    )


def _staff_of(visit: _Visit, form_values: Mapping[str, str]) -> str:
    return visit.staff(form_values.get("staff", "")) or ANYONE


def _span(visit: _Visit, start: datetime, zone: str, staff: str) -> str:
    local = start.astimezone(ZoneInfo(zone))
    length = timedelta(minutes=visit.offer(staff)["durationMin"])
    end = (start + length).astimezone(ZoneInfo(zone))
    return span_text(visit.language, local, end=end)


def _book(request: HttpRequest) -> HttpResponse:
    # The operation of the page limits and records the call.
    check_body(request, *form_data.TYPES, limit=MAX_PUBLIC_BODY_BYTES)
    visit = _Visit.from_request(request)
    form_values = form_data.last_values(request)
    is_waiting = form_values.get(WAIT) and visit.may_wait
    return _wait(visit, form_values) if is_waiting else _book_time(visit, form_values)


def _book_time(visit: _Visit, form_values: Mapping[str, str]) -> HttpResponse:
    request = visit.request
    staff = _staff_of(visit, form_values)
    offer = visit.offer(staff)
    if offer["byPhone"]:
        return visit.show("by_phone", 409, staff=staff)
    try:
        response = (
            _decoy(visit, form_values)
            if form_checks.is_robot(form_values)
            else _create_booking(visit, form_values)
        )
        return (
            visit.show("by_mail", 202)
            if "confirmByMail" in response
            else _confirmation_page(visit, response, form_values.get("email", "").strip(), offer)
        )
    except SlotUnavailableError as error:
        return _show_form_again(
            visit, form_values, error, "book_taken", slots=error.details["alternatives"]
        )
    except ValidationError as error:
        return _invalid(visit, form_values, error)
    except (ByPhoneOnlyError, ChangedError) as error:
        return _show_changed(_Visit.from_request(request), form_values, error)
    except AppError as error:
        if error.code not in REFUSALS:
            raise
        return _show_form_again(visit, form_values, error, REFUSALS[error.code])


def _create_booking(visit: _Visit, form_values: Mapping[str, str]) -> dict[str, Any]:
    # A form that is sent too fast is refused here, before a call counts against the limits.
    form_checks.check_fill_time(form_values)
    staff = _staff_of(visit, form_values)
    client = {name: form_values.get(name, "").strip() or None for name in ("phone", "email")}
    arguments = {
        "workspace": visit.request.path["workspace"],
        "serviceId": visit.service["id"],
        "andThen": _and_then(visit.request),
        "startAt": form_values.get("at", ""),
        "resourceId": None if staff == ANYONE else staff,
        "client": {"name": form_values.get("name", ""), **client},
        "notes": form_values.get("notes", "").strip() or None,
        "language": visit.language,
        "advertisingVersion": form_values.get(ADVERTISING, "")[:MAX_VERSION] or None,
        PARAMETER: form_values.get(PARAMETER, "")[:MAX_TOKEN] or None,
        **{name: find_number(form_values.get(name, "")) for name in TERMS},
    }
    return call(visit.request, "book_on_page", arguments, form_values.get("once", "")[:MAX_KEY])


def _show_changed(
    visit: _Visit, form_values: Mapping[str, str], error: ByPhoneOnlyError | ChangedError
) -> HttpResponse:
    staff = _staff_of(visit, form_values)
    if visit.offer(staff)["byPhone"]:
        return visit.show("by_phone", error.status, staff=staff)
    return _show_form_again(visit, form_values, error, "book_changed")


def _invalid(visit: _Visit, form_values: Mapping[str, str], error: ValidationError) -> HttpResponse:
    wrong = {field_error.field.removeprefix("client.") for field_error in error.errors}
    if "startAt" in wrong:
        return _show_form_again(visit, form_values, error, "book_taken", slots=[])
    keys = {name: key for name, key in CONTACTS.items() if name in wrong}
    if "client" in wrong:
        keys["phone"] = "book_wrong_contact"
    errors = {name: texts.translate(visit.language, key) for name, key in keys.items()}
    return _show_form_again(visit, form_values, error, "book_wrong", errors=errors)


def _show_form_again(  # noqa: PLR0913  the parts of a refusal
    visit: _Visit,
    form_values: Mapping[str, str],
    error: AppError,
    key: str,
    *,
    errors: Mapping[str, str] | None = None,
    slots: list[dict[str, Any]] | None = None,
) -> HttpResponse:
    start = find_moment(form_values.get("at", "")) if slots is None else None
    summary = texts.translate(visit.language, key)
    if isinstance(error, BookingLimitError):
        advice: list[Advice] = ["give_email" if error.details["byMail"] else "wait"]
        advice += ["call"] if visit.page["phone"] else []  # The template adds the phone.
        summary = refusals.text(visit.language, error.details["reason"], *advice)
    response = _form(
        visit, error.status, form_values, start, summary=summary, errors=errors or {}, slots=slots
    )
    return response.with_headers({**response.headers, **error.headers})


def _decoy(visit: _Visit, form_values: Mapping[str, str]) -> dict[str, Any]:
    # For a program that filled in the honeypot.
    begin = find_moment(form_values.get("at", "")) or clock.now()
    workspace_id, booking_id = new_id(), new_id()

    def token(purpose: Purpose) -> str:
        return booking_tokens.token(
            workspace_id, booking_id=booking_id, purpose=purpose, secret=booking_tokens.new_secret()
        )

    base, zone = settings().public_url, visit.zone(ANYONE)
    offer = visit.offer(_staff_of(visit, form_values))
    is_held = offer["amountDue"] > 0
    payment_url = base + booking_links.PAY_PAGE.format(token=token(Purpose.PAY))
    booking = {
        "serviceName": visit.service["name"],
        "resourceName": visit.page["resources"][0]["name"] if visit.page["resources"] else "",
        "startAt": clock.iso(begin),
        "endAt": clock.iso(begin + timedelta(minutes=offer["durationMin"])),
        "timezone": zone,
        "price": offer["price"],
        "status": "pending_payment" if is_held else "confirmed",
    }
    return {
        "booking": booking,
        "icsUrl": base + booking_links.CALENDAR_FILE.format(token=token(Purpose.CALENDAR)),
        "manageUrl": base + booking_links.PAGE.format(token=token(Purpose.MANAGE)),
        "paymentUrl": payment_url if is_held else None,
        "amountDue": offer["amountDue"],
        "holdExpiresAt": clock.iso(clock.now() + timedelta(minutes=offer["holdMinutes"]))
        if is_held
        else None,
        "mail": "sent",
        "messengers": [],
    }


def _again(visit: _Visit, booking: Mapping[str, Any]) -> list[tuple[int, str]]:
    # The links that repeat the booking with the same staff, with the weeks until then.
    ids = [
        each["id"] for each in visit.page["resources"] if each["name"] == booking["resourceName"]
    ]
    staff = ids[0] if len(ids) == 1 else ANYONE
    start, now = datetime.fromisoformat(booking["startAt"]), clock.now()
    return [
        (repeat.weeks, visit.link(staff=staff, **{repeats.PARAMETER: clock.iso(repeat.start)}))
        for repeat in repeats.offered(start, booking["timezone"], now=now)
    ]


def _confirmation_page(
    visit: _Visit, confirmation: Mapping[str, Any], email: str, offer: Mapping[str, Any]
) -> HttpResponse:
    # The page says what becomes of the e-mail to an address, and contains the secret link to manage
    # the booking.
    booking, due = confirmation["booking"], confirmation["amountDue"]
    currency = visit.page["currency"]
    facts = booking_facts(visit.language, booking, currency)
    if due:
        last = datetime.fromisoformat(booking["startAt"]) - timedelta(
            minutes=offer["refundUntilMin"] or 0
        )
        facts += payment_facts(
            visit.language,
            booking,
            currency,
            due=due,
            left=booking["price"] - due,
            refund_until=clock.iso(last),
            held_until=confirmation["holdExpiresAt"],
        )
    response = visit.show(
        "done", made=confirmation, facts=facts, email=email, again=_again(visit, booking)
    )
    headers = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    return response.with_headers({**response.headers, **headers})

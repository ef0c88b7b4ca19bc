"""Pages of services."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any

from chalicelib.lib import localized
from chalicelib.transports.console import record_states, typed_values
from chalicelib.transports.console.categories import category_names
from chalicelib.transports.console.choices import SITES, STAFF
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import (
    Field,
    Images,
    Price,
    Record,
    Switch,
    Ticks,
    Typed,
    length,
    lengths,
    names_of,
    number,
    tags,
)
from chalicelib.transports.console.image_warnings import image_warnings
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.console.many import Column, Many
from chalicelib.transports.console.services.upcoming_bookings import booking_path, upcoming_bookings
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

PAGE_SIZE = 20
FILTERS = {"q": "q", "status": "status"}
Service = dict[str, Any]
TIMES_SHOWN = 5
# With more staff, only those who are ticked have controls for their own price and length.
MAX_TERMS = 10
_ROW = ("price", "duration", "own")  # controls of a member of the staff


def add_states(request: ConsoleRequest, services: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return services with their state and their ``lack``, the reason why visitors cannot book."""
    ids = [service["id"] for service in services]
    unbookable = request.call("list_unbookable_services", ids=ids)["services"] if ids else []
    lacks = {lack["serviceId"]: lack for lack in unbookable}
    with_lacks = [{**service, "lack": lacks.get(service["id"])} for service in services]
    return record_states.add_states(with_lacks, record_states.compute_service_state)


def from_texts(request: ConsoleRequest, service: Service) -> tuple[str, str]:
    """Return the length and the price of a service, with "from" if they depend on the staff."""
    return sum_texts(request, [service])


def sum_texts(
    request: ConsoleRequest, visit: Sequence[Service], staff: str = ""
) -> tuple[str, str]:
    """Return the length and the price of the services of a visit in all, as ``from_texts``.

    ``staff`` does every service that is theirs, and others do the rest.
    """
    lengths, prices = (
        [_values(service, name, staff) for service in visit] for name in ("durationMin", "price")
    )
    length = localized.length(request.language, sum(map(min, lengths)))
    if any(len(values) > 1 for values in lengths):
        length = request.translate("from_value", value=length)
    least = sum(map(min, prices))
    price = texts.money(request.language, least, request.currency)
    if any(len(values) > 1 for values in prices):
        price = request.translate("from_value", value=price)
    elif not least:
        price = request.translate("free")
    return length, price


def _values(service: Service, name: str, staff: str = "") -> set[int]:
    # What a service has with its staff, or with one of them.
    own = {override["resourceId"]: override[name] for override in service["resourceOverrides"]}
    ids = [staff] if staff in service["resourceIds"] else service["resourceIds"] or [""]
    return {service[name] if (value := own.get(each)) is None else value for each in ids}


def slot_text(request: ConsoleRequest, slot: dict[str, Any]) -> str:
    """Return the local start of a slot, with its weekday."""
    start = datetime.fromisoformat(slot["startLocal"])
    weekday = request.translate(f"day_{slot['weekday']}")
    return f"{weekday}, {texts.local_moment(request.language, start)}"


class StaffTerms(Field):
    """The price and the length with each member of the staff, where they differ.

    Its controls are named ``price-`` and ``duration-`` with an id. ``own-`` marks a member who had
    values when the form was opened: to take away that member's tick takes them away, too. What was
    typed for another member without a tick is refused by the operation.
    """

    _CONTROLS = ("price", "duration")

    def read_form(self, request: ConsoleRequest) -> Typed:
        ticked, rows = request.form.get("resourceIds", []), dict[str, dict[str, str]]()
        for name in request.form:
            control, _, resource_id = name.partition("-")
            if control not in self._CONTROLS or resource_id in rows:
                continue
            row = {each: request.form_value(f"{each}-{resource_id}").strip() for each in _ROW}
            if any(row[each] for each in self._CONTROLS) and (
                resource_id in ticked or not row["own"]
            ):
                rows[resource_id] = row
        return {self.name: rows, self._currency: request.currency}

    def fill_controls(self, request: ConsoleRequest, record: Record, /) -> Typed:
        rows = {
            own["resourceId"]: {
                "price": typed_values.plain_amount(own["price"], request.currency),
                "duration": typed_values.length(request.language, own["durationMin"]),
                "own": "1",
            }
            for own in record.get(self.name) or []
        }
        return {self.name: rows, self._currency: request.currency}

    def stored_value(self, record: Record) -> list[dict[str, Any]]:
        return sorted(
            (
                {name: value for name, value in own.items() if value is not None}
                for own in record.get(self.name) or []
            ),
            key=itemgetter("resourceId"),
        )

    def value(self, form_values: Typed) -> list[dict[str, Any]]:
        currency = form_values[self._currency]
        overrides = []
        for resource_id, row in sorted(form_values[self.name].items()):
            typed = {
                "price": typed_values.amount(self.name, row["price"], currency),
                "durationMin": typed_values.minutes(self.name, row["duration"]),
            }
            own = {name: value for name, value in typed.items() if value is not None}
            overrides.append({"resourceId": resource_id, **own})
        return overrides

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        names = STAFF.names(request)
        return "; ".join(
            f"{names.get(resource_id, resource_id)}: "
            f"{', '.join(row[each] for each in self._CONTROLS if row[each])}"
            for resource_id, row in form_values[self.name].items()
        )

    @property
    def _currency(self) -> str:
        return f"{self.name}Currency"


_IN_TABLE = (
    Field("name", empty=""),
    length("durationMin", label="duration", required="expected a length of time"),
    Price("price", "price", empty=0),
)
MANY = Many(
    "service",
    "services",
    "change_service_prices",
    Form(*_IN_TABLE, changes="update_service"),
    (
        Column("name", "name"),
        Column("durationMin", "duration"),
        Column("price", "price", "decimal"),
    ),
    category_names,
)
many, save_many = MANY.index, MANY.submit
FORM = Form(
    *_IN_TABLE,
    Ticks(
        "resourceIds",
        "service_staff",
        names=STAFF.names,
    ),
    StaffTerms("resourceOverrides", "service_staff_terms"),
    Field("description"),
    Field("categoryId", "category", names=category_names),
    Switch("active", "service_active", field="status", states=("active", "inactive"), new="active"),
    length("bufferBeforeMin", label="buffer_before", empty=0, rare=True),
    length("bufferAfterMin", label="buffer_after", empty=0, rare=True),
    length("slotStepMin", label="slot_step", rare=True),
    length("minNoticeMin", label="min_notice", empty=0, rare=True),
    number("horizonDays", label="horizon", empty=60, new=60, rare=True),
    number("unverifiedPerHour", label="unverified_per_hour", empty=60, new=60, rare=True),
    Switch("requirePayment", "require_payment"),
    Switch("visitorMails", "visitor_mails", new=True),
    Switch("fixedStarts", "fixed_starts"),
    lengths("reminders", label="reminders", new=[1440, 120], rare=True),
    number("bookAgainDays", label="book_again_days", rare=True),
    tags("tags", rare=True),
    Field(
        "siteId",
        "service_site",
        names=SITES.names,
        rare=True,
    ),
    Field("agentId", "service_bot", names=names_of("list_agents", list_name="agents"), rare=True),
    Images("images", rare=True),
    creates="create_service",
    changes="update_service",
)


def _list_values(request: ConsoleRequest, response: dict[str, Any]) -> dict[str, Any]:
    return {
        "services": add_states(request, response["services"]),
        "categories": category_names(request),
        "from_texts": partial(from_texts, request),
    }


def _deleted(request: ConsoleRequest) -> dict[str, Any]:
    service = _find(request)
    effect = request.call("delete_service", id=service["id"], dryRun=True)
    return {
        "service": service,
        "path": _path(request, service),
        "upcoming": effect["futureBookings"],
        "bookings": upcoming_bookings(request, serviceId=service["id"]),
        "booking_path": booking_path(request),
    }


def _path(request: ConsoleRequest, service: Service) -> str:
    return f"{request.current_membership.path}/services/{service['id']}"


def _find(request: ConsoleRequest) -> Service:
    service: Service = request.call("get_service", id=request.http.path["service"])["service"]
    return service


def _show_new_service(request: ConsoleRequest, answer: dict[str, Any]) -> HttpResponse:
    return _show_service(request, answer, "service_created")


def _saved(request: ConsoleRequest, service: Service, answer: dict[str, Any]) -> HttpResponse:
    return _show_service(request, {"service": service, **answer}, "service_saved")


def _show_service(request: ConsoleRequest, answer: dict[str, Any], notice: str) -> HttpResponse:
    service: Service = answer["service"]
    if lost := image_warnings(answer):
        return _form_page(request, service, State(notice=notice), lost)
    return redirect(f"{_path(request, service)}?done={notice}")


def _form_page(
    request: ConsoleRequest,
    service: Service | None,
    state: State = STORED,
    lost: Sequence[tuple[str, str]] = (),
) -> HttpResponse:
    staff_id = request.query_value("staff")
    form = FORM.page_values(
        request, service, state, {"resourceIds": [staff_id] if staff_id else []}
    )
    page_values: dict[str, Any] = {"service": None, "path": None, "times": None}
    if request.current_membership.may("update_service"):
        page_values |= {
            "sites": SITES.offer(request, "siteId", [form["typed"]["siteId"]]),
            "bots": request.call("list_agents")["agents"],
        }
    if service:
        (service_with_lack,) = add_states(request, [service])
        page_values |= {"service": service_with_lack, "path": _path(request, service)}
        if not service_with_lack["lack"]:
            page_values["times"] = request.call(
                "get_available_slots", serviceId=service["id"], limit=TIMES_SHOWN
            )
    chosen = form["typed"]["resourceIds"]
    staff = STAFF.offer(request, "resourceIds", chosen)
    return request.page(
        "service",
        staff=staff,
        unlisted=[resource_id for resource_id in chosen if resource_id not in staff.names],
        with_terms=[
            each
            for each in staff.records
            if each["id"] in chosen or len(staff.records) <= MAX_TERMS
        ],
        from_texts=partial(from_texts, request),
        categories=[
            {"id": category_id, "name": text}
            for category_id, text in category_names(request).items()
        ],
        lost=lost,
        slot_text=lambda slot: slot_text(request, slot),
        **form,
        **page_values,
    )


new_service_page, create = FORM.creation(_form_page, _show_new_service)
show, save = FORM.editing(_find, _form_page, _saved)
confirm_delete, delete = deletion(
    "service_delete", _deleted, "delete_service", notice="service_deleted", id="service"
)
index = ListPage("services", "list_services", PAGE_SIZE, FILTERS, _list_values).index

"""The page of one booking."""

from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ConflictError, ValidationError
from chalicelib.domains.booking_page.rules.repeat_links import SEPARATOR
from chalicelib.domains.bookings.rules import repeats
from chalicelib.engine.history import SHOWN
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.bookings.calendar import STATUSES
from chalicelib.transports.console.bookings.payments import find_payment, payments_of
from chalicelib.transports.console.bookings.times import ANYONE, FreeTimes
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse, redirect

# Parts besides the booking: the choice of another time, or the question whether to cancel it.
MOVE, ASK = "move", "cancel"
# Actions that mail the link that pays the booking, or note how the client has paid the rest.
MONEY_ACTIONS = ("send_link", "cash", "terminal", "withdrawn")
MOVABLE = ("pending_payment", "confirmed", "completed")
UPCOMING = ("pending_payment", "confirmed")
# What a member of the staff sees of a booking's money: nothing.
NO_MONEY: dict[str, Any] = {"notes": [], "left": 0, "due": 0, "paid": 0, "paymentUrl": None}
Booking = dict[str, Any]


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a booking with the choice of another time, or with the question whether to cancel it."""
    part = request.query_value("do")
    return _page(request, _find(request), part=part)


def change(request: ConsoleRequest) -> HttpResponse:
    """Set the status of a booking, or move it."""
    booking, action = _find(request), request.form_value("action")
    payment_id = request.form_value("refund") if action == "cancelled" else ""
    if payment_id:  # A payment of another booking is refused before anything changes.
        find_payment(request, payment_id)
    if action == "times":
        return _page(request, booking, part=MOVE)
    if action in MONEY_ACTIONS:
        return _change_money(request, booking, action)
    new_values: dict[str, Any] = {}
    try:
        new_values = _read_changes(request, booking, action)
        _send(request, booking, new_values)
    except ConflictError as error:
        # Another user changed the booking first: the page shows the stored and the requested
        # values.
        return _conflict(request, error, new_values, action)
    except AppError as error:
        part = MOVE if action == MOVE else ASK if action == "cancelled" else ""
        return _page(
            request, booking, error.status, booking_times.problem(request, error), part=part
        )
    if payment_id:
        return _refund_cancelled(request, payment_id)
    notice = "moved" if action == MOVE else action
    return redirect(f"{_path(request)}?done=booking_{notice}")


def _change_money(request: ConsoleRequest, booking: Booking, action: str) -> HttpResponse:
    booking_id = booking["id"]
    try:
        if action == "send_link":
            mailed = request.call_once("send_payment_link", bookingId=booking_id)
            action = "link_waits" if mailed["mail"] == "waiting" else action
        else:
            amount = typed_values.amount("amount", request.form_value("amount"), request.currency)
            fields = {} if amount is None else {"amount": amount}
            request.call_once("note_visit_payment", bookingId=booking_id, method=action, **fields)
    except AppError as error:
        problem = problem_at_fields(request, error, {"amount": "wrong_visit_amount"})
        return _page(request, booking, error.status, problem)
    return redirect(f"{_path(request)}?done=booking_{action}")


def _refund_cancelled(request: ConsoleRequest, payment_id: str) -> HttpResponse:
    page = f"{_path(request)}/payments/{payment_id}?done=booking_cancelled"
    try:
        request.call("refund_payment", id=payment_id)
    except AppError:
        return redirect(page)
    return redirect(f"{_path(request)}?done=booking_cancelled_refunded")


def _read_changes(request: ConsoleRequest, booking: Booking, action: str) -> dict[str, Any]:
    if action != MOVE:
        if action not in STATUSES:
            raise ValidationError.of(
                "action", message="expected another value", key="wrong_booking_action"
            )
        reason = request.form_value("reason").strip()
        # One press is for all services of a visit, but a member of the staff has only the own ones.
        is_whole = "visitId" in booking and not request.current_membership.own_resource_id
        whole = {"wholeVisit": True} if is_whole else {}
        return {"status": action, **whole, **({"reason": reason} if reason else {})}
    time = booking_times.read_time(request, _staff(request, booking))
    new_values = {
        "startAt": time.start,
        "resourceId": time.resource_id or booking["resourceId"],
        "ignoreSchedule": time.outside,
    }
    return new_values if booking["status"] in MOVABLE else {"status": "confirmed", **new_values}


def _send(request: ConsoleRequest, booking: Booking, new_values: Mapping[str, Any]) -> None:
    version = request.form_value("version")
    version_check = {"ifVersion": int(version)} if version.isascii() and version.isdecimal() else {}
    operation = "set_booking_status" if "status" in new_values else "reschedule_booking"
    request.call(operation, id=booking["id"], **new_values, **version_check)


def _conflict(
    request: ConsoleRequest, error: ConflictError, new_values: Mapping[str, Any], action: str
) -> HttpResponse:
    # A second click finds the change of the first one, and is a success.
    booking = _find(request)
    if error.code == "version_conflict":
        if all(booking[name] == new_values[name] for name in new_values if name in booking):
            return redirect(
                f"{_path(request)}?done=booking_{'moved' if action == MOVE else action}"
            )
        part = MOVE if action == MOVE else ASK if action == "cancelled" else ""
        return _page(
            request,
            booking,
            error.status,
            part=part,
            meanwhile=_differences(request, booking, new_values),
        )
    if error.code != "slot_unavailable":
        return _page(request, booking, error.status, booking_times.problem(request, error))
    problem = Problem(request.translate(_refusal(error, action)))
    alternatives = booking_times.alternatives(error.details)
    return _page(request, booking, error.status, problem, part=MOVE, near=alternatives)


def _refusal(error: ConflictError, action: str) -> str:
    if action != MOVE:
        return "booking_taken_status"
    is_taken = error.details.get("reason") in {"fully_booked", "day_full"}
    return "booking_taken_move" if is_taken else "booking_closed_move"


def _differences(
    request: ConsoleRequest, booking: Booking, new_values: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    rows = []
    if "status" in new_values:
        stored_label, new_label = (
            f"booking_{source['status']}" for source in (booking, new_values)
        )
        label = request.translate("booking_status")
        rows.append((label, request.translate(stored_label), request.translate(new_label)))
    if "startAt" in new_values:
        texts = booking_times.texts_of(request)

        def time(text: str) -> str:
            return f"{texts['short_day'](texts['local_date'](text))}, {texts['hour'](text)}"

        label = request.translate("booking_time")
        rows.append((label, time(booking["startAt"]), time(str(new_values["startAt"]))))
    return rows


def _page(
    request: ConsoleRequest,
    booking: Booking,
    status: int = 200,
    problem: Problem | None = None,
    *,
    part: str = "",
    **values: object,
) -> HttpResponse:
    # For a move, the free times of the form's day are found. An invalid day is reported.
    times, staff, day = FreeTimes([], []), _staff(request, booking), ""
    if part == MOVE:
        day = _day(request, booking)
        try:
            times = booking_times.find(
                request,
                booking["serviceId"],
                day=day,
                staff=staff,
                moving=booking["id"],
                is_visit="visitId" in booking,
            )
        except AppError as error:
            problem = problem or booking_times.problem(request, error)
            status = max(status, error.status)
    has_price = booking["price"] or "visitId" in booking
    payments = payments_of(request, [booking["id"]] if has_price else [])
    may = request.current_membership.may
    money = (
        request.call("get_booking_money", bookingId=booking["id"])
        if may("get_booking_money")
        else NO_MONEY
    )
    notes = [{"noted": True, "move": None, "reason": None, **note} for note in money["notes"]]
    changes = [{"noted": False, **event} for event in booking["statusHistory"]]
    return request.page(
        "booking",
        status,
        # The payment of a visit is with its first booking.
        payments=[payment for found in payments.values() for payment in found],
        visit=booking.get("visit", []),
        visit_price=sum(each["price"] for each in booking.get("visit", [])),
        sums=money,
        history=sorted([*changes, *notes], key=lambda event: event["at"]),
        most_changes=SHOWN,
        left=typed_values.plain_amount(money["left"], request.currency),
        problem=problem,
        booking=booking,
        path=_path(request),
        part=part,
        times=times,
        day=day,
        staff=staff,
        anyone=ANYONE,
        typed=request.form_value,
        who=partial(_actor, request, _people(request)),
        client_path=_client_path(request, booking),
        can_be_moved=booking["status"] in MOVABLE,
        again=_again(request, booking),
        has_begun=booking["startAt"] <= (now := clock.iso(clock.now())),
        is_conflict=booking["status"] in UPCOMING
        and booking["endAt"] > now
        and _is_busy_elsewhere(request, booking),
        **{"near": [], "meanwhile": [], **values},
        **booking_times.texts_of(request),
    )


def _again(request: ConsoleRequest, booking: Booking) -> list[tuple[int, str]]:
    # The links to a new booking of the same client, services, staff and time of day, with the weeks
    # until then. That page offers the next free time if this one is taken.
    if not request.current_membership.may("create_booking"):
        return []
    zone = ZoneInfo(booking_times.zone(request))
    first, *further = _repeated(request, booking)
    people = {each["resourceId"] for each in (first, *further)}
    start, now = datetime.fromisoformat(first["startAt"]), clock.now()
    links = []
    for repeat in repeats.offered(start, booking["timezone"], now=now):
        local = repeat.start.astimezone(zone)
        query = {
            "service": first["serviceId"],
            # One person would do all that is theirs, so those who shared a visit are not named.
            "staff": first["resourceId"] if len(people) == 1 else ANYONE,
            "date": local.date().isoformat(),
            "time": f"{local:%H:%M}",
            "client": booking["client"]["id"] or "",
            **({"then": SEPARATOR.join(each["serviceId"] for each in further)} if further else {}),
        }
        path = f"{request.current_membership.path}/bookings/new"
        links.append((repeat.weeks, f"{path}?{urlencode(query)}"))
    return links


def _repeated(request: ConsoleRequest, booking: Booking) -> list[Booking]:
    # The bookings that are repeated: of a visit all, except those that were cancelled without this.
    visit = booking.get("visit")
    if not visit or request.current_membership.own_resource_id:
        return [booking]
    is_cancelled = booking["status"] == "cancelled"
    return [each for each in visit if is_cancelled or each["status"] != "cancelled"]


def _people(request: ConsoleRequest) -> dict[str, str]:
    if request.current_membership.may("list_members"):
        people = request.call("list_members")["members"]
        return {person["accountId"]: person["name"] for person in people}
    account = request.signed_in_account
    return {account.id: account.name}


def _is_busy_elsewhere(request: ConsoleRequest, booking: Booking) -> bool:
    """Return whether the own calendar of the staff is busy during a booking."""
    period = {"from": booking["startAt"], "to": booking["endAt"]}
    busy = request.call("get_busy_times", resourceId=booking["resourceId"], **period)
    return bool(busy["busyTimes"])


def _actor(request: ConsoleRequest, people: Mapping[str, str], by: str) -> str:
    kind = by.partition(":")[0]
    actor_kind = kind if kind in {"operator", "visitor", "job"} else "account"
    if actor_kind == "account" and not request.current_membership.may("list_members"):
        actor_kind = "colleague"
    return people.get(by) or request.translate(f"actor_{actor_kind}")


def _client_path(request: ConsoleRequest, booking: Booking) -> str:
    return f"{request.current_membership.path}/clients/{booking['client']['id']}"


def _day(request: ConsoleRequest, booking: Booking) -> str:
    # A booking in the past has today.
    day = request.form_value("date") or request.query_value("date")
    if day:
        return day.strip()
    zone = booking_times.zone(request)
    today = clock.local_day(clock.now(), zone)
    local_day = booking_times.texts_of(request)["local_date"](booking["startAt"])
    return max(today, date.fromisoformat(local_day)).isoformat()


def _staff(request: ConsoleRequest, booking: Booking) -> str:
    staff_id = request.form_value("staff") or request.query_value("staff")
    return staff_id or str(booking["resourceId"])


def _find(request: ConsoleRequest) -> Booking:
    response = request.call("get_booking", id=request.http.path["booking"])
    booking: Booking = response["booking"]
    return {**booking, "visit": response["visit"]} if "visit" in response else booking


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/bookings/{request.http.path['booking']}"

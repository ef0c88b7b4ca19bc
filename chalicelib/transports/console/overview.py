"""The overview of a workspace."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

MEASURES = ("leads", "bookings", "dialogs", "visitors")
# Lists of the overview. A workspace without any of them is new.
CAME = ("latestLeads", "visits", "nextBookings")
# The pages that list what a measure counts since a day.
PAGES = {
    "leads": "/leads?from={day}",
    "bookings": "/bookings?view=list",
    "dialogs": "/dialogs?from={day}",
}


class Wait(NamedTuple):
    """What waits for a member: one thing, or several of a kind by their number."""

    key: str  # catalogue key
    path: str
    operation: str
    values: Mapping[str, Any]
    about: str = ""


class Step(NamedTuple):
    key: str  # catalogue key
    path: str
    operation: str
    is_done: bool


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the visits of today and what waits first, then money and the counts.

    The steps to the first booking stay until they are done or dismissed.
    """
    overview = request.call("get_overview")
    days = [{"date": day["date"], **day["activity"]} for day in overview["days"]]
    pages = {name: path.format(day=days[0]["date"]) for name, path in PAGES.items()}
    # A chat of the workspace's own staff with a bot is no activity.
    dialogs = [each for each in overview["latestDialogs"] if each["channel"] != "test"]
    is_empty = not any((dialogs, *(overview[name] for name in CAME)))
    is_dismissed = request.current_membership.workspace.steps_dismissed_at is not None
    first_steps = None if is_dismissed else request.call("get_first_steps")
    steps = _steps(first_steps) if first_steps else []
    return request.page(
        "overview",
        200,
        problem=None,
        overview=overview,
        dialogs=dialogs,
        waits=[
            wait
            for wait in _waits(request, overview["waiting"])
            if request.current_membership.may(wait.operation)
        ],
        **booking_times.texts_of(request),
        days=days,
        measures=MEASURES,
        pages=pages,
        is_empty=is_empty,
        steps=[] if all(step.is_done for step in steps) else steps,
        booking_url=f"{settings().public_url}{open_page.PATH}/{first_steps['slug']}"
        if first_steps and first_steps["hasBookingPage"]
        else "",
    )


def dismiss(request: ConsoleRequest) -> HttpResponse:
    """Show the first steps no more, to no member."""
    request.call("dismiss_first_steps")
    return redirect(f"{request.current_membership.path}?done=steps_dismissed")


def _waits(request: ConsoleRequest, waiting: Mapping[str, Any]) -> Iterator[Wait]:
    """Yield what waits, the most urgent first. Of many things of a kind, the last row has all."""
    for dialog in waiting["personRequests"]:
        path, about = f"dialogs/{dialog['id']}", dialog["preview"]
        yield Wait("waits_for_person", path, "list_dialogs", {}, about)
    if (total := waiting["personRequestsTotal"]) > (shown := len(waiting["personRequests"])):
        values = {"shown": shown, "n": total}
        yield Wait("waits_for_person_all", "dialogs", "list_dialogs", values)
    for refund in waiting["failedRefunds"]:
        amount = texts.money(request.language, refund["amount"], refund["currency"])
        path = f"bookings/{refund['bookingId']}"
        yield Wait("waits_refund", path, "list_payments", {"amount": amount})
    if (total := waiting["failedRefundsTotal"]) > (shown := len(waiting["failedRefunds"])):
        yield Wait("waits_refund_all", "payments", "list_payments", {"shown": shown, "n": total})
    if count := waiting["newLeads"]:
        yield Wait("waits_leads", "leads?status=new", "list_leads", {"n": count})
    if count := waiting["unpaidBookings"]:
        path = "bookings?view=list&status=pending_payment"
        yield Wait("waits_unpaid", path, "list_bookings", {"n": count})


def _steps(state: Mapping[str, Any]) -> list[Step]:
    service, staff = state["serviceId"], state["resourceId"]
    service_page = f"services/{service}" if service else "services/new"
    new_staff = f"staff/new?service={service}" if service else "staff/new"
    hours = f"staff/{staff}/hours" if staff else new_staff
    return [
        Step("service", service_page, "create_service", state["hasService"]),
        Step("hours", hours, "set_availability", state["hasHours"]),
        Step("photo", f"{service_page}#imagesFile", "update_service", state["hasPhoto"]),
        Step("details", "settings", "set_workspace", state["hasDetails"]),
        Step("page", "booking-page", "set_booking_page", state["hasBookingPage"]),
        Step("share", "booking-page#link", "get_booking_page", state["isShared"]),
    ]

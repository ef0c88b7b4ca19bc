"""A workspace at a glance: what came in, what is next, and what there is to spend."""

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

MEASURES = ("leads", "bookings", "dialogs", "visitors")


def show(visit: ConsoleRequest) -> HttpResponse:
    """Show the numbers first, then the newest of what they count."""
    found = visit.call("get_overview")
    days = [{"date": day["date"], **day["income"]} for day in found["days"]]
    return visit.page("overview", found=found, days=days, measures=MEASURES)

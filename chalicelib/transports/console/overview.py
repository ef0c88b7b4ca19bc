"""The overview of a workspace: new leads, coming bookings and the balance."""

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

MEASURES = ("leads", "bookings", "dialogs", "visitors")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the counts first, then the latest records behind them."""
    found = request.call("get_overview")
    days = [{"date": day["date"], **day["income"]} for day in found["days"]]
    return request.page("overview", found=found, days=days, measures=MEASURES)

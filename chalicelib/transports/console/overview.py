"""The overview of a workspace: new leads, coming bookings and the balance."""

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

MEASURES = ("leads", "bookings", "dialogs", "visitors")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the counts first, then the latest records behind them."""
    overview = request.call("get_overview")
    days = [{"date": day["date"], **day["income"]} for day in overview["days"]]
    return request.page("overview", overview=overview, days=days, measures=MEASURES)

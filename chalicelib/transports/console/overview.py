"""The overview of a workspace."""

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

MEASURES = ("leads", "bookings", "dialogs", "visitors")
PAGES = {
    "leads": "/leads?from={day}",
    "bookings": "/bookings?view=list",
    "dialogs": "/dialogs?from={day}",
}
"""The pages that list what a measure counts since a day."""


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the counts first, then the latest records behind them."""
    overview = request.call("get_overview")
    days = [{"date": day["date"], **day["activity"]} for day in overview["days"]]
    pages = {name: path.format(day=days[0]["date"]) for name, path in PAGES.items()}
    return request.page("overview", overview=overview, days=days, measures=MEASURES, pages=pages)

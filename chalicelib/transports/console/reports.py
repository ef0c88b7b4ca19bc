"""The page of reports: what was booked, earned and paid in a period, with charts."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.lib import currencies
from chalicelib.lib.markup import csv_text
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.leads import DELIMITERS, csv_file
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts

SHOWN = 30  # services, and members of the staff; the CSV file has all
HEIGHT = 60  # of a chart, in units of its view box
NAMED_COLUMNS = 53  # A chart of more columns has no text for each of them.
_YEAR = 365
# Columns of the CSV files, by what they list. Their headings are ``report_<column>``.
COLUMNS = {
    "weeks": (
        *("date", "visits", "revenue", "soldMinutes", "openMinutes"),
        *("noShows", "cancelled", "paid", "refunded", "noted"),
    ),
    "services": ("name", "visits", "revenue", "soldMinutes"),
    "staff": ("name", "visits", "revenue", "soldMinutes", "openMinutes"),
    "sources": ("source", "bookings", "revenue"),
}
AMOUNTS = frozenset({"revenue", "paid", "refunded", "noted"})


class Period(NamedTuple):
    """A period that the page offers."""

    key: str  # catalogue key
    first: date
    last: date


class Column(NamedTuple):
    """A column of a chart."""

    name: str
    text: str
    height: float


class Chart(NamedTuple):
    """A chart of weeks, whose axis ends at ``top``."""

    key: str  # catalogue key
    top: str
    columns: list[Column]
    highest: Column

    @property
    def has_names(self) -> bool:
        return len(self.columns) <= NAMED_COLUMNS


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the report of a period. An invalid period is reported, and the last days are shown.

    With ``format=csv`` in the query, return a part of the report as a CSV file.
    """
    chosen = {name: request.query_value(name).strip() for name in ("from", "to")}
    filters = {name: value for name, value in chosen.items() if value}
    problem, status = None, 200
    try:
        read = request.call("get_money_report", **filters)
    except AppError as error:
        problem, status = request.problem(error), error.status
        read = request.call("get_money_report")
    report, money = read["report"], read["totals"]
    # Each row of a table or of a file has the bookings and the money of its week.
    report["weeks"] = [
        week | paid for week, paid in zip(report["weeks"], read["weeks"], strict=True)
    ]
    if request.query_value("format") == "csv" and problem is None:
        return _export(request, report)
    totals, periods = report["totals"] | money, _periods(request)
    dates = [(str(period.first), str(period.last)) for period in periods]
    shown = (report["from"], report["to"])
    return request.page(
        "reports",
        status,
        problem=problem,
        report=report,
        totals=totals,
        chosen={**report, **filters},
        periods=periods,
        # Two of them are equal on some days of the year.
        current=dates.index(shown) if shown in dates else None,
        charts=_charts(request, report["weeks"]),
        weeks=[(_day(request, week["date"]), week) for week in report["weeks"]],
        services=report["services"][:SHOWN],
        staff=report["staff"][:SHOWN],
        noted=totals["notedCash"] + totals["notedTerminal"] + totals["notedWithdrawn"],
        load=_load,
        hours=lambda minutes: texts.translate(
            request.language, "length_hours", count=texts.number(request.language, minutes // 60)
        ),
        share=lambda amount, parts: 100 * amount / max([1, *(each["revenue"] for each in parts)]),
    )


def _load(sold_minutes: int, open_minutes: int) -> str:
    return f"{round(100 * sold_minutes / open_minutes)} %" if open_minutes else ""


def _periods(request: ConsoleRequest) -> list[Period]:
    zone = request.current_membership.workspace.timezone
    today = clock.local_day(clock.now(), zone)
    month = today.replace(day=1)
    last_month = month - timedelta(days=1)
    return [
        Period("report_30_days", today - timedelta(days=29), today),
        Period("report_month", month, today),
        Period("report_last_month", last_month.replace(day=1), last_month),
        Period("report_year", today - timedelta(days=_YEAR - 1), today),
        Period("report_two_years", today - timedelta(days=2 * _YEAR - 1), today),
    ]


def _charts(request: ConsoleRequest, weeks: Sequence[dict[str, Any]]) -> list[Chart]:
    names = [_day(request, week["date"]) for week in weeks]

    def money(amount: float) -> str:
        return texts.money(request.language, int(amount), request.currency)

    charts = [_chart("report_revenue", names, [week["revenue"] for week in weeks], money)]
    if any(week["openMinutes"] for week in weeks):
        loads = [100 * week["soldMinutes"] / (week["openMinutes"] or 1) for week in weeks]
        charts.append(_chart("report_load", names, loads, lambda load: f"{round(load)} %"))
    if any(week["paid"] or week["noted"] for week in weeks):
        taken = [max(0, week["paid"] - week["refunded"] + week["noted"]) for week in weeks]
        charts.append(_chart("report_taken", names, taken, money))
    return charts


def _chart(
    key: str, names: Sequence[str], values: Sequence[float], text: Callable[[float], str]
) -> Chart:
    top = round_up(max(values))
    columns = [
        Column(name, text(value), round(HEIGHT * value / top, 2))
        for name, value in zip(names, values, strict=True)
    ]
    return Chart(key, text(top), columns, max(columns, key=lambda column: column.height))


def round_up(value: float) -> float:
    """Return the end of an axis: 1, 2 or 5 times a power of ten, at least 1.

    >>> round_up(0), round_up(130), round_up(420_000)
    (1, 200, 500000)
    """
    step = 1
    while step < value:
        for factor in (2, 5, 10):
            if step * factor >= value:
                return step * factor
        step *= 10
    return step


def _day(request: ConsoleRequest, text: str) -> str:
    return texts.day(request.language, date.fromisoformat(text))


def _export(request: ConsoleRequest, report: dict[str, Any]) -> HttpResponse:
    part = request.query_value("table")
    part = part if part in COLUMNS else "weeks"
    columns = COLUMNS[part]
    head: list[csv_text.Cell] = [request.translate(f"report_{name}") for name in columns]
    rows = [
        [_cell(request, name, each[name], report["currency"]) for name in columns]
        for each in report[part]
    ]
    slug = request.current_membership.workspace.slug
    name = f"{slug}-report-{part}-{report['from']}-{report['to']}.csv"
    return csv_file(csv_text.write([head, *rows], DELIMITERS[request.language]), name=name)


def _cell(
    request: ConsoleRequest, column: str, value: csv_text.Cell, currency: str
) -> csv_text.Cell:
    if column == "source":
        return request.translate(f"booking_source_{value}")
    if column in AMOUNTS and isinstance(value, int):
        return currencies.cell(value, currency)
    return value

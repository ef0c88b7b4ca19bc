"""A report computed from all bookings, payments, refunds and notes, without any sum."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.domains.bookings.store.bookings import BookingRow, EventRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.store.payments import PaymentRow, RefundRow
from chalicelib.engine.listing.index_entries import SEPARATOR
from tests.factories.salon import bookings_of

SOLD = ("confirmed", "completed")


def recount(  # noqa: C901, PLR0912, PLR0915  one naive pass over everything
    workspace_id: str, first: date, last: date
) -> dict[str, Any]:
    """Return the figures of a period as ``figures_of`` returns those of a report."""
    zone = ZoneInfo(workspaces.get(workspace_id).timezone)

    def day(moment: datetime) -> date:
        return moment.astimezone(zone).date()

    rows = bookings_of(workspace_id)
    by_id = {row.id: row for row in rows}
    payments = {
        row.sk: row
        for row in PaymentRow.partition(f"W#{workspace_id}#PAYMENT")
        if row.purpose == "booking" and row.paid_at is not None
    }
    refunds = defaultdict[str, list[RefundRow]](list)
    for refund in RefundRow.partition(f"W#{workspace_id}#PAYMENT#REFUND"):
        refunds[refund.payment_id].append(refund)
    notes = defaultdict[str, list[EventRow]](list)
    for event in EventRow.partition(f"W#{workspace_id}#BOOKING#HISTORY"):
        if event.noted:
            notes[event.sk.partition(SEPARATOR)[0]].append(event)

    moved: list[tuple[date, str, int]] = []  # money by day
    for payment in payments.values():
        paid_on = day(payment.paid_at)
        ours = [each for each in refunds[payment.sk] if each.status != "failed"]
        moved += [(paid_on, "payments", 1), (paid_on, "paid", int(payment.amount))]
        moved += [(paid_on, "disputed", int(payment.disputed))]
        at_provider = int(payment.refunded_at_provider) - sum(int(each.amount) for each in ours)
        moved += [(paid_on, "refunded", max(0, at_provider))]
        moved += [(day(each.created_at), "refunded", int(each.amount)) for each in ours]
    for events in notes.values():
        for note in events:
            name = f"noted{note.noted['method'].title()}"
            moved.append((day(note.at), name, int(note.noted["amount"])))

    def within(days: Iterable[BookingRow]) -> list[BookingRow]:
        return [row for row in days if first <= day(row.starts_at) <= last]

    found = within(rows)
    sold = [row for row in found if row.status in SOLD]
    totals = Counter[str]()
    for on, name, amount in moved:
        if first <= on <= last:
            totals[name] += amount
    for row in found:
        if row.id != (row.visit or [row.id])[0]:
            continue  # The first booking of a visit has its money.
        price = sum(
            int(by_id[each].price) for each in row.visit or [row.id] if by_id[each].status in SOLD
        )
        noted = sum(int(note.noted["amount"]) for note in notes[row.id])
        totals["due"] += max(0, price - int(row.paid or 0) - noted) if price else 0
    shown = [row for row in found if not row.has_lapsed]
    statuses = Counter(row.status for row in shown)
    first_visits: dict[str, date] = {}
    for row in rows:
        if row.status in SOLD and row.client_id is not None:
            begins = day(row.starts_at)
            first_visits[row.client_id] = min(first_visits.get(row.client_id, begins), begins)
    clients = {row.client_id for row in sold if row.client_id is not None}
    new = {client for client in clients if first <= first_visits[client] <= last}
    totals.update(
        bookings=len(shown),
        visits=len(sold),
        completed=statuses["completed"],
        pending=statuses["pending_payment"],
        noShows=statuses["no_show"],
        cancelled=statuses["cancelled"],
        lapsed=len(found) - len(shown),
        revenue=sum(int(row.price) for row in sold),
        soldMinutes=sum(int(row.duration_min) for row in sold),
        newClients=len(new),
        returningClients=len(clients - new),
    )
    weeks = {}
    monday = first - timedelta(days=first.weekday())
    while monday <= last:
        days = {monday + timedelta(days=number) for number in range(7)}
        days = {each for each in days if first <= each <= last}
        of_week = [row for row in sold if day(row.starts_at) in days]
        cash = Counter[str]()
        for on, name, amount in moved:
            if on in days:
                cash["noted" if name.startswith("noted") else name] += amount
        here = [row for row in shown if day(row.starts_at) in days]
        weeks[str(min(days))] = (
            len(of_week),
            sum(int(row.price) for row in of_week),
            sum(int(row.duration_min) for row in of_week),
            sum(row.status == "no_show" for row in here),
            sum(row.status == "cancelled" for row in here),
            cash["paid"],
            cash["refunded"],
            cash["noted"],
        )
        monday += timedelta(days=7)
    return {
        "totals": {name: number for name, number in totals.items() if number},
        "weeks": weeks,
        "services": _sold_by(sold, "service_id"),
        "staff": _sold_by(sold, "resource_id"),
        "sources": {
            source: (
                sum(row.source == source for row in shown),
                sum(int(row.price) for row in sold if row.source == source),
            )
            for source in {row.source for row in shown}
        },
    }


def _sold_by(sold: list[BookingRow], attribute: str) -> dict[str, tuple[int, int, int]]:
    parts = defaultdict[str, list[BookingRow]](list)
    for row in sold:
        parts[getattr(row, attribute)].append(row)
    return {
        part: (
            len(some),
            sum(int(row.price) for row in some),
            sum(int(row.duration_min) for row in some),
        )
        for part, some in parts.items()
    }


def figures_of(read: Any) -> dict[str, Any]:
    """Return what a report says of bookings, money and dialogs."""
    report, apart = read["report"], {"openMinutes", "visitors"}
    totals = report["totals"] | read["totals"]
    return {
        "totals": {name: number for name, number in totals.items() if number and name not in apart},
        "weeks": {
            week["date"]: (
                week["visits"],
                week["revenue"],
                week["soldMinutes"],
                week["noShows"],
                week["cancelled"],
                paid["paid"],
                paid["refunded"],
                paid["noted"],
            )
            for week, paid in zip(report["weeks"], read["weeks"], strict=True)
            if week["date"] == paid["date"]
        },
        "services": _parts(report["services"]),
        "staff": _parts(report["staff"]),
        "sources": {
            each["source"]: (each["bookings"], each["revenue"]) for each in report["sources"]
        },
    }


def _parts(parts: Any) -> dict[str, tuple[int, int, int]]:
    return {
        each["id"]: (each["visits"], each["revenue"], each["soldMinutes"])
        for each in parts
        if each["visits"]
    }

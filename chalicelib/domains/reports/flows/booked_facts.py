"""Read what is counted of bookings: the bookings with their payments, refunds and notes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from typing import NamedTuple

from chalicelib.core import clock, deadline
from chalicelib.domains.bookings.flows import rest_to_pay
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow, EventRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import FAILED, PaymentRow, RefundRow
from chalicelib.domains.reports.rules import figures
from chalicelib.domains.reports.rules.figures import BookedFacts, Movement

THREADS = 8


class Booked(NamedTuple):
    """A booking, and what is counted of it."""

    row: BookingRow
    facts: BookedFacts


def read(workspace: WorkspaceRow, zone: str, booking_ids: Sequence[str]) -> list[Booked]:
    """Return the bookings with these ids, and the other ones of their visits.

    The first booking of a visit has its money, and what is left to pay depends on all of them.
    """
    found = {row.id: row for row in BOOKINGS.fetch(workspace.id, dict.fromkeys(booking_ids))}
    others = {each for row in found.values() for each in row.visit or ()} - {*found}
    if others:
        found |= {row.id: row for row in BOOKINGS.fetch(workspace.id, sorted(others))}
    firsts = [row for row in found.values() if row.visit_id in {None, row.id}]
    day_of = partial(clock.local_day, timezone=zone)
    with deadline.side_by_side() as start:
        paid_task = start(lambda: _payments(workspace, firsts))
        notes = dict(
            zip(
                [row.id for row in firsts],
                deadline.map_in_threads(lambda row: _notes(workspace.id, row.id), firsts, THREADS),
                strict=True,
            )
        )
        paid = paid_task.result()
    return [
        Booked(
            row,
            BookedFacts(
                day=day_of(row.starts_at),
                status=row.status,
                has_lapsed=bool(row.has_lapsed),
                service_id=row.service_id,
                resource_id=row.resource_id,
                source=row.source,
                client_id=row.client_id,
                price=int(row.price),
                minutes=int(row.duration_min),
                due=_due(found, row, notes[row.id]) if row.id in notes else 0,
                money=[
                    *_noted(notes.get(row.id, ()), day_of),
                    *(each for payment in paid[row.id] for each in payment.movements(day_of)),
                ],
            ),
        )
        for row in found.values()
    ]


class _Paid(NamedTuple):
    payment: PaymentRow
    refunds: Sequence[RefundRow]

    def movements(self, day_of: Callable[[datetime], date]) -> Iterator[Movement]:
        payment, day = self.payment, day_of(self.payment.paid_at)
        yield Movement(day, figures.PAID, int(payment.amount))
        yield Movement(day, figures.PAYMENTS, 1)
        yield Movement(day, figures.DISPUTED, int(payment.disputed))
        # When the business made these at the provider is not known.
        elsewhere = payments.refunded_elsewhere(self.refunds, int(payment.refunded_at_provider))
        yield Movement(day, figures.REFUNDED, elsewhere)
        for refund in self.refunds:
            if refund.status != FAILED:
                yield Movement(day_of(refund.created_at), figures.REFUNDED, int(refund.amount))


def _payments(
    workspace: WorkspaceRow, firsts: Iterable[BookingRow]
) -> defaultdict[str, list[_Paid]]:
    ids = [payment_id for row in firsts for payment_id in row.payment_ids or ()]
    # Imported payments may have another currency, in which they have no sum with these.
    rows = [
        row
        for row in payments.fetch(workspace.id, ids)
        if row.paid_at is not None and row.currency == workspace.currency
    ]
    refunds = deadline.map_in_threads(
        lambda row: payments.refunds_of(workspace.id, [row.id]) if row.refund_total else [],
        rows,
        THREADS,
    )
    paid = defaultdict[str, list[_Paid]](list)
    for row, its_refunds in zip(rows, refunds, strict=True):
        paid[row.subject_id].append(_Paid(row, its_refunds))
    return paid


def _notes(workspace_id: str, booking_id: str) -> list[EventRow]:
    events = EventRow.newest(workspace_id, record_id=booking_id, limit=None)
    return [event for event in events if event.noted]


def _noted(notes: Iterable[EventRow], day_of: Callable[[datetime], date]) -> Iterator[Movement]:
    for note in notes:
        measure = figures.noted(note.noted["method"])
        yield Movement(day_of(note.at), measure, int(note.noted["amount"]))


def _due(found: dict[str, BookingRow], first: BookingRow, notes: Iterable[EventRow]) -> int:
    parts = [found[each] for each in first.visit or [first.id] if each in found]
    price = sum(int(part.price) for part in parts if part.status in figures.TAKES_PLACE)
    return max(0, price - int(first.paid or 0) - rest_to_pay.noted_amount(notes)) if price else 0

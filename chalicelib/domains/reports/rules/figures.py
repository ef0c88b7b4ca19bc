"""Decide what a booking, its money and its client add to the figures of each local day.

What a booking adds is stored beside the sums. So after a change, the former numbers are subtracted
and the new ones are added, on whichever days they are.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

# Numbers by local day (ISO 8601) and by measure, without zeros.
Counts = dict[str, dict[str, int]]

TAKES_PLACE = frozenset({"confirmed", "completed"})
# Measures of a day. Those of a service, a member of the staff, a source or a client are
# ``<kind>:<id>:<measure>``.
VISITS, REVENUE, MINUTES, BOOKINGS = "visits", "revenue", "minutes", "bookings"
PAID, PAYMENTS, REFUNDED, DISPUTED, DUE = "paid", "payments", "refunded", "disputed", "due"
LAPSED = "lapsed"
METHODS = ("cash", "terminal", "withdrawn")  # of notes of payments at the visit
SERVICE, RESOURCE, SOURCE, CLIENT = "s", "p", "o", "c"
_HASH_BYTES = 6  # Of 100,000 clients, two have the same hash in one of 50,000 workspaces.
_ID_KINDS = frozenset({SERVICE, RESOURCE, SOURCE, CLIENT})


class Movement(NamedTuple):
    """Money that moved on a local day."""

    day: date
    measure: str
    amount: int


class BookedFacts(NamedTuple):
    """What is counted of a booking."""

    day: date  # of its start, in the zone of the workspace
    status: str
    has_lapsed: bool  # cancelled because it was not paid in time
    service_id: str
    resource_id: str
    source: str
    client_id: str | None
    price: int
    minutes: int
    due: int  # what is left to pay
    money: Sequence[Movement] = ()


def noted(method: str) -> str:
    """Return the measure of payments at the visit that members have noted."""
    return f"noted.{method}"


def status(name: str) -> str:
    """Return the measure of bookings with a status."""
    return f"is.{name}"


def counts_of(booking: BookedFacts) -> Counts:
    """Return what a booking adds to the figures."""
    added: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    of_day = added[booking.day.isoformat()]
    of_day[status(LAPSED if booking.has_lapsed else booking.status)] += 1
    if not booking.has_lapsed:
        of_day[BOOKINGS] += 1
        of_day[f"{SOURCE}:{booking.source}:{BOOKINGS}"] += 1
    if booking.status in TAKES_PLACE:
        sold = {VISITS: 1, REVENUE: booking.price, MINUTES: booking.minutes}
        for measure, number in sold.items():
            of_day[measure] += number
            of_day[f"{SERVICE}:{booking.service_id}:{measure}"] += number
            of_day[f"{RESOURCE}:{booking.resource_id}:{measure}"] += number
        of_day[f"{SOURCE}:{booking.source}:{REVENUE}"] += booking.price
        if booking.client_id is not None:
            of_day[f"{CLIENT}:{client_hash(booking.client_id)}:{VISITS}"] += 1
    of_day[DUE] += booking.due
    for day, measure, amount in booking.money:
        added[day.isoformat()][measure] += amount
    return without_zeros(added)


def client_hash(client_id: str) -> str:
    """Return what stands for a client in the sums.

    >>> len(client_hash("01JHMF7A2B3C4D5E6F7G8H9JKM"))
    8
    """
    return urlsafe_b64encode(
        hashlib.blake2b(client_id.encode(), digest_size=_HASH_BYTES).digest()
    ).decode()


def without_zeros(counts: Mapping[str, Mapping[str, int]]) -> Counts:
    """Return the numbers that are not zero.

    >>> without_zeros({"2027-01-15": {"paid": 0, "due": 5}, "2027-01-16": {"due": 0}})
    {'2027-01-15': {'due': 5}}
    """
    kept = {
        day: {measure: number for measure, number in numbers.items() if number}
        for day, numbers in counts.items()
    }
    return {day: numbers for day, numbers in kept.items() if numbers}


def difference(former: Counts, new: Counts) -> Counts:
    """Return what must be added to the sums when a booking changes."""
    return without_zeros(
        {
            day: {
                measure: new.get(day, {}).get(measure, 0) - former.get(day, {}).get(measure, 0)
                for measure in {*new.get(day, ()), *former.get(day, ())}
            }
            for day in {*former, *new}
        }
    )


def add(sums: Counts, change: Counts) -> Counts:
    """Return sums with a change.

    >>> add({"2027-01-15": {"due": 5}}, {"2027-01-15": {"due": -5, "paid": 5}})
    {'2027-01-15': {'paid': 5}}
    """
    total: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for counts in (sums, change):
        for day, numbers in counts.items():
            for measure, number in numbers.items():
                total[day][measure] += number
    return without_zeros(total)


def week_of(day: date) -> date:
    """Return the Monday of the week of a day.

    >>> week_of(date(2027, 1, 15))
    datetime.date(2027, 1, 11)
    """
    return day - timedelta(days=day.weekday())


def by_week(counts: Counts) -> dict[str, Counts]:
    """Divide numbers by the Monday of their week."""
    weeks: dict[str, Counts] = {}
    for day, numbers in counts.items():
        monday = week_of(date.fromisoformat(day)).isoformat()
        weeks.setdefault(monday, {})[day] = numbers
    return weeks


class Figures:
    """The totals of a period, from the sums of its days."""

    def __init__(self, days: Iterable[Mapping[str, int]]) -> None:
        self.totals: defaultdict[str, int] = defaultdict(int)
        # By kind, id and measure.
        self.parts: defaultdict[str, defaultdict[str, defaultdict[str, int]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(int))
        )
        for numbers in days:
            for measure, number in numbers.items():
                kind, _, rest = measure.partition(":")
                if rest and kind in _ID_KINDS:
                    part_id, _, measure_of_part = rest.rpartition(":")
                    self.parts[kind][part_id][measure_of_part] += number
                else:
                    self.totals[measure] += number

    @property
    def clients(self) -> set[str]:
        """The clients who have a visit, as hashes."""
        return {client for client, numbers in self.parts[CLIENT].items() if numbers[VISITS]}


def totals_of(days: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the totals of some days, without those of their parts."""
    totals: defaultdict[str, int] = defaultdict(int)
    for numbers in days:
        for measure, number in numbers.items():
            if ":" not in measure:
                totals[measure] += number
    return totals


def clients_before(days: Mapping[str, Mapping[str, int]], first: date) -> set[str]:
    """Return the clients who have a visit before a day, as hashes."""
    return set(_clients(numbers for day, numbers in days.items() if day < first.isoformat()))


def _clients(days: Iterable[Mapping[str, int]]) -> Iterator[str]:
    for numbers in days:
        for measure in numbers:
            if measure.startswith(f"{CLIENT}:"):
                yield measure.split(":")[1]

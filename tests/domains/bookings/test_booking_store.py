"""Lists and counts of bookings, compared with a naive model, and the rows of a calendar day."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.bookings.store import booked_times, calendar_days
from chalicelib.domains.bookings.store.bookings import BLOCKING, BOOKINGS, STATUSES, BookingRow
from chalicelib.domains.bookings.store.calendar_days import (
    CalendarDayRow,
    CalendarDays,
    DayFullError,
)
from chalicelib.engine.listing import queries
from chalicelib.engine.listing.query import Query
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib.spans import Span
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time
from tests.factories.salon import Salon
from tests.support.effort import slow_but_for

pytestmark = pytest.mark.store

WORKSPACE = "w"
BEGUN = datetime(2027, 3, 1, 9, tzinfo=UTC)
HOUR = 3_600_000


def new_booking(number: int, dice: random.Random) -> BookingRow:
    start = BEGUN + timedelta(hours=dice.randrange(24 * 20))
    minutes = dice.choice([30, 60, 1440])
    return BOOKINGS.new(
        WORKSPACE,
        status=dice.choice(STATUSES),
        service_id=dice.choice(["s1", "s2"]),
        service_name="Cut",
        resource_id=dice.choice(["r1", "r2", "r3"]),
        resource_name="Ada",
        starts_at=start,
        ends_at=start + timedelta(minutes=minutes),
        duration_min=minutes,
        timezone="Europe/Moscow",
        price=0,
        client_id=dice.choice(["c1", "c2", "c3"]),
        client_name=f"{dice.choice(['Ёлкина', 'Ada', 'Bob'])} {number}",
        client_phone=f"+7495123456{number % 10}",
        phone_digits=f"8495123456{number % 10}",
        source="api",
    )


@pytest.fixture
def rows(database: None) -> list[BookingRow]:
    """Forty bookings, created one minute apart."""
    dice = random.Random(7)
    booking_rows = []
    for number in range(40):
        with clock.using(lambda number=number: BEGUN + timedelta(minutes=number)):
            row = new_booking(number, dice)
            run_unit(WORKSPACE, None, lambda unit, row=row: unit.create(row))
        booking_rows.append(row)
    return booking_rows


@pytest.fixture(params=[False, True], ids=["small", "large"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(queries, "SMALL_ROWS", 3)
        monkeypatch.setattr(queries, "CONSISTENT_ROWS", 8)
        monkeypatch.setattr(queries, "FETCHED_SKIP", 2)


def expected(rows: list[BookingRow], query: Query) -> list[str]:
    matches = rows
    for name, value in query.filters.items():
        matches = [row for row in matches if value is None or getattr(row, name) == value]
    first, last = query.ranges.get("starts_at", (None, None))
    matches = [row for row in matches if first is None or row.starts_at >= first]
    matches = [row for row in matches if last is None or row.starts_at <= last]
    if query.search:
        matches = [
            row
            for row in matches
            if any(
                query.search in text
                for text in (
                    row.client_name.lower().replace("ё", "е"),
                    row.client_phone,
                    row.phone_digits,
                )
            )
        ]
    keys = {
        "startAt": lambda row: (row.starts_at, row.id),
        "createdAt": lambda row: (row.id,),
    }
    return [row.id for row in sorted(matches, key=keys[query.sort], reverse=query.descending)]


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("seed", slow_but_for([8], range(8, 11)))
def test_pages_match_a_naive_model(rows: list[BookingRow], seed: int) -> None:
    dice = random.Random(seed)
    charged: list[int] = []
    for _ in range(30):
        first, last = (
            dice.choice([None, BEGUN + timedelta(hours=dice.randrange(-5, 24 * 21))])
            for _ in range(2)
        )
        filters: dict[str, Any] = {
            "status": dice.choice([None, None, *STATUSES]),
            "service_id": dice.choice([None, None, "s1", "none"]),
            "resource_id": dice.choice([None, None, "r1", "r2"]),
            "client_id": dice.choice([None, None, None, "c1"]),
        }
        for page in (1, 2, 3):
            query = Query(
                page=page,
                size=dice.choice([3, 7]),
                sort=dice.choice(["startAt", "createdAt"]),
                descending=dice.random() < 0.5,
                filters=filters,
                ranges={"starts_at": (first, last)},
                search=dice.choice([None, None, "елкина", "4951234567", "8495123"]),
                charge=charged.append,
            )
            listing = BOOKINGS.page(WORKSPACE, query)
            ids = expected(rows, query)
            part = ids[query.offset : query.offset + query.size]
            assert ([row.id for row in listing.records], listing.total) == (part, len(ids)), query


def test_upcoming_bookings_are_counted_and_conflicting_ones_named(rows: list[BookingRow]) -> None:
    now = BEGUN + timedelta(days=10)
    ahead = [
        row for row in rows if row.starts_at >= now and row.status in {"confirmed", BLOCKING[0]}
    ]
    with clock.using(lambda: now):
        for value in ("s1", "s2"):
            assert booked_times.future_count(WORKSPACE, service_id=value) == len(
                [row for row in ahead if row.service_id == value]
            )
        for value in ("r1", "none"):
            assert booked_times.future_count(WORKSPACE, resource_id=value) == len(
                [row for row in ahead if row.resource_id == value]
            )
    first, last = epoch_ms(now), epoch_ms(now) + 50 * HOUR
    for resource_ids in (None, ["r1"], ["r1", "r3", "none"]):
        matching = sorted(
            (epoch_ms(row.starts_at), row.id)
            for row in rows
            if row.blocks
            and (resource_ids is None or row.resource_id in resource_ids)
            and epoch_ms(row.starts_at) < last
            and epoch_ms(row.ends_at) > first
        )
        blocking = booked_times.blocking_between(WORKSPACE, resource_ids, first, last, 2)
        assert blocking == ([row for _, row in matching][:2], len(matching))
        assert matching or resource_ids == ["r1"]


class TestCalendarDays:
    ENTRY = BusyEntry("b1", 0, 24 * HOUR, 480, 480, 5)

    def test_a_booking_with_buffers_is_entered_in_every_day_it_overlaps(
        self, database: None
    ) -> None:
        self.write(lambda days: days.add("r", self.ENTRY), self.ENTRY.buffered)
        entries_by_day = calendar_days.read_all(WORKSPACE, "r")
        assert list(entries_by_day) == ["1969-12-31", "1970-01-01", "1970-01-02"]
        assert list(entries_by_day.values()) == [[self.ENTRY]] * 3
        busy = calendar_days.read(WORKSPACE, "r", Span(0, 48 * HOUR))
        assert busy == [self.ENTRY]

    def test_an_emptied_day_keeps_counting_its_version(self, database: None) -> None:
        self.write(lambda days: days.add("r", self.ENTRY), self.ENTRY.buffered)
        self.write(lambda days: days.remove("r", self.ENTRY), self.ENTRY.buffered)
        assert set(map(tuple, calendar_days.read_all(WORKSPACE, "r").values())) == {()}
        busy = calendar_days.read(WORKSPACE, "r", Span(0, 1))
        assert busy == []
        row = CalendarDayRow.find("W#w#CALENDAR#r", "1970-01-01")
        assert row is not None
        assert row.version == 2

    def test_a_day_holds_3000_entries_of_at_most_64_bytes(self) -> None:
        day = CalendarDayRow("p", "s")
        start = epoch_ms(datetime(2100, 1, 1, tzinfo=UTC))
        longest = BusyEntry("0" * 26, start, start + 24 * HOUR, 480, 480, start + 999)
        day.entries = "\n".join(
            calendar_days._line(longest._replace(booking_id=f"{number:026}"))
            for number in range(3000)
        )
        assert len(day.entries) <= 3000 * 64
        day.put(longest._replace(until=None))
        assert day.busy[-1] == longest._replace(until=None)
        with pytest.raises(DayFullError):
            day.put(longest._replace(booking_id="other"))

    @staticmethod
    def write(change: Any, span: Span) -> None:
        def stage(unit: UnitOfWork) -> None:
            days = CalendarDays(WORKSPACE, [("r", span)])
            change(days)
            days.stage(unit)

        run_unit(WORKSPACE, None, stage)


@pytest.mark.parametrize("count", [1, 10])
def test_slots_of_31_days_cost_one_query_and_20_units_a_resource(
    count: int, api: Api, owner: Owner, time: Time, is_dynamodb_local: bool
) -> None:
    """Each resource has 500 bookings. The key, service, resources and time off are not counted."""
    salon = Salon.opened(api, [{"timezone": "UTC"}] * count, horizonDays=365)
    monday = datetime(2027, 3, 1, tzinfo=UTC)
    for resource in salon.resources:
        for day in range(31):
            begin = monday + timedelta(days=day, hours=9)
            entries = [
                BusyEntry(f"{day:013}{number:013}", start, start + HOUR // 4)
                for number, start in enumerate(
                    epoch_ms(begin + timedelta(minutes=30 * n)) for n in range(16 + day % 2)
                )
            ]
            pk = f"W#{owner.workspace.id}#CALENDAR#{resource}"
            row = CalendarDayRow(pk, f"{begin:%Y-%m-%d}")
            for entry in entries:
                row.put(entry)
            run_unit(owner.workspace.id, None, lambda unit, row=row: unit.create(row))
    with metering() as usage:
        response = salon.search(first="2027-03-01", to="2027-03-31")
    assert response["slots"]
    request_counts = Counter(usage.calls)
    assert request_counts == {"GetItem": 2, "BatchGetItem": 1, "Query": 1 + count}
    if is_dynamodb_local:
        assert usage.units <= 20 * count

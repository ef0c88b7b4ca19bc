"""Rows of calendar days, and what reading them costs."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.calendar_days import (
    CalendarDayRow,
    CalendarDays,
    DayFullError,
)
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib.spans import Span
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time
from tests.factories.salon import Salon

pytestmark = pytest.mark.store
WORKSPACE = "w"
HOUR = 3_600_000


class TestCalendarDays:
    ENTRY = BusyEntry("b1", 0, 24 * HOUR, 480, 480, 5)

    def test_a_booking_with_buffers_is_entered_in_every_day_it_overlaps(
        self, database: None
    ) -> None:
        self.write(lambda days: days.add("r", self.ENTRY), self.ENTRY.buffered)
        entries_by_day = calendar_days.read_all(WORKSPACE, resource_id="r")
        assert list(entries_by_day) == ["1969-12-31", "1970-01-01", "1970-01-02"]
        assert list(entries_by_day.values()) == [[self.ENTRY]] * 3
        busy = calendar_days.read(WORKSPACE, resource_id="r", span=Span(0, 48 * HOUR))
        assert busy == ([self.ENTRY], [], [])

    def test_an_emptied_day_keeps_counting_its_version(self, database: None) -> None:
        self.write(lambda days: days.add("r", self.ENTRY), self.ENTRY.buffered)
        self.write(lambda days: days.remove("r", self.ENTRY), self.ENTRY.buffered)
        assert set(map(tuple, calendar_days.read_all(WORKSPACE, resource_id="r").values())) == {()}
        busy = calendar_days.read(WORKSPACE, resource_id="r", span=Span(0, 1))
        assert busy == ([], [], [])
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

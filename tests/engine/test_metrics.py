"""Daily counters add up exactly, also under concurrency."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ConcurrentUpdateError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import JobKind
from chalicelib.engine import jobs, metrics
from chalicelib.engine.metrics import OTHER, Increments
from chalicelib.engine.reading import Cost
from chalicelib.engine.unit import UnitOfWork
from infra.bench.dynamodb.usage import metering
from tests.conftest import run_concurrently
from tests.fakes.dynamodb_faults import busy_row, failing, throttled
from tests.support.effort import examples, slow_but_for

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

DAY = date(2027, 3, 14)


@pytest.fixture
def workspace() -> str:
    return new_id()


def count(workspace: str, measures: dict[str, int], day: date = DAY, **values: Any) -> None:
    increments = Increments(workspace)
    increments.add("site", day, measures, **values)
    increments.write()


def one_day(workspace: str, day: date = DAY, subject: str = "site") -> metrics.DayCounts:
    return metrics.read(workspace, subject=subject, first=day, last=day)[day]


def plain(counts: metrics.DayCounts) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    return dict(counts.totals), {
        dimension: {value: dict(measures) for value, measures in values.items()}
        for dimension, values in counts.by_dimension.items()
    }


class TestCounting:
    def test_the_total_and_every_given_value_are_counted(self, workspace: str) -> None:
        count(workspace, {"views": 1, "visitors": 1}, page="/", referrer="example.com")
        count(workspace, {"views": 2}, page="/")
        count(workspace, {"views": 1}, page="/bread", referrer=None)
        assert plain(one_day(workspace)) == (
            {"views": 4, "visitors": 1},
            {
                "page": {"/": {"views": 3, "visitors": 1}, "/bread": {"views": 1}},
                "referrer": {"example.com": {"views": 1, "visitors": 1}},
            },
        )

    def test_subjects_workspaces_and_days_are_counted_separately(self, workspace: str) -> None:
        increments = Increments(workspace)
        increments.add("crm", DAY, {"created": 1}, source="a")
        increments.add("form#1", DAY, {"created": 2}, source="b")
        increments.add("crm", DAY + timedelta(1), {"created": 4})
        increments.write()
        assert plain(one_day(workspace, subject="crm")) == (
            {"created": 1},
            {"source": {"a": {"created": 1}}},
        )
        assert one_day(workspace, subject="form#1").totals == {"created": 2}
        assert one_day(workspace, DAY + timedelta(1), "crm").totals == {"created": 4}
        assert one_day(new_id(), subject="crm").totals == {}

    def test_a_count_can_be_decremented_again(self, workspace: str) -> None:
        """A lead changes its status.

        On the day of its creation, one count falls and another rises.
        """
        for _ in range(20):
            count(workspace, {"created": 1, "status:new": 1}, source="ad")
        for status in ("completed", "rejected"):
            for _ in range(10):
                count(workspace, {"status:new": -1, f"status:{status}": 1}, source="ad")
        expected = {"created": 20, "status:completed": 10, "status:rejected": 10}
        assert plain(one_day(workspace)) == (expected, {"source": {"ad": expected}})

    def test_increments_of_one_operation_are_combined(self, workspace: str) -> None:
        increments = Increments(workspace)
        for number in (5, 7, -12, 1):
            increments.add("site", DAY, {"tokens": number}, model="demo")
        with metering() as usage:
            increments.write()
        assert usage.calls.count("UpdateItem") == 2  # the value's position, and the count
        assert one_day(workspace).totals == {"tokens": 1}

    def test_increments_that_cancel_out_are_not_written(self, workspace: str) -> None:
        with metering() as usage:
            count(workspace, {"views": 0})
        assert usage.calls == []

    @pytest.mark.parametrize(
        "value", ["", "other", "#", "a#b", "pk", "0", "Ж" * 600, "\ud800", "x" * 511 + "Ж", "'; --"]
    )
    def test_any_text_may_be_a_value(self, value: str, workspace: str) -> None:
        for _ in range(2):
            count(workspace, {"views": 1}, page=value)
        ((stored_value, measures),) = one_day(workspace).by_dimension["page"].items()
        assert measures == {"views": 2}
        assert stored_value == value or len(stored_value.encode()) <= metrics.MAX_VALUE_BYTES

    def test_values_with_the_same_first_512_bytes_count_as_one(self, workspace: str) -> None:
        count(workspace, {"views": 1}, page="x" * 512 + "a")
        count(workspace, {"views": 1}, page="x" * 512 + "b")
        assert one_day(workspace).by_dimension["page"] == {"x" * 512: {"views": 2}}


class TestManyValues:
    def test_a_hundred_values_are_counted_separately_and_the_rest_as_other(
        self, workspace: str
    ) -> None:
        for number in range(130):
            count(workspace, {"views": 1}, page=f"/{number}", referrer="one")
        for _ in range(3):
            count(workspace, {"views": 1}, page="/129")
            count(workspace, {"views": 1}, page="/99")
        counts = one_day(workspace)
        pages = counts.by_dimension["page"]
        assert len(pages) == metrics.MAX_VALUES + 1
        assert pages[OTHER] == {"views": 33}
        assert pages["/99"] == {"views": 4}
        assert sum(m["views"] for m in pages.values()) == counts.totals["views"] == 136
        assert counts.by_dimension["referrer"] == {"one": {"views": 130}}

    @pytest.mark.slow
    @pytest.mark.slow
    def test_a_dimension_may_have_another_limit(self, workspace: str) -> None:
        for start in range(0, 230, 46):
            increments = Increments(workspace)
            for number in range(start, start + 46):
                increments.add("bot", DAY, {"opened": 1}, max_values=200, url=f"/{number}")
            increments.write()
        urls = one_day(workspace, subject="bot").by_dimension["url"]
        assert len(urls) == 201
        assert urls[OTHER] == {"opened": 30}

    def test_each_day_has_its_own_values(self, workspace: str) -> None:
        for day in (DAY, DAY + timedelta(1)):
            for number in range(3):
                count(workspace, {"views": 1}, day, max_values=2, page=f"/{day}/{number}")
        for day in (DAY, DAY + timedelta(1)):
            values = {f"/{day}/0", f"/{day}/1", OTHER}
            assert one_day(workspace, day).by_dimension["page"].keys() == values

    def test_a_count_made_as_other_is_decremented_from_other(self, workspace: str) -> None:
        for number in range(4):
            count(workspace, {"created": 1}, max_values=2, source=f"s{number}")
        metrics.clear_value_cache()  # as in another process
        for number in range(4):
            count(workspace, {"created": -1}, max_values=2, source=f"s{number}")
        assert plain(one_day(workspace)) == ({}, {})

    def test_a_flood_of_invented_values_costs_one_write_each(self, workspace: str) -> None:
        for number in range(5):
            count(workspace, {"views": 1}, max_values=5, source=f"{number}")
        with metering() as usage:
            for number in range(100, 120):
                count(workspace, {"views": 1}, max_values=5, source=f"{number}")
        assert usage.calls == ["UpdateItem"] * 20


class TestUnitOfWork:
    def stage(self, workspace: str, unit: UnitOfWork) -> None:
        increments = Increments(workspace)
        increments.add("site", DAY, {"views": 1}, page="/")
        increments.add("crm", DAY, {"created": 1})
        increments.stage(unit)

    def test_counters_are_written_with_the_transaction(self, workspace: str) -> None:
        unit = UnitOfWork(workspace, "test")
        unit.create(jobs.row(JobKind("tidy"), workspace, {}))
        self.stage(workspace, unit)
        assert one_day(workspace).totals == {}
        unit.commit()
        assert plain(one_day(workspace)) == ({"views": 1}, {"page": {"/": {"views": 1}}})
        assert one_day(workspace, subject="crm").totals == {"created": 1}

    def test_counters_stay_unchanged_when_the_transaction_fails(self, workspace: str) -> None:
        unit = UnitOfWork(workspace, "test")
        unit.require(jobs.ref(JobKind("tidy"), clock.now(), "missing"))
        self.stage(workspace, unit)
        with pytest.raises(ConcurrentUpdateError):
            unit.commit()
        assert plain(one_day(workspace)) == ({}, {})

    def test_counters_take_one_item_per_subject_and_day(self, workspace: str) -> None:
        unit = UnitOfWork(workspace, "test")
        increments = Increments(workspace)
        for number in range(50):
            increments.add("site", DAY, {"views": 1, "visitors": 1}, page=f"/{number}", source="a")
        increments.stage(unit)
        assert len(unit._transaction.staged) == 1


class TestConcurrency:
    SOURCES = 40
    LIMIT = 15

    @pytest.mark.parametrize("how", slow_but_for(["write"], ["unit", "write"]))
    def test_thirty_threads_count_exactly(self, how: str, workspace: str) -> None:
        def work(thread: int) -> None:
            for turn in range(10):
                increments = Increments(workspace)
                source = f"s{(thread * 7 + turn) % self.SOURCES}"
                increments.add(
                    "crm",
                    DAY,
                    {"created": 1, "status:new": 2, "status:completed": -1},
                    max_values=self.LIMIT,
                    source=source,
                    page="/",
                )
                if how == "write":
                    increments.write()
                else:
                    unit = UnitOfWork(workspace, "test")
                    increments.stage(unit)
                    unit.commit()

        run_concurrently(30, work)
        counts = one_day(workspace, subject="crm")
        assert counts.totals == {"created": 300, "status:new": 600, "status:completed": -300}
        assert counts.by_dimension["page"] == {"/": counts.totals}
        sources = counts.by_dimension["source"]
        assert len(sources) == self.LIMIT + 1
        expected_counts = Counter[str]()
        for measures in sources.values():
            expected_counts.update(measures)
        assert expected_counts == counts.totals
        expected = Counter(f"s{(t * 7 + n) % self.SOURCES}" for t in range(30) for n in range(10))
        for source in sources.keys() - {OTHER}:
            assert sources[source]["created"] == expected[source]

    def test_independent_processes_agree_on_the_positions_of_values(
        self, workspace: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metrics, "_cached_values", lru_cache(maxsize=0)(lambda *_: {}))

        def work(thread: int) -> None:
            count(workspace, {"views": 1}, max_values=8, page=f"/{thread % 12}")

        run_concurrently(24, work)
        pages = one_day(workspace).by_dimension["page"]
        assert len(pages) == 9
        assert pages.pop(OTHER) == {"views": 8}
        assert all(measures == {"views": 2} for measures in pages.values())

    def test_the_shards_share_the_load(self, workspace: str) -> None:
        for _ in range(60):
            count(workspace, {"views": 1})
        pk = f"W#{workspace}#METRICS#site"
        assert metrics.MetricsRow.count(pk) == metrics.SHARDS

    def test_a_transaction_conflict_is_retried(
        self,
        workspace: str,
        pauses: list[float],
    ) -> None:
        with failing("UpdateItem", 3, busy_row):
            count(workspace, {"views": 1})
        assert len(pauses) == 3
        assert one_day(workspace).totals == {"views": 1}

    def test_a_failing_database_is_reported_as_such(self, workspace: str) -> None:
        for operation in ("UpdateItem", "GetItem"):
            with failing(operation, 100, throttled), pytest.raises(AppError) as caught:
                count(workspace, {"views": 1}, page="/")
            assert caught.value.status == 503


class TestReading:
    def test_every_day_of_the_period_is_returned(self, workspace: str) -> None:
        count(workspace, {"views": 3}, DAY)
        first, last = DAY - timedelta(2), DAY + timedelta(1)
        for outside in (first - timedelta(1), last + timedelta(1)):
            count(workspace, {"views": 100}, outside)
        days = metrics.read(workspace, subject="site", first=first, last=last)
        assert [(str(day), counts.totals["views"]) for day, counts in days.items()] == [
            ("2027-03-12", 0),
            ("2027-03-13", 0),
            ("2027-03-14", 3),
            ("2027-03-15", 0),
        ]

    def test_days_add_up(self, workspace: str) -> None:
        for number in range(5):
            count(workspace, {"views": 1}, DAY + timedelta(number), page=f"/{number % 2}")
        days = metrics.read(workspace, subject="site", first=DAY, last=DAY + timedelta(10))
        assert plain(metrics.total(days.values())) == (
            {"views": 5},
            {"page": {"/0": {"views": 3}, "/1": {"views": 2}}},
        )

    def test_a_year_is_read_in_one_query(self, workspace: str, is_dynamodb_local: bool) -> None:
        for number in range(0, 366, 3):
            count(workspace, {"views": 1}, DAY + timedelta(number), page=f"/{number % 20}")
        cost = Cost()
        with metering() as usage:
            days = metrics.read(
                workspace, subject="site", first=DAY, last=DAY + timedelta(365), cost=cost
            )
        assert metrics.total(days.values()).totals == {"views": 122}
        assert usage.calls == ["Query"]
        if is_dynamodb_local:
            assert usage.units <= 15


ZONES = [
    "UTC",
    "Europe/Moscow",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/St_Johns",
]


class TestDays:
    @pytest.mark.parametrize(
        ("zone", "moment", "day"),
        [
            ("Europe/Moscow", "2027-03-13T20:59:59.999", "2027-03-13"),
            ("Europe/Moscow", "2027-03-13T21:00:00", "2027-03-14"),
            (
                "America/New_York",
                "2027-03-14T04:59:59",
                "2027-03-13",
            ),  # the clocks change on that day
            ("America/New_York", "2027-03-14T05:00:00", "2027-03-14"),
            ("America/New_York", "2027-03-15T03:59:59", "2027-03-14"),
            ("America/New_York", "2027-03-15T04:00:00", "2027-03-15"),
            (
                "Africa/Cairo",
                "2027-04-29T21:59:59",
                "2027-04-29",
            ),  # midnight is skipped on that day
            ("Africa/Cairo", "2027-04-29T22:00:00", "2027-04-30"),
            ("Pacific/Kiritimati", "2027-03-13T10:00:00", "2027-03-14"),
        ],
    )
    def test_days_begin_at_midnight_of_their_zone(self, zone: str, moment: str, day: str) -> None:
        instant = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        assert str(clock.local_day(instant, zone)) == day


MIDNIGHTS = [datetime(2027, 3, 14, hour, tzinfo=UTC) for hour in (0, 4, 5, 13, 21, 22)]
moments = st.builds(
    lambda midnight, seconds: midnight + timedelta(seconds=seconds),
    st.sampled_from(MIDNIGHTS),
    st.integers(-2, 2) | st.integers(-90_000, 90_000),
)
sources = st.sampled_from([None, *"abcde"])
moves = st.lists(st.sampled_from(["new", "completed", "rejected", None]), max_size=4)
"""The statuses that a lead gets after its first one. None deletes it."""


@given(zone=st.sampled_from(ZONES), leads=st.lists(st.tuples(moments, sources, moves), max_size=12))
@examples(40)
def test_statistics_equal_a_naive_recount(zone: str, leads: list[Any]) -> None:
    """Leads arrive on days in any order, change their status often, and some are deleted."""
    workspace, limit = new_id(), 3
    histories = [(clock.local_day(at, zone), source, moves) for at, source, moves in leads]
    for day, source, moves in histories:
        count(workspace, {"created": 1, "status:new": 1}, day, max_values=limit, source=source)
        for status_before, status in pairwise(["new", *moves]):
            step = Counter({"created": -1} if status is None else {f"status:{status}": 1})
            step[f"status:{status_before}"] -= 1
            unit, increments = UnitOfWork(workspace, "test"), Increments(workspace)
            increments.add("site", day, step, max_values=limit, source=source)
            increments.stage(unit)
            unit.commit()
            if status is None:
                break
    expected: Counter[tuple[Any, ...]] = Counter()
    days = metrics.read(workspace, subject="site", first=date(2027, 3, 10), last=date(2027, 3, 18))
    for day, counts in days.items():
        expected.update({(day, measure): n for measure, n in counts.totals.items()})
        for source, measures in counts.by_dimension["source"].items():
            expected.update({(day, source, measure): n for measure, n in measures.items()})
    assert expected == recount(histories, limit)


def recount(histories: list[Any], limit: int) -> Counter[tuple[Any, ...]]:
    """Count the remaining leads one by one."""
    visitors_by_day: defaultdict[date, list[str]] = defaultdict(list)
    expected: Counter[tuple[Any, ...]] = Counter()
    for day, source, moves in histories:
        if source and source not in visitors_by_day[day] and len(visitors_by_day[day]) < limit:
            visitors_by_day[day].append(source)
        if None not in moves:
            for measure in ("created", f"status:{['new', *moves][-1]}"):
                expected[day, measure] += 1
                if source:
                    expected[day, source if source in visitors_by_day[day] else OTHER, measure] += 1
    return expected

"""The starts at which a visit is repeated, at the same local time whatever the clocks do."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.bookings.rules import repeats

BERLIN = "Europe/Berlin"


def test_four_weeks_over_a_change_of_clocks_keep_the_time_of_day() -> None:
    start = datetime(2027, 3, 3, 11, tzinfo=UTC)  # 12:00 in Berlin
    assert repeats.start_after(start, 4, BERLIN) == datetime(2027, 3, 31, 10, tzinfo=UTC)


def test_a_time_that_the_clocks_skip_is_replaced_by_a_near_one() -> None:
    start = datetime(2027, 3, 21, 1, 30, tzinfo=UTC)  # 2:30; a week later 2:30 does not exist
    later = repeats.start_after(start, 1, BERLIN)
    assert abs(later - start - timedelta(weeks=1)) <= timedelta(hours=1)


def test_times_that_have_passed_are_not_offered() -> None:
    start = datetime(2027, 3, 3, 11, tzinfo=UTC)
    # Three weeks after a start in winter, the clocks have not changed yet.
    for passed in (timedelta(weeks=3), timedelta(weeks=3, hours=1)):
        offered = repeats.offered(start, BERLIN, now=start + passed)
        assert [repeat.weeks for repeat in offered] == [4, 6, 8]


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001  made aware below
    st.sampled_from([BERLIN, "Europe/Moscow", "America/New_York", "Australia/Lord_Howe"]),
    st.sampled_from(repeats.WEEKS),
)
def test_the_weekday_and_the_time_stay(start: datetime, timezone: str, weeks: int) -> None:
    zone = ZoneInfo(timezone)
    before = start.replace(tzinfo=UTC).astimezone(zone)
    after = repeats.start_after(before, weeks, timezone).astimezone(zone)
    expected = before.replace(tzinfo=None) + timedelta(weeks=weeks)
    # Only a time that the clocks skip is replaced, by less than two hours.
    exists = expected == expected.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(
        tzinfo=None
    )
    if exists:
        assert after.replace(tzinfo=None) == expected
    else:
        assert abs(after.replace(tzinfo=None) - expected) <= timedelta(hours=1)

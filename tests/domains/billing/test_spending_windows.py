"""Tests of spending windows, which are days, ISO weeks and months of a time zone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.billing.rules.spending_windows import (
    WINDOWS,
    becomes_low,
    seconds_left,
    window_end,
    window_keys,
)

ZONES = ["Europe/Moscow", "UTC", "America/New_York", "Africa/Cairo", "Pacific/Kiritimati"]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


moments = st.floats(0, 1000).map(lambda days: utc("2026-01-01T00:00:00") + timedelta(days=days))


@pytest.mark.parametrize(
    ("moment", "keys"),
    [
        ("2027-01-15T12:00:00", ("2027-01-15", "2027-W02", "2027-01")),
        ("2026-12-31T20:59:59", ("2026-12-31", "2026-W53", "2026-12")),
        ("2026-12-31T21:00:00", ("2027-01-01", "2026-W53", "2027-01")),
        ("2027-01-03T20:59:59", ("2027-01-03", "2026-W53", "2027-01")),
        ("2027-01-03T21:00:00", ("2027-01-04", "2027-W01", "2027-01")),
    ],
)
def test_a_moment_lies_in_the_windows_of_its_zone(moment: str, keys: tuple[str, ...]) -> None:
    assert window_keys(utc(moment), "Europe/Moscow") == keys


@given(
    moments,
    st.sampled_from(ZONES),
)
def test_a_window_includes_its_last_second(moment: datetime, zone: str) -> None:
    now = window_keys(moment, zone)
    for number, window in enumerate(WINDOWS):
        seconds = seconds_left(window, moment, zone)
        key_after = window_keys(moment + timedelta(seconds=seconds), zone)[number]
        key_before = window_keys(moment + timedelta(seconds=seconds - 1.001), zone)[number]
        assert key_after > now[number]
        assert key_before == now[number] or seconds == 1


@given(moments, st.sampled_from(ZONES))
def test_the_end_of_a_window_is_the_first_moment_of_the_next(moment: datetime, zone: str) -> None:
    keys = window_keys(moment, zone)
    for number, window in enumerate(WINDOWS):
        end = window_end(window, keys[number], timezone=zone)
        assert end > moment
        assert window_keys(end - timedelta(milliseconds=1), zone)[number] == keys[number]
        assert window_keys(end, zone)[number] > keys[number]


@given(
    moments,
    st.timedeltas(timedelta(0), timedelta(days=40)),
    st.sampled_from(ZONES),
)
def test_later_windows_have_greater_keys(moment: datetime, later: timedelta, zone: str) -> None:
    keys = zip(window_keys(moment, zone), window_keys(moment + later, zone), strict=True)
    assert all(first <= second for first, second in keys)


@pytest.mark.parametrize(
    ("old_balance", "new_balance", "becomes"),
    [
        (10_001, 10_000, False),
        (10_000, 9_999, True),
        (9_999, 1_000, False),
        (1_000, 999, True),
        (999, 0, False),
        (20_000, 0, True),
    ],
)
def test_a_balance_becomes_low_once_as_it_falls_below_each_amount(
    old_balance: int, new_balance: int, *, becomes: bool
) -> None:
    assert becomes_low(old_balance, balance_after=new_balance) == becomes


@pytest.mark.parametrize(("offset", "seconds"), [(0.5, 1), (1, 1), (1.5, 2), (86_400, 86_400)])
def test_the_seconds_to_the_next_window_are_rounded_up(offset: float, seconds: int) -> None:
    moment = utc("2027-01-15T21:00:00") - timedelta(seconds=offset)
    assert seconds_left("daily", moment, "Europe/Moscow") == seconds

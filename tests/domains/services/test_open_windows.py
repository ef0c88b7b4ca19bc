"""Tests of opening hours. Valid rules in any spelling become one schedule; errors name the rule."""

from datetime import date
from typing import Any

import pytest

from chalicelib.domains.services.rules.open_windows import (
    Interval,
    Rule,
    Schedule,
    ScheduleError,
    canonical,
    fits,
    parse,
    windows,
)
from chalicelib.lib.spans import Span
from chalicelib.lib.zoned_times import WEEKDAYS

DAY = date(2027, 2, 5)


def rule(*intervals: str, **more: Any) -> Rule:
    return Rule(intervals=[Interval(*interval.split("-")) for interval in intervals], **more)


def format_rules(*rules: Rule) -> list[str]:
    """Return canonical rules as strings."""
    return [
        f"{day.weekday or day.date}: " + " ".join(map("-".join, day.intervals or ()))
        for day in canonical(parse(rules))
    ]


@pytest.mark.parametrize(
    ("weekday", "name"),
    [
        (0, "sun"),
        (1, "mon"),
        (6, "sat"),
        (7, "sun"),
        ("mon", "mon"),
        (" Fri", "fri"),
        ("SUNDAY", "sun"),
        ("thursday", "thu"),
        ("0", "sun"),
        ("3", "wed"),
        (" 7", "sun"),
    ],
)
def test_weekdays_may_be_names_or_numbers(weekday: int | str, name: str) -> None:
    assert format_rules(rule("9:00-18:00", weekday=weekday)) == [f"{name}: 09:00-18:00"]


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        (["09:00-18:00"], "09:00-18:00"),
        (["14:00-18:00", "09:00-13:00"], "09:00-13:00 14:00-18:00"),
        (["09:00-13:00", "13:00-18:00"], "09:00-13:00 13:00-18:00"),
        (["09:00-13:30", "13:00-18:00"], "09:00-18:00"),
        (["09:00-18:00", "10:00-11:00"], "09:00-18:00"),
        (["09:00-18:00", "09:00-18:00"], "09:00-18:00"),
        (["22:00-02:00"], "22:00-02:00"),
        (["22:00-00:00"], "22:00-24:00"),
        (["22:00-24:00"], "22:00-24:00"),
        (["00:00-24:00"], "00:00-24:00"),
        (["22:00-02:00", "23:00-03:00"], "22:00-03:00"),
        (["10:00-24:00", "23:00-09:59"], "10:00-09:59"),
        # The error names the overlap, since an end equal to the start would be an empty interval.
        (["10:00-24:00", "23:00-10:00"], "10:00-24:00 23:59-10:00"),
        (["00:00-23:59", "23:58-23:57"], "00:00-24:00 23:59-23:57"),
        (["00:00-24:00", "23:59-23:58"], "00:00-24:00 23:59-23:58"),
    ],
)
def test_intervals_of_a_date_are_sorted_and_overlapping_ones_merged(
    intervals: list[str], expected: str
) -> None:
    assert format_rules(rule(*intervals, weekday="mon")) == [f"mon: {expected}"]
    schedule = parse([rule(*intervals, date=DAY)])
    assert parse(canonical(schedule)) == schedule
    assert format_rules(*canonical(schedule)) == [f"2027-02-05: {expected}"]


def test_rules_of_the_same_weekday_are_combined() -> None:
    rules = [
        rule("09:00-13:00", weekdays=["mon", "tue", 1]),
        Rule(weekday="mon", start="12:00", end="15:00"),
        rule("18:00-20:00", weekday=2),
        rule(weekday="tue"),
        rule(weekday="wed"),
    ]
    assert format_rules(*rules) == ["mon: 09:00-15:00", "tue: 09:00-13:00 18:00-20:00"]


def test_a_date_replaces_its_weekday_and_may_be_closed() -> None:
    schedule = parse([rule("09:00-18:00", weekdays=WEEKDAYS), rule(date=DAY)])
    assert schedule.get_hours(DAY) == ()
    assert schedule.get_hours(date(2027, 2, 6)) == (Span(540, 1080),)
    assert canonical(schedule)[-1] == Rule(date=DAY, intervals=())


def test_an_empty_list_of_rules_has_no_hours() -> None:
    assert canonical(parse([])) == []
    assert not parse([]).has_hours
    assert not parse([rule(date=DAY), rule(weekday="mon")]).has_hours
    assert parse([rule("09:00-10:00", date=DAY)]).has_hours


def test_24_intervals_a_day_are_accepted() -> None:
    many = [f"{hour:02}:00-{hour:02}:30" for hour in range(24)]
    assert len(parse([rule(*many, date=DAY)]).get_hours(DAY)) == 24
    with pytest.raises(ScheduleError, match=r"^rules\.1\.intervals: .*\b24\b.*\b25$"):
        parse([rule(*many, weekday="mon"), rule("00:40-00:50", weekday="mon")])


@pytest.mark.parametrize(
    ("broken", "field", "message"),
    [
        (rule("09:00-18:00"), "weekday", "exactly one of weekday, weekdays and date"),
        (rule("09:00-18:00", weekday="mon", date=DAY), "weekday", "exactly one"),
        (rule("09:00-18:00", weekday="mon", weekdays=["tue"]), "weekday", "exactly one"),
        (rule("09:00-18:00", weekdays=[]), "weekdays", "at least one"),
        (rule("09:00-18:00", weekday=8), "weekday", "mon to sun, or 0 to 7"),
        (rule("09:00-18:00", weekday=-1), "weekday", "mon to sun"),
        (rule("09:00-18:00", weekday="8"), "weekday", "mon to sun"),
        (rule("09:00-18:00", weekday=""), "weekday", "mon to sun"),
        (rule("09:00-18:00", weekday=True), "weekday", "mon to sun"),
        (rule("09:00-18:00", weekdays=["mon", "someday"]), "weekdays.1", "mon to sun"),
        (Rule(weekday="mon"), "intervals", r"\[\] means closed"),
        (Rule(weekday="mon", start="09:00"), "end", "expected start and end, received"),
        (Rule(weekday="mon", end="09:00"), "start", "expected start and end, received"),
        (rule("09:00-18:00", weekday=1, start="09:00", end="10:00"), "intervals", "either"),
        (rule("09:00-18:00", "24:00-02:00", weekday=1), "intervals.1.start", "00:00 to 23:59"),
        (rule("nine-18:00", weekday=1), "intervals.0.start", "00:00 to 23:59"),
        (rule("09:60-18:00", weekday=1), "intervals.0.start", "00:00 to 23:59"),
        (rule("09:00-24:01", weekday=1), "intervals.0.end", "00:00 to 24:00"),
        (rule("09:00-٠٩:٠٠", weekday=1), "intervals.0.end", "00:00 to 24:00"),
        (rule("09:00-09:00", weekday=1), "intervals.0.end", "differs from the start"),
        (Rule(weekday=1, start="25:00", end="10:00"), "start", "00:00 to 23:59"),
        (rule(*["09:00-10:00"] * 25, weekday=1), "intervals", "at most 24 .* received 25"),
        (rule("10:00-11:00", date=date(2027, 1, 1)), "date", r"rules\.0 is also for 2027-01-01"),
    ],
)
def test_a_rule_that_is_not_valid_is_named(broken: Rule, field: str, message: str) -> None:
    fine = rule("09:00-18:00", date=date(2027, 1, 1))
    with pytest.raises(ScheduleError, match=message) as caught:
        parse([fine, broken])
    assert caught.value.index == 1
    assert caught.value.field == field
    assert str(caught.value) == f"rules.1.{field}: {caught.value.message}"


def test_windows_of_dates_are_in_order_of_their_start() -> None:
    schedule = parse([rule("22:00-02:00", "09:00-10:00", weekdays=WEEKDAYS)])
    spans = windows(schedule, "UTC", DAY, last=date(2027, 2, 6))
    midnight = 1_801_785_600_000
    hour = 3_600_000
    assert spans == [
        Span(midnight + start * hour, midnight + end * hour)
        for start, end in [(9, 10), (22, 26), (33, 34), (46, 50)]
    ]


@pytest.mark.parametrize(
    ("rules", "longest"),
    [
        ([], 0),
        ([rule("09:00-10:00", weekday="sun")], 60),
        ([rule("23:00-24:00", weekday="sun"), rule("00:00-01:00", weekday="mon")], 120),
        ([rule("00:00-24:00", weekdays=WEEKDAYS)], 1440),
        ([rule("09:00-10:00", weekday="sun"), rule("12:00-14:00", date=DAY)], 120),
        ([rule("22:00-24:00", weekday="thu"), rule("00:00-02:00", date=DAY)], 240),
        ([rule("00:00-02:00", weekday="sat"), rule("22:00-24:00", date=DAY)], 240),
    ],
)
def test_the_longest_possible_service_is_the_longest_interval(
    rules: list[Rule], longest: int
) -> None:
    assert fits(parse(rules), longest) or longest == 0
    assert longest == 1440 or not fits(parse(rules), longest + 1)


def test_a_schedule_is_empty_by_default() -> None:
    assert Schedule() == parse([])


def test_hours_that_the_clocks_skip_are_left_out() -> None:
    schedule = parse([rule("02:00-03:00", "05:00-06:00", weekdays=WEEKDAYS)])
    day = date(2027, 3, 28)
    assert len(windows(schedule, "Europe/Berlin", day, last=day)) == 1
    assert len(windows(schedule, "Europe/Berlin", day, last=date(2027, 3, 29))) == 3

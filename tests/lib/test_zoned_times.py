"""A local time that is skipped or repeated in its zone is refused."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from chalicelib.lib.zoned_times import (
    AmbiguousTimeError,
    LocalTimeError,
    NonexistentTimeError,
    count_of_days,
    exact_moment,
    find_zone,
    local_time,
    resolve_timezone,
    span_of_days,
    zones,
    zones_of_countries,
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


class TestZones:
    @pytest.mark.parametrize(
        ("text", "zone"),
        [
            ("Europe/Moscow", "Europe/Moscow"),
            (" Berlin ", "Europe/Berlin"),
            ("Kyiv", "Europe/Kyiv"),
            ("Киев", "Europe/Kyiv"),
            ("asia/yekaterinburg", "Asia/Yekaterinburg"),
            ("г. Москва", "Europe/Moscow"),
            ("орёл", None),
            ("санкт петербург", "Europe/Moscow"),
            ("São Paulo", "America/Sao_Paulo"),
            ("Нью-Йорк", "America/New_York"),
            ("america/argentina/buenos aires", "America/Argentina/Buenos_Aires"),
            ("utc", "UTC"),
            ("etc/gmt-3", None),
            ("Etc/GMT-3", "Etc/GMT-3"),
            ("GMT+3", None),
            ("Mars/Base", None),
            ("", None),
            ("/", None),
        ],
    )
    def test_a_zone_is_found_by_its_city_in_any_spelling(self, text: str, zone: str | None) -> None:
        assert find_zone(text) == zone

    def test_every_zone_of_a_country_is_found_without_case(self) -> None:
        assert all(find_zone(name.lower()) == name for name in zones_of_countries())

    def test_zones_are_names_of_places(self) -> None:
        assert {"Europe/Moscow", "Australia/Lord_Howe", "UTC"} <= zones()
        assert not {"localtime", "Factory", "posixrules", "", "europe/moscow"} & zones()

    def test_all_zones_can_be_loaded(self) -> None:
        assert all(ZoneInfo(name).key == name for name in zones())

    def test_those_of_countries_leave_out_former_names(self) -> None:
        assert set(zones_of_countries()) < zones()
        assert {"Europe/Moscow", "Asia/Ho_Chi_Minh", "America/Indiana/Knox"} < set(
            zones_of_countries()
        )
        assert not {"Asia/Saigon", "US/Pacific", "Etc/GMT+3"} & set(zones_of_countries())


@pytest.mark.parametrize(
    ("explicit_zone", "resource", "bound", "zone"),
    [
        ("given", "resource", ["a", "a"], "given"),
        (None, "resource", ["a", "a"], "resource"),
        (None, None, ["a", "a"], "a"),
        (None, None, ["a", "b"], "workspace"),
        (None, None, [], "workspace"),
    ],
)
def test_a_time_without_offset_is_read_in_the_most_specific_zone(
    explicit_zone: str | None, resource: str | None, bound: list[str], zone: str
) -> None:
    assert (
        resolve_timezone(explicit_zone, resource=resource, bound=bound, workspace="workspace")
        == zone
    )


class TestExactMoment:
    @pytest.mark.parametrize(
        ("text", "zone", "moment"),
        [
            ("2027-02-05T09:00", "Europe/Moscow", "2027-02-05T06:00Z"),
            ("2027-02-05T09:00+05:00", "Europe/Moscow", "2027-02-05T04:00Z"),
            ("2027-03-28T02:30+01:00", "Europe/Berlin", "2027-03-28T01:30Z"),
            ("2027-03-28T01:59", "Europe/Berlin", "2027-03-28T00:59Z"),
            ("2027-03-28T03:00", "Europe/Berlin", "2027-03-28T01:00Z"),
            ("2027-10-31T03:00", "Europe/Berlin", "2027-10-31T02:00Z"),
        ],
    )
    def test_a_time_is_read_with_its_offset_or_in_the_zone(
        self, text: str, zone: str, moment: str
    ) -> None:
        result_moment = exact_moment(at(text), zone)
        assert result_moment == at(moment)
        assert result_moment.tzinfo is UTC

    def test_a_skipped_time_is_refused_with_the_nearest_times(self) -> None:
        with pytest.raises(NonexistentTimeError) as caught:
            exact_moment(at("2027-03-28T02:30"), "Europe/Berlin")
        assert str(caught.value) == (
            "2027-03-28T02:30 in Europe/Berlin does not exist, because clocks go forward; send "
            "2027-03-28T01:30:00+01:00 or 2027-03-28T03:30:00+02:00"
        )

    def test_a_repeated_time_is_refused_with_both_moments(self) -> None:
        with pytest.raises(AmbiguousTimeError) as caught:
            exact_moment(at("2027-11-07T01:30"), "America/New_York")
        assert str(caught.value) == (
            "2027-11-07T01:30 in America/New_York occurs twice, because clocks go back; send "
            "2027-11-07T01:30:00-04:00 or 2027-11-07T01:30:00-05:00"
        )

    @pytest.mark.parametrize(
        ("first", "last", "zone"),
        [
            ("2027-03-28T02:00", "2027-03-28T02:59", "Europe/Berlin"),
            ("2027-10-31T02:00", "2027-10-31T02:59", "Europe/Berlin"),
            ("2027-04-04T01:30", "2027-04-04T01:59", "Australia/Lord_Howe"),
            ("2027-04-30T00:00", "2027-04-30T00:59", "Africa/Cairo"),
            ("2027-11-07T00:00", "2027-11-07T00:59", "America/Havana"),
        ],
    )
    def test_exactly_the_times_of_a_clock_change_are_refused(
        self, first: str, last: str, zone: str
    ) -> None:
        minute = timedelta(minutes=1)
        for time in (at(first), at(last)):
            with pytest.raises(LocalTimeError):
                exact_moment(time, zone)
        for time in (at(first) - minute, at(last) + minute):
            local = datetime.fromisoformat(local_time(exact_moment(time, zone), zone).text)
            assert local.replace(tzinfo=None) == time


def test_a_moment_is_shown_with_its_offset_and_weekday() -> None:
    moment = at("2027-02-05T20:30:00Z")
    assert local_time(moment, "Europe/Moscow") == ("2027-02-05T23:30:00+03:00", "fri")
    assert local_time(moment, "Asia/Kolkata") == ("2027-02-06T02:00:00+05:30", "sat")


def test_a_day_lasts_from_midnight_to_midnight_in_its_zone() -> None:
    hours = {
        ("2027-03-28", "Europe/Berlin"): 23,
        ("2027-10-31", "Europe/Berlin"): 25,
        ("2027-04-30", "Africa/Cairo"): 23,
        ("2027-11-07", "America/Havana"): 25,
        ("2027-04-04", "Australia/Lord_Howe"): 24.5,
    }
    for (day, zone), expected in hours.items():
        span = span_of_days(date.fromisoformat(day), last=date.fromisoformat(day), timezone=zone)
        assert (span.end - span.start) / 3_600_000 == expected


def test_a_range_includes_all_local_dates_it_overlaps() -> None:
    first, last = at("2027-09-30T22:00Z"), at("2027-10-31T22:59:59.999Z")
    assert count_of_days(first, last=last, timezone="Europe/Berlin") == 31
    assert count_of_days(first, last=last, timezone="UTC") == 32
    assert count_of_days(first, last=first, timezone="UTC") == 1

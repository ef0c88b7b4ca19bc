"""Visits of several services in small worlds, each of which shows one rule."""

from collections.abc import Mapping, Sequence

import pytest

from chalicelib.domains.bookings.rules import slots, visits
from chalicelib.domains.bookings.rules.slots import (
    BusyEntry,
    Calendar,
    NoSlotReason,
    Query,
    ResourceSlots,
)
from chalicelib.domains.bookings.rules.visits import Part, Taken
from chalicelib.domains.services.rules.booking_rules import Length, ServiceRules
from chalicelib.domains.services.rules.open_windows import parse
from chalicelib.lib.spans import Span
from tests.domains.bookings.slots.cases import LONG_AGO, hours, ms

MINUTE = 60_000
DAY = "2027-01-18"
HALF = ServiceRules(30, 30, horizon_days=1000)
NOW = ms(LONG_AGO)


def at(clock: str) -> int:
    return ms(f"{DAY}T{clock}Z")


def person(
    name: str, *busy: str, opened: str = "09:00-18:00", capacity: int = 1, **more: object
) -> Calendar:
    """A person in UTC who is at work each day, with bookings such as ``10:00-10:30``."""
    spans = [each.split("-") for each in busy]
    entries = [BusyEntry(f"{name}{n}", at(a), at(b)) for n, (a, b) in enumerate(spans)]
    rules = [hours(opened)] if opened else []
    return Calendar(name, "UTC", parse(rules), capacity, busy=entries, **more)  # type: ignore[arg-type]


def visit(*parts: Sequence[Calendar], rules: ServiceRules = HALF, pause_min: int = 0) -> list[Part]:
    return [
        Part(str(number), rules, calendars, pause_min) for number, calendars in enumerate(parts)
    ]


def listed(parts: Sequence[Part], first: str = "09:00", last: str = "18:00") -> list[str]:
    query = Query(at(first), at(last), NOW)
    return [clock_of(slot.start) for slot in visits.union(parts, query).slots]


def clock_of(moment: int) -> str:
    minutes = (moment - at("00:00")) // MINUTE
    return f"{minutes // 60:02}:{minutes % 60:02}"


def chosen(
    parts: Sequence[Part],
    start: str = "10:00",
    *,
    ignore_schedule: bool = False,
    ranks: Mapping[str, int] | None = None,
) -> list[tuple[str, str]] | NoSlotReason:
    choice = visits.choose(
        parts,
        at(start),
        now=NOW,
        ignore_schedule=ignore_schedule,
        rank=lambda name: (ranks or {}).get(name, 0),
    )
    return choice.reason or [(name, clock_of(begin)) for name, begin in choice.places]


def free_at(*clocks: str, name: str = "Ann") -> Calendar:
    """A person who is free in the half hours from some times on, and not otherwise."""
    day = [f"{hour:02}:{minute:02}" for hour in range(9, 18) for minute in (0, 30)]
    ends = [*day[1:], "18:00"]
    busy = [f"{a}-{b}" for a, b in zip(day, ends, strict=True) if a not in clocks]
    return person(name, *busy)


class TestFewestPeople:
    def test_a_person_hands_over_early_if_that_saves_a_change(self) -> None:
        # Ann could go on, but she is slow, and Bob and then Cid would follow. Dan does the rest.
        slow = HALF._replace(lengths={"Ann": Length(60, 30)})
        ann = free_at("10:00", "10:30", "11:00", name="Ann")
        dan = free_at("10:30", "11:00", "11:30", name="Dan")
        parts = [
            Part("0", HALF, [ann]),
            Part("1", slow, [ann, dan]),
            Part("2", HALF, [free_at("11:30", name="Bob"), dan]),
            Part("3", HALF, [free_at("12:00", name="Cid"), dan]),
        ]
        assert chosen(parts) == [
            ("Ann", "10:00"),
            ("Dan", "10:30"),
            ("Dan", "11:00"),
            ("Dan", "11:30"),
        ]

    def test_a_person_goes_on_if_a_change_comes_in_any_case(self) -> None:
        ann = free_at("10:00", "10:30", name="Ann")
        bob = free_at("10:30", "11:00", name="Bob")
        assert chosen(visit([ann], [ann, bob], [bob])) == [
            ("Ann", "10:00"),
            ("Ann", "10:30"),
            ("Bob", "11:00"),
        ]

    def test_of_equal_ways_the_one_who_does_more_of_the_next_services_is_chosen(self) -> None:
        ann = free_at("10:00", name="Ann")
        cid = free_at("10:00", "10:30", name="Cid")
        dan = free_at("10:30", "11:00", name="Dan")
        parts = visit([ann, cid], [cid, dan], [dan])
        first = chosen(parts, ranks={"Ann": -1})
        assert first == [("Cid", "10:00"), ("Cid", "10:30"), ("Dan", "11:00")]

    def test_a_person_with_fewer_changes_later_is_chosen_first(self) -> None:
        # After Ann, who is quick, two others follow. After Bob, Dan does the rest.
        quick = ServiceRules(60, 30, horizon_days=1000, lengths={"Ann": Length(30, 30)})
        eve, fay = free_at("10:30", name="Eve"), free_at("11:00", name="Fay")
        dan = free_at("11:00", "11:30", name="Dan")
        parts = [
            Part("0", quick, [free_at("10:00", name="Ann"), free_at("10:00", "10:30", name="Bob")]),
            Part("1", HALF, [eve, dan]),
            Part("2", HALF, [fay, dan]),
        ]
        assert chosen(parts) == [("Bob", "10:00"), ("Dan", "11:00"), ("Dan", "11:30")]

    def test_the_best_way_counts_and_not_the_worst_one(self) -> None:
        # After Ann, Dan does the rest, or Eve, Gil and Hal do. After Bob, Fay and Hal follow.
        slow = HALF._replace(lengths={"Bob": Length(60, 30), "Eve": Length(60, 30)})
        fay = free_at("11:00", "11:30", name="Fay")
        dan = free_at("10:30", "11:00", "11:30", name="Dan")
        parts = [
            Part("0", slow, [free_at("10:00", name="Ann"), free_at("10:00", "10:30", name="Bob")]),
            Part("1", slow, [dan, free_at("10:30", "11:00", name="Eve"), fay]),
            Part("2", HALF, [dan, free_at("11:30", name="Gil"), fay]),
            Part("3", HALF, [dan, free_at("12:00", name="Hal")]),
        ]
        first = chosen(parts, ranks={"Bob": -1})
        assert first == [("Ann", "10:00"), ("Dan", "10:30"), ("Dan", "11:00"), ("Dan", "11:30")]

    def test_a_tie_is_decided_by_rank(self) -> None:
        ann, bob = person("Ann"), person("Bob")
        parts = visit([ann, bob], [ann, bob])
        assert chosen(parts, ranks={"Ann": 2, "Bob": 1}) == [("Bob", "10:00"), ("Bob", "10:30")]


class TestSearch:
    def test_a_start_without_an_end_is_not_listed(self) -> None:
        ann, bob = free_at("10:00", "11:00", name="Ann"), free_at("11:30", name="Bob")
        assert listed(visit([ann], [bob])) == ["11:00"]

    @pytest.mark.parametrize("length", [3, 4])
    def test_what_leads_to_no_end_is_left_out_of_each_service(self, length: int) -> None:
        # From 10:00, the last service has nobody. From 14:00, it has.
        clocks = ["10:00", "10:30", "11:00", "14:00", "14:30", "15:00", "15:30"]
        ann = free_at(*clocks, name="Ann")
        bob = free_at("15:00" if length == 3 else "15:30", name="Bob")
        parts = visit(*([ann] for _ in range(length - 1)), [bob])
        (slot,) = visits.union(parts, Query(at("09:00"), at("18:00"), NOW)).slots
        assert clock_of(slot.start) == "14:00"
        assert [list(part.seats) for part in slot.parts] == [["Ann"]] * (length - 1) + [["Bob"]]
        assert slot.seats == {}

    def test_who_cannot_be_followed_is_not_named(self) -> None:
        # Bob takes an hour, after which nobody is free.
        rules = ServiceRules(30, 30, horizon_days=1000, lengths={"Bob": Length(60, 30)})
        first = [free_at("10:00", name="Ann"), free_at("10:00", "10:30", name="Bob")]
        parts = [Part("0", rules, first), Part("1", HALF, [free_at("10:30", name="Cid")])]
        (slot,) = visits.union(parts, Query(at("09:00"), at("18:00"), NOW)).slots
        assert slot.parts[0].seats == {"Ann": 1}
        assert chosen(parts) == [("Ann", "10:00"), ("Cid", "10:30")]

    def test_a_pause_between_services_is_kept(self) -> None:
        ann, bob = person("Ann"), free_at("11:00", name="Bob")
        assert chosen(visit([ann], [bob], pause_min=30)) == [("Ann", "10:00"), ("Bob", "11:00")]

    def test_a_later_service_needs_opening_hours_as_the_first_does(self) -> None:
        ann, bob = person("Ann"), person("Bob", opened="12:00-13:00")
        assert listed(visit([ann], [bob])) == ["11:30", "12:00"]
        assert chosen(visit([ann], [bob])) is NoSlotReason.CLOSED
        assert chosen(visit([ann], [bob]), ignore_schedule=True) == [
            ("Ann", "10:00"),
            ("Bob", "10:30"),
        ]

    def test_only_other_bookings_prevent_a_visit_that_ignores_hours(self) -> None:
        busy = visit([person("Ann")], [person("Bob", "10:30-11:00")])
        assert chosen(busy, ignore_schedule=True) is NoSlotReason.FULLY_BOOKED
        assert chosen(visit([person("Ann", "10:00-10:30")], [person("Bob")])) is (
            NoSlotReason.FULLY_BOOKED
        )


class TestSlots:
    def test_a_slot_names_who_does_each_service_in_order_and_who_does_all(self) -> None:
        group = person("Cid", capacity=3)
        bob, ann = person("Bob", capacity=2), person("Ann", "10:30-11:30", capacity=2)
        ann = ann._replace(busy=[*ann.busy, *ann.busy])
        parts = visit([group, ann, bob], [bob, group, free_at("10:30", name="Dan")])
        (slot,) = visits.union(parts, Query(at("10:00"), at("10:00"), NOW)).slots
        assert list(slot.parts[0].seats.items()) == [("Cid", 3), ("Ann", 2), ("Bob", 2)]
        assert list(slot.parts[1].seats.items()) == [("Bob", 2), ("Cid", 3), ("Dan", 1)]
        assert slot.seats == {"Cid": 3, "Bob": 2}
        assert [clock_of(part.start) for part in slot.parts] == ["10:00", "10:30"]
        assert clock_of(slot.end) == "11:00"
        assert visits.seats_of(slot) == 6

    def test_a_service_alone_has_the_seats_of_all_who_do_it(self) -> None:
        assert visits.seats_of(slots.Slot(0, 1, {"Ann": 1, "Cid": 3})) == 4

    def test_with_lengths_by_person_a_service_begins_and_ends_as_early_as_it_can(self) -> None:
        rules = ServiceRules(30, 30, horizon_days=1000, lengths={"Bob": Length(60, 30)})
        first = [person("Bob"), person("Ann")]
        third = [person("Cid", "10:30-11:00", capacity=2), person("Dan")]
        parts = [Part("0", rules, first), Part("1", HALF, third), Part("2", HALF, third)]
        (slot,) = visits.union(parts, Query(at("10:00"), at("10:00"), NOW)).slots
        assert [(clock_of(part.start), clock_of(part.end)) for part in slot.parts] == [
            ("10:00", "10:30"),
            ("10:30", "11:00"),
            ("11:00", "11:30"),
        ]
        # Cid has one seat at 10:30 and two at 11:00.
        assert slot.parts[1].seats == {"Cid": 2, "Dan": 1}
        assert slot.end == slot.parts[2].end


class TestOffTheGrid:
    def starts(self, calendar: Calendar, *clocks: str, rules: ServiceRules = HALF) -> list[str]:
        found = slots.slots_at(rules, calendar, [at(clock) for clock in clocks], now=NOW)
        return list(map(clock_of, found.seats))

    def test_a_service_lies_in_opening_hours_from_its_first_to_its_last_minute(self) -> None:
        ann = person("Ann", opened="09:00-12:00")
        clocks = ("08:50", "09:00", "09:07", "11:30", "11:31", "12:00")
        assert self.starts(ann, *clocks) == ["09:00", "09:07", "11:30"]
        # Each alone, because the hours that are read depend on the first and the last.
        assert [self.starts(ann, clock) for clock in ("08:50", "11:31")] == [[], []]

    def test_nothing_begins_before_the_first_hours(self) -> None:
        once = Calendar("Ann", "UTC", parse([hours("09:00-12:00", on=DAY)]))
        assert self.starts(once, "08:50") == []

    def test_hours_of_several_days_are_one_block(self) -> None:
        ann = person("Ann", opened="00:00-24:00")
        rules = HALF._replace(duration_min=1440)
        assert self.starts(ann, "23:30", rules=rules) == ["23:30"]

    def test_the_last_moment_of_the_horizon_can_be_booked_and_no_later_one(self) -> None:
        ann, now = person("Ann", opened="00:00-24:00"), at("12:00")
        rules = HALF._replace(horizon_days=0)
        later = ms("2027-01-19T00:00Z")
        last = later - 1
        found = slots.slots_at(rules, ann, [at("13:00"), last, later], now=now)
        assert list(found.seats) == [at("13:00"), last]
        assert slots.slots_at(rules, ann, [later], now=now) == ResourceSlots(
            {}, NoSlotReason.OUTSIDE_HORIZON
        )


def test_buffers_are_kept_in_the_order_of_the_times() -> None:
    # The later service is named first.
    later = Taken("A", Span(60 * MINUTE, 90 * MINUTE), 10, 20)
    earlier = Taken("A", Span(0, 60 * MINUTE), 5, 40)
    assert visits.kept_buffers([later, earlier]) == [(0, 20), (5, 0)]

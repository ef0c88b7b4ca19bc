"""Slots of random worlds around clock changes, compared with a model that checks every minute."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.bookings.rules.slots import (
    BusyEntry,
    Calendar,
    Query,
    Slot,
    busy_range,
    is_free,
    next_available,
    slots,
    union,
)
from chalicelib.domains.services.rules.booking_rules import Length, ServiceRules
from chalicelib.domains.services.rules.open_windows import Interval, Rule, canonical, parse
from chalicelib.lib.spans import Span
from tests.domains.bookings.slots.slot_model import DAY, STAGES, Hours, Model, Reservation, World
from tests.support.effort import examples

MS = 60_000
CLOCK_CHANGES = [
    ("America/New_York", date(2027, 3, 14)),
    ("America/New_York", date(2027, 11, 7)),
    ("Europe/Berlin", date(2027, 3, 28)),
    ("Europe/Berlin", date(2027, 10, 31)),
    ("Australia/Lord_Howe", date(2027, 4, 4)),  # half an hour back
    ("Australia/Lord_Howe", date(2027, 10, 3)),
    ("America/St_Johns", date(2027, 3, 14)),
    ("America/St_Johns", date(2027, 11, 7)),
    ("America/Havana", date(2027, 11, 7)),  # midnight occurs twice
    ("Africa/Cairo", date(2027, 4, 30)),  # midnight is skipped
    ("Africa/Cairo", date(2027, 10, 28)),  # 23:00 to 24:00 occurs twice
    ("America/Santiago", date(2027, 9, 5)),
    ("Africa/Casablanca", date(2027, 2, 7)),
    ("Pacific/Apia", date(2011, 12, 30)),  # the whole day is skipped
    ("Europe/Moscow", date(2027, 2, 5)),
    ("Asia/Kolkata", date(2027, 2, 5)),
    ("Pacific/Chatham", date(2027, 4, 4)),
]
NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
few = examples(60)
lengths = st.sampled_from([15, 60, 90, 300, 1440, 4320]) | st.integers(5, 300)
times_of_day = st.integers(0, 95).map(lambda quarter: quarter * 15) | st.integers(0, 1439)


@st.composite
def hours(draw: st.DrawFn) -> tuple[Hours, ...]:
    """Some intervals, often touching, overlapping or lasting overnight."""
    if draw(st.integers(0, 5)) == 0:
        return (Hours(0, 1440),)
    day_hours: list[Hours] = []
    for _ in range(draw(st.integers(0, 3))):
        touching = bool(day_hours) and day_hours[-1].end < 1440 and draw(st.booleans())
        start = day_hours[-1].end if touching else draw(times_of_day)
        end = draw(times_of_day | st.just(1440))
        if start != end:
            day_hours.append(Hours(start, end))
    return tuple(day_hours)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, date]:
    zone, change = draw(st.sampled_from(CLOCK_CHANGES))
    middle = change + draw(st.integers(-1, 1)) * DAY
    noon = (middle - date(1970, 1, 1)).days * 1440 + 720
    starts = st.integers(-192, 192).map(lambda quarter: noon + quarter * 15)
    starts |= st.integers(noon - 2880, noon + 2880)
    usual = draw(hours())
    reservations = [
        Reservation(start, start + draw(lengths), setup, cleanup, until)
        for start, setup, cleanup, until in draw(
            st.lists(
                st.tuples(
                    starts,
                    st.sampled_from([0, 0, 5, 60, 480]),
                    st.sampled_from([0, 0, 10, 45, 480]),
                    st.sampled_from([None, None, noon, noon - 2880, noon + 2880]),
                ),
                max_size=8,
            )
        )
    ]
    world = World(
        zone=zone,
        weekly=tuple(draw(st.sampled_from([usual, usual, ()]) | hours()) for _ in range(7)),
        dates={
            middle + draw(st.integers(-3, 3)) * DAY: draw(hours())
            for _ in range(draw(st.integers(0, 2)))
        },
        duration=draw(st.sampled_from([5, 30, 50, 60, 90, 180, 600, 1440])),
        step=draw(st.sampled_from([5, 15, 30, 45, 60, 100, 1440])),
        setup=draw(st.sampled_from([0, 0, 10, 240])),
        cleanup=draw(st.sampled_from([0, 0, 5, 480])),
        notice=draw(st.sampled_from([0, 0, 7, 1440])),
        horizon=draw(st.sampled_from([1, 2, 60])),
        capacity=draw(st.integers(1, 3)),
        reservations=tuple(reservations),
        time_off=tuple(
            (start, start + draw(lengths)) for start in draw(st.lists(starts, max_size=2))
        ),
        now=noon + draw(st.sampled_from([-20_000, -2880, -2880, -1441, 0, 61])),
    )
    return world, middle


def hhmm(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def intervals(of: tuple[Hours, ...]) -> list[Interval]:
    return [Interval(hhmm(opening.start), hhmm(opening.end)) for opening in of]


def service_rules(world: World) -> ServiceRules:
    return ServiceRules(
        world.duration, world.step, world.setup, world.cleanup, world.notice, world.horizon
    )


def calendar(world: World) -> Calendar:
    rules = [
        Rule(weekday=name, intervals=intervals(of))
        for name, of in zip(NAMES, world.weekly, strict=True)
    ]
    rules += [Rule(date=day, intervals=intervals(of)) for day, of in world.dates.items()]
    return Calendar(
        "one",
        world.zone,
        parse(rules),
        world.capacity,
        [
            BusyEntry(
                str(i), r.start * MS, r.end * MS, r.setup, r.cleanup, r.until and r.until * MS
            )
            for i, r in enumerate(world.reservations)
        ],
        [Span(start * MS, end * MS) for start, end in world.time_off],
    )


def two_days(world: World, middle: date) -> range:
    """The range of minutes to compare. Both ends fall at any time of the zone's day."""
    noon = (middle - date(1970, 1, 1)).days * 1440 + 720
    end = noon + 720 + (world.now + world.duration) % 97 * 15
    return range(end - 2880, end + 1)


def seats_by_start(world: World, minutes: range) -> dict[int, int]:
    query = Query(minutes[0] * MS, minutes[-1] * MS, world.now * MS)
    return dict(slots(service_rules(world), calendar(world), query).seats)


@few
@given(worlds())
def test_slots_match_the_model(drawn: tuple[World, date]) -> None:
    world, middle = drawn
    model, minutes = Model(world, middle), two_days(world, middle)
    stages = {minute: model.stage(minute) for minute in minutes}
    free = {minute * MS: model.seats(minute) for minute in minutes if stages[minute] == "free"}
    assert seats_by_start(world, minutes) == free
    union_slots = union(
        service_rules(world),
        [calendar(world)],
        Query(minutes[0] * MS, minutes[-1] * MS, world.now * MS),
    )
    furthest = max(stages.values(), key=STAGES.index)
    never = model.never() if furthest in {"outside_horizon", "closed"} else None
    assert union_slots.reason == (None if furthest == "free" else never or furthest)


@few
@given(worlds(), st.integers(0, 2580))
def test_the_list_and_the_booking_check_agree_on_every_minute(
    drawn: tuple[World, date], begin: int
) -> None:
    world, middle = drawn
    minutes = two_days(world, middle)
    seats, service, resource = seats_by_start(world, minutes), service_rules(world), calendar(world)
    for minute in minutes[begin : begin + 300]:
        free = is_free(service, resource, minute * MS, now=world.now * MS)
        assert free == (minute * MS in seats)


@few
@given(worlds(), st.integers(0, 2880), st.integers(0, 2880))
def test_a_part_of_a_range_has_the_same_slots_as_in_the_range(
    drawn: tuple[World, date], one: int, other: int
) -> None:
    world, middle = drawn
    all_minutes = two_days(world, middle)
    part = all_minutes[min(one, other) : max(one, other) + 1]
    expected = {
        start: seats
        for start, seats in seats_by_start(world, all_minutes).items()
        if start // MS in part
    }
    assert seats_by_start(world, part) == expected


@few
@given(worlds())
def test_only_bookings_block_times_when_the_schedule_is_ignored(drawn: tuple[World, date]) -> None:
    world, middle = drawn
    model, service, resource = Model(world, middle), service_rules(world), calendar(world)
    for minute in two_days(world, middle)[::29]:
        free = is_free(service, resource, minute * MS, now=world.now * MS, ignore_schedule=True)
        assert free == (model.seats(minute) > 0)


@few
@given(st.lists(worlds(), min_size=2, max_size=3))
def test_slots_of_alternatives_are_merged_by_start(drawn: list[tuple[World, date]]) -> None:
    first, middle = drawn[0]
    service, minutes = service_rules(first), two_days(first, middle)
    calendars = [
        calendar(world)._replace(resource_id=str(i), busy=calendar(first).busy if i else ())
        for i, (world, _) in enumerate(drawn)
    ]
    query = Query(minutes[0] * MS, minutes[-1] * MS, first.now * MS)
    union_slots = union(service, calendars, query)
    seats_by_resource = {c.resource_id: slots(service, c, query).seats for c in calendars}
    starts = sorted({start for seats in seats_by_resource.values() for start in seats})
    assert union_slots.slots == [
        Slot(
            start,
            start + first.duration * MS,
            {name: seats[start] for name, seats in seats_by_resource.items() if start in seats},
        )
        for start in starts
    ]
    assert (union_slots.reason is None) == bool(starts)
    assert next_available(service, calendars, query) == (union_slots.slots[0] if starts else None)


@few
@given(st.lists(worlds(), min_size=2, max_size=3))
def test_each_alternative_takes_its_own_length_and_step(drawn: list[tuple[World, date]]) -> None:
    """Only bookings of the span that a search reads are known, as in the service."""
    first, middle = drawn[0]
    others = {
        str(number): first._replace(
            weekly=world.weekly,
            duration=world.duration,
            step=world.step,
            capacity=world.capacity,
            reservations=first.reservations[number:],
        )
        for number, (world, _) in enumerate(drawn)
    }
    lengths = {name: Length(world.duration, world.step) for name, world in others.items()}
    rules, minutes = service_rules(first)._replace(lengths=lengths), two_days(first, middle)
    query = Query(minutes[0] * MS, minutes[-1] * MS, first.now * MS)
    read = busy_range(rules, query.first, last=query.last)
    calendars = []
    for name, world in others.items():
        whole = calendar(world)
        busy = [
            entry
            for entry in whole.busy
            if entry.buffered.start < read.end and entry.buffered.end > read.start
        ]
        calendars.append(whole._replace(resource_id=name, busy=busy))
    expected: dict[int, dict[str, int]] = {}
    for name, world in others.items():
        model = Model(world, middle)
        for minute in (minute for minute in minutes if model.stage(minute) == "free"):
            expected.setdefault(minute, {})[name] = model.seats(minute)
    found = union(rules, calendars, query).slots
    assert {slot.start // MS: dict(slot.seats) for slot in found} == expected
    for slot in found:
        assert slot.end - slot.start == min(others[name].duration for name in slot.seats) * MS
    for of in calendars:
        for minute in minutes[::97]:
            is_listed = of.resource_id in expected.get(minute, {})
            assert is_free(rules, of, minute * MS, now=first.now * MS) == is_listed


@few
@given(worlds())
def test_canonical_rules_mean_the_same_schedule(drawn: tuple[World, date]) -> None:
    schedule = calendar(drawn[0]).schedule
    assert parse(canonical(schedule)) == schedule

"""Times of visits in random worlds, compared with a model that tries everybody for each service."""

from collections.abc import Sequence
from datetime import date
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.bookings.rules import visits
from chalicelib.domains.bookings.rules.slots import BusyEntry, Calendar, Query, Slot, SlotPart
from chalicelib.domains.bookings.rules.visits import Part, Taken
from chalicelib.domains.services.rules.booking_rules import Length, ServiceRules
from chalicelib.domains.services.rules.open_windows import parse
from chalicelib.lib.spans import Span
from tests.domains.bookings.slots.slot_model import Model, World
from tests.domains.bookings.slots.test_slots_by_model import (
    MS,
    calendar,
    service_rules,
    two_days,
    worlds,
)
from tests.support.effort import examples

few = examples(60)
lengths = st.sampled_from([5, 30, 45, 60, 90])
rules = st.tuples(
    st.lists(lengths, min_size=3, max_size=3) | lengths.map(lambda length: [length] * 3),
    st.sampled_from([0, 0, 10, 240]),  # buffer before
    st.sampled_from([0, 0, 5, 480]),  # buffer after
)


@st.composite
def salons(draw: st.DrawFn) -> tuple[list[list[World]], date, list[list[str]]]:
    """Worlds of each service with each resource, and who may do each service."""
    people = [draw(worlds()) for _ in range(draw(st.integers(1, 3)))]
    (first, middle), names = people[0], [str(number) for number in range(len(people))]
    services = draw(st.lists(rules, min_size=2, max_size=4))
    matrix = []
    for own_lengths, setup, cleanup in services:
        matrix.append(
            [
                # Everybody is near the same days, and at the same moment.
                world._replace(
                    zone=first.zone,
                    dates=first.dates if number else world.dates,
                    reservations=first.reservations if number == 2 else world.reservations,
                    now=first.now,
                    duration=own_lengths[number],
                    step=first.step,
                    setup=setup,
                    cleanup=cleanup,
                    notice=0,
                    horizon=first.horizon,
                )
                for number, (world, _) in enumerate(people)
            ]
        )
    able = [draw(st.lists(st.sampled_from(names), min_size=1, unique=True)) for _ in services]
    return matrix, middle, able


def parts_of(matrix: Sequence[Sequence[World]], able: Sequence[Sequence[str]]) -> list[Part]:
    return [
        Part(
            str(number),
            service_rules(row[0])._replace(
                lengths={
                    str(person): Length(world.duration, world.step)
                    for person, world in enumerate(row)
                    if world.duration != row[0].duration
                }
            ),
            [calendar(row[int(name)])._replace(resource_id=name) for name in sorted(names)],
        )
        for number, (row, names) in enumerate(zip(matrix, able, strict=True))
    ]


def possible(
    models: Sequence[Sequence[Model]], able: Sequence[Sequence[str]], start: int
) -> set[tuple[str, ...]]:
    """Return everybody who can do the services from a start on, tried one after another."""
    found = set()
    for people in product(*able):
        at, is_free = start, True
        for number, name in enumerate(people):
            model = models[number][int(name)]
            stage = model.stage(at) if number == 0 else stage_off_grid(model, at)
            is_free = is_free and stage == "free"
            at += model.world.duration
        if is_free:
            found.add(people)
    return found


def lengths_of(matrix: Sequence[Sequence[World]], people: Sequence[str]) -> int:
    return sum(row[int(name)].duration for row, name in zip(matrix, people, strict=True))


def stage_off_grid(model: Model, start: int) -> str:
    # Every minute of the hours is on a grid of one minute.
    fine = Model.__new__(Model)
    fine.__dict__.update(model.__dict__)
    fine.world = model.world._replace(step=1)
    return fine.stage(start)


@few
@given(salons(), st.integers(0, 2700))
def test_visits_are_listed_where_everybody_could_do_their_part(
    drawn: tuple[list[list[World]], date, list[list[str]]], begin: int
) -> None:
    matrix, middle, able = drawn
    minutes = two_days(matrix[0][0], middle)[begin : begin + 240]
    models = [[Model(world, middle) for world in row] for row in matrix]
    parts, now = parts_of(matrix, able), matrix[0][0].now * MS
    listed = {
        slot.start: slot
        for slot in visits.union(parts, Query(minutes[0] * MS, minutes[-1] * MS, now)).slots
    }
    for minute in minutes:
        ways = possible(models, able, minute)
        slot = listed.get(minute * MS)
        assert (slot is not None) == bool(ways), minute
        choice = visits.choose(
            parts, minute * MS, now=now, ignore_schedule=False, rank=lambda name: name
        )
        assert (choice.reason is None) == bool(ways)
        if slot is None:
            continue
        people = tuple(name for name, _ in choice.places)
        assert people in ways
        changes = min(sum(one != other for one, other in zip(way, way[1:])) for way in ways)  # noqa: RUF007, B905  pairs
        assert sum(one != other for one, other in zip(people, people[1:])) == changes  # noqa: RUF007, B905  pairs
        assert set(slot.seats) == {way[0] for way in ways if len(set(way)) == 1}
        for number, part in enumerate(slot.parts):
            assert set(part.seats) == {way[number] for way in ways}
        totals = {lengths_of(matrix, way) for way in ways}
        assert (slot.end - slot.start) // MS == min(totals)
        ends = [
            part.end(start, name) for part, (name, start) in zip(parts, choice.places, strict=True)
        ]
        assert [start for _, start in choice.places[1:]] == ends[:-1]
        assert (ends[-1] - slot.start) // MS == lengths_of(matrix, people)


def test_a_person_is_chosen_after_whom_the_fewest_others_go_on() -> None:
    # After Ann, Cid and then Eve go on. After Bob, who takes longer, Eve alone does.
    noon = 30_000_000 * MS

    def person(name: str, *busy: tuple[int, int]) -> Calendar:
        entries = [BusyEntry(name, noon + begin * MS, noon + end * MS) for begin, end in busy]
        return Calendar(name, "UTC", parse([]), busy=entries)

    eve = person("Eve", (0, 60))
    parts = [
        Part(
            "0",
            ServiceRules(30, 30, lengths={"Bob": Length(60, 30)}),
            [person("Ann"), person("Bob")],
        ),
        Part("1", ServiceRules(30, 30), [person("Cid", (60, 500)), eve]),
        Part("2", ServiceRules(30, 30), [eve]),
    ]
    choice = visits.choose(parts, noon, now=0, ignore_schedule=True, rank=lambda name: name)
    minutes = [(name, (start - noon) // MS) for name, start in choice.places]
    assert minutes == [("Bob", 0), ("Eve", 60), ("Eve", 90)]


taken = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(5, 90), st.integers(0, 120), st.integers(0, 120)),
    min_size=1,
    max_size=5,
)


@given(taken, st.lists(st.sampled_from([0, 0, 0, 30, 2000]), min_size=5, max_size=5))
def test_kept_buffers_cover_the_same_time_once(
    drawn: list[tuple[str, int, int, int]], gaps: list[int]
) -> None:
    start, parts = 10_000, []
    for (resource_id, length, before, after), gap in zip(drawn, gaps, strict=False):
        time = Span(start * MS, (start + length) * MS)
        parts.append(Taken(resource_id, time, before, after))
        start += length + gap
    kept = visits.kept_buffers(parts)
    for resource_id in "ABC":
        wanted, covered = set[int](), list[int]()
        for part, (before, after) in zip(parts, kept, strict=True):
            if part.resource_id != resource_id:
                continue
            first, last = part.time.start // MS, part.time.end // MS
            wanted.update(range(first - part.before_min, last + part.after_min))
            covered += range(first - before, last + after)
        assert min([0, *(minutes for pair in kept for minutes in pair)]) == 0
        assert sorted(covered) == sorted(wanted)


def test_a_part_of_a_slot_has_its_own_end_and_its_own_free_seats() -> None:
    cut = SlotPart("cut", 600, 660, {"ada": 1})
    colour = SlotPart("colour", 660, 690, {"ada": 1, "grace": 2})
    slot = Slot(600, 690, {"ada": 1}, (cut, colour))
    for offset, part in ((0, cut), (60, colour)):
        found = visits.of_part(slot, offset)
        assert (found.start, found.end, found.seats) == (part.start, part.end, part.seats)

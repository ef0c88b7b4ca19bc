"""Random histories of a salon, compared with a naive model of free times and bookings."""

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import given
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chalicelib.core import jobs as job_kinds
from chalicelib.engine import jobs
from tests.conftest import Answer, Api, Owner, Time
from tests.factories.salon import ALL_DAYS, Salon, check_calendars, iso
from tests.support.effort import examples

pytestmark = pytest.mark.store

ROUND_THE_CLOCK = [{"weekdays": ALL_DAYS, "start": "00:00", "end": "24:00"}]
EVENING = datetime(2027, 1, 18, 20, tzinfo=UTC)
"""The bookings of a history begin within eight hours of this time, on both sides of midnight."""
BLOCKING = {"pending_payment", "confirmed", "completed"}
STEPS = st.integers(0, 15)
MINUTE = timedelta(minutes=1)


@dataclass
class ModelBooking:
    """A booking in the model."""

    resource: int
    start: datetime
    minutes: int
    buffers: tuple[int, int]
    status: str
    until: datetime | None = None

    def blocks(self, now: datetime) -> bool:
        return self.status in BLOCKING and not (self.until and self.until <= now)

    @property
    def span(self) -> tuple[datetime, datetime]:
        setup, cleanup = self.buffers
        return self.start - setup * MINUTE, self.start + (self.minutes + cleanup) * MINUTE


@dataclass
class Model:
    """A salon's bookings as a plain dictionary, checked minute by minute."""

    capacities: list[int]
    minutes: int
    buffers: tuple[int, int]
    pays: bool
    zone: str
    bookings: dict[str, ModelBooking] = field(default_factory=dict)
    off: dict[str, tuple[int | None, datetime, datetime]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    def is_free(self, requested: ModelBooking, now: datetime, own_key: str | None = None) -> bool:
        """Whether a seat is free in every minute of a booking, buffers included."""
        others = [
            booking
            for key, booking in self.bookings.items()
            if key != own_key and booking.resource == requested.resource and booking.blocks(now)
        ]
        first, last = requested.span
        minutes = [first + n * MINUTE for n in range((last - first) // MINUTE)]
        return all(
            sum(booking.span[0] <= minute < booking.span[1] for booking in others)
            < self.capacities[requested.resource]
            for minute in minutes
        )

    def least_busy(self, free: list[ModelBooking], now: datetime) -> list[ModelBooking]:
        """The candidates whose resource has the fewest bookings on the local day of the start."""

        def count(candidate: ModelBooking) -> int:
            return sum(
                booking.blocks(now)
                and booking.resource == candidate.resource
                and self.local_day(booking.start) == self.local_day(candidate.start)
                for booking in self.bookings.values()
            )

        fewest = min(map(count, free))
        return [candidate for candidate in free if count(candidate) == fewest]

    def local_day(self, moment: datetime) -> date:
        return moment.astimezone(ZoneInfo(self.zone)).date()

    def is_off(self, requested: ModelBooking) -> bool:
        end = requested.start + requested.minutes * MINUTE
        return any(
            resource in {None, requested.resource} and requested.start < last and first < end
            for resource, first, last in self.off.values()
        )


class Histories(RuleBasedStateMachine):
    """Random actions on bookings. Each must be answered as the model expects."""

    api: Api
    owner: Owner
    time: Time

    @initialize(
        capacities=st.lists(st.integers(1, 2), min_size=1, max_size=3),
        minutes=st.sampled_from([30, 45, 90]),
        buffers=st.tuples(st.sampled_from([0, 15, 60]), st.sampled_from([0, 20])),
        pays=st.booleans(),
        zone=st.sampled_from(["UTC", "Asia/Vladivostok", "America/Los_Angeles"]),
    )
    def open(
        self, capacities: list[int], minutes: int, buffers: tuple[int, int], pays: bool, zone: str
    ) -> None:
        self.time.now = datetime(2027, 1, 15, 12, tzinfo=UTC)
        self.model = Model(capacities, minutes, buffers, pays, zone)
        self.salon = Salon.opened(
            self.api,
            [{"capacity": capacity, "timezone": zone} for capacity in capacities],
            ROUND_THE_CLOCK,
            durationMin=minutes,
            slotStepMin=30,
            bufferBeforeMin=buffers[0],
            bufferAfterMin=buffers[1],
            requirePayment=pays,
        )

    @property
    def now(self) -> datetime:
        return self.time.now

    @rule(step=STEPS, which=st.integers(0, 2), ignores=st.booleans())
    def book(self, step: int, which: int, ignores: bool) -> None:
        model, start = self.model, EVENING + step * 30 * MINUTE
        chosen_index = which if which < len(model.capacities) else None
        status = "pending_payment" if model.pays else "confirmed"
        until = self.now + timedelta(minutes=30) if model.pays else None
        candidates = [
            ModelBooking(index, start, model.minutes, model.buffers, status, until)
            for index in range(len(model.capacities))
            if chosen_index in {None, index} and index not in model.gone
        ]
        free = [
            candidate
            for candidate in candidates
            if model.is_free(candidate, self.now) and (ignores or not model.is_off(candidate))
        ]
        options = {} if chosen_index is None else {"resourceId": self.salon.resources[chosen_index]}
        answer = self.salon.try_to_book(iso(start), ignoreSchedule=ignores, **options)
        if chosen_index in model.gone:
            assert answer.status in {404, 409}
        elif self.agrees(answer, bool(free)):
            booking = answer.data["booking"]
            booked = self.salon.resources.index(booking["resourceId"])
            fewest = model.least_busy(free, self.now)
            (model.bookings[booking["id"]],) = (c for c in fewest if c.resource == booked)

    @precondition(lambda self: self.model.bookings)
    @rule(
        choice=st.randoms(use_true_random=False),
        status=st.sampled_from(
            ["pending_payment", "confirmed", "confirmed", "cancelled", "completed", "no_show"]
        ),
    )
    def set_status(self, choice: random.Random, status: str) -> None:
        key, booked = choice.choice(sorted(self.model.bookings.items(), key=lambda pair: pair[0]))
        same = status == booked.status
        eased = {status, booked.status} <= {"confirmed", "completed"}
        may = (
            same
            or eased
            or status not in BLOCKING
            or (
                booked.resource not in self.model.gone
                and self.model.is_free(booked, self.now, own_key=key)
            )
        )
        answer = self.salon.set_status(key, status)
        if self.agrees(answer, may) and not same:
            booked.status = status
            is_held = status == "pending_payment"
            booked.until = self.now + timedelta(minutes=30) if is_held else None

    @precondition(lambda self: self.model.bookings)
    @rule(choice=st.randoms(use_true_random=False), step=STEPS, which=st.integers(0, 1))
    def move(self, choice: random.Random, step: int, which: int) -> None:
        model = self.model
        key, booked = choice.choice(sorted(model.bookings.items(), key=lambda pair: pair[0]))
        resource = which % len(model.capacities)
        status = booked.status if booked.status in BLOCKING else "confirmed"
        until = booked.until if status == booked.status else None
        requested = ModelBooking(
            resource, EVENING + step * 30 * MINUTE, booked.minutes, booked.buffers, status, until
        )
        stays = (booked.resource, booked.start) == (requested.resource, requested.start)
        free = model.is_free(requested, self.now, own_key=key)
        there = resource not in model.gone
        if stays:
            may = status == booked.status or (there and free)
        else:
            may = there and free and not model.is_off(requested)
        place = {"startAt": iso(requested.start), "resourceId": self.salon.resources[resource]}
        answer = self.salon.set_status(key, status, **place)
        if resource in model.gone and not stays:
            assert answer.status in {404, 409}
        elif self.agrees(answer, may):
            model.bookings[key] = requested

    @rule(step=STEPS, length=st.integers(1, 6), which=st.integers(0, 2))
    def take_time_off(self, step: int, length: int, which: int) -> None:
        resource = which if which < len(self.model.capacities) else None
        if resource in self.model.gone:
            return
        first = EVENING + step * 30 * MINUTE
        last = first + length * 30 * MINUTE
        whose = {} if resource is None else {"resourceId": self.salon.resources[resource]}
        body = {"startAt": iso(first), "endAt": iso(last)} | whose
        time_off_id = self.api.post("/api/resources/create-time-off", body)["timeOff"]["id"]
        self.model.off[time_off_id] = (resource, first, last)

    @precondition(lambda self: self.model.off)
    @rule()
    def come_back(self) -> None:
        key = min(self.model.off)
        self.api.post("/api/resources/delete-time-off", {"id": key})
        del self.model.off[key]

    @rule(minutes=st.sampled_from([5, 20, 31]))
    def wait(self, minutes: int) -> None:
        self.time.pass_by(minutes=minutes)

    @rule()
    def run_jobs(self) -> None:
        jobs.run(job_kinds.JOB_HANDLERS)
        for booked in self.model.bookings.values():
            if booked.until and booked.until <= self.now and booked.status == "pending_payment":
                booked.status, booked.until = "cancelled", None

    @rule(buffers=st.tuples(st.sampled_from([0, 30]), st.sampled_from([0, 30])))
    def edit_the_service(self, buffers: tuple[int, int]) -> None:
        body = {"bufferBeforeMin": buffers[0], "bufferAfterMin": buffers[1]}
        self.api.post("/api/services/update", {"id": self.salon.service} | body)
        self.model.buffers = buffers

    @precondition(lambda self: len(self.model.gone) + 1 < len(self.model.capacities))
    @rule(rarely=st.integers(0, 5))
    def delete_a_resource(self, rarely: int) -> None:
        if rarely == 0:
            body = {"id": self.salon.resource, "force": True}
            self.api.post("/api/resources/delete", body)
            self.model.gone.add(0)

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        for number, resource in enumerate(self.salon.resources):
            capacity = self.model.capacities[number]
            check_calendars(self.owner.workspace.id, [resource], capacity)

    def teardown(self) -> None:
        for key in getattr(self, "model", Model([], 0, (0, 0), pays=False, zone="UTC")).off:
            self.api.post("/api/resources/delete-time-off", {"id": key})

    @staticmethod
    def agrees(answer: Answer, may: bool) -> bool:
        """Check that an action succeeded if the model allows it, and was refused otherwise.

        Return whether it succeeded.
        """
        assert answer.status == (200 if may else 409), answer.body
        return may


def test_random_histories_match_the_model(api: Api, owner: Owner, time: Time) -> None:
    class Here(Histories):
        pass

    Here.api, Here.owner, Here.time = api, owner, time
    run_state_machine_as_test(Here, settings=examples(60, 3, stateful_step_count=15))


@given(seed=st.integers(0, 10**6))
@examples(40)
def test_every_listed_slot_can_be_booked_and_no_other_time(seed: int, api: Api, time: Time) -> None:
    """Checked through the public API around clock changes, also in zones with half-hour offsets."""
    dice = random.Random(seed)
    time.now = datetime(2027, 3, 12, 12, 7, tzinfo=UTC)
    zone = dice.choice(["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"])
    rules = [
        {
            "weekday": day,
            "intervals": [
                {"start": f"{first:02}:{dice.choice(['00', '30'])}", "end": f"{last % 24:02}:00"}
                for first, last in [(dice.randrange(9), dice.randrange(10, 16)), (18, 26)]
            ],
        }
        for day in ("sat", "sun", "mon")
    ]
    salon = Salon.opened(
        api,
        [{"timezone": zone, "capacity": dice.choice([1, 2])} for _ in range(dice.choice([1, 2]))],
        rules,
        durationMin=dice.choice([20, 60, 150]),
        slotStepMin=dice.choice([30, 45, 60]),
        bufferBeforeMin=dice.choice([0, 30]),
        bufferAfterMin=dice.choice([0, 45]),
        minNoticeMin=dice.choice([0, 900]),
        horizonDays=dice.choice([2, 60]),
    )
    first, last = "2027-03-12T12:00:00Z", "2027-03-15T23:00:00Z"

    def listed_slots() -> dict[str, dict[str, Any]]:
        found_slots = salon.search(first=first, to=last, timezone=zone)["slots"]
        return {slot["startAt"]: slot for slot in found_slots}

    body = {"startAt": "2027-03-14T01:30", "endAt": "2027-03-14T08:00"}
    if dice.random() < 0.5:
        off = api.post("/api/resources/create-time-off", body)["timeOff"]["id"]
    else:
        off = None
    for slot in dice.sample(sorted(listed_slots()), min(4, len(listed_slots()))):
        assert salon.try_to_book(slot).status in {200, 409}  # one slot may overlap another
    slots = listed_slots()
    tried = dice.sample(sorted(slots), min(5, len(slots)))
    begin = datetime(2027, 3, 12, 12, 10, tzinfo=UTC)
    tried += [iso(begin + timedelta(minutes=5 * dice.randrange(12 * 82))) for _ in range(5)]
    tried += [iso(datetime.fromisoformat(start) + timedelta(minutes=15)) for start in tried[:3]]
    for start in tried:
        key = start if start in slots else start.replace("Z", ".000Z")
        for number, resource in enumerate(salon.resources):
            free = key in slots and resource in slots[key]["resourceIds"]
            answer = salon.try_to_book(start, f"C {number}", resourceId=resource)
            assert answer.status == (200 if free else 409), (start, answer.body)
            if free:
                salon.set_status(answer.data["booking"]["id"], "cancelled")
    assert listed_slots() == slots
    if off:
        api.post("/api/resources/delete-time-off", {"id": off})

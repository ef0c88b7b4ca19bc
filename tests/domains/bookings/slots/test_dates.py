"""Slots of a service with fixed starts, and of others while such a start takes the resource."""

from chalicelib.domains.bookings.rules.slots import (
    Calendar,
    NoSlotReason,
    Query,
    slots,
    slots_at,
    union,
)
from chalicelib.domains.services.rules.starts import DatedStart
from tests.domains.bookings.slots.cases import EVER, calendar, hours, ms

DAY, MINUTE = "2027-01-18", 60_000
CLASS = EVER._replace(service_id="class", fixed_starts=True)
OTHER = EVER._replace(service_id="other", step_min=30)
NOW = ms(f"{DAY}T00:00Z")


def at(time: str) -> int:
    return ms(f"{DAY}T{time}Z")


def dated(time: str, minutes: int = 60, buffer: int = 0) -> DatedStart:
    start = at(time)
    return DatedStart("class", start, start + minutes * MINUTE, buffer, buffer)


def of(*found: DatedStart, capacity: int = 8) -> Calendar:
    return calendar("UTC", hours("09:00-18:00"), starts=found, capacity=capacity)


def between(first: str, last: str) -> Query:
    return Query(at(first), at(last), NOW)


def test_a_class_is_offered_at_its_dates_of_the_range_only() -> None:
    resource = of(dated("10:00"), dated("12:00"), dated("14:00"))
    found = slots(CLASS, resource, between("10:30", "13:00"))
    assert (found.seats, found.reason) == ({at("12:00"): 8}, None)
    none = slots(CLASS, resource, between("15:00", "17:00"))
    assert (none.seats, none.reason) == ({}, NoSlotReason.NO_STARTS)


def test_of_given_starts_those_with_a_date_are_bookable() -> None:
    resource = of(dated("10:00"), dated("12:00"), dated("14:00"))
    asked = [at(time) for time in ("09:00", "10:00", "11:00", "12:00", "13:00")]
    assert {*slots_at(CLASS, resource, asked, now=NOW).seats} == {at("10:00"), at("12:00")}
    assert {*slots_at(CLASS, resource, asked[1:2], now=NOW).seats} == {at("10:00")}
    none = slots_at(CLASS, resource, [at("09:00")], now=NOW)
    assert (none.seats, none.reason) == ({}, NoSlotReason.NO_STARTS)


def test_a_date_of_another_service_is_no_date() -> None:
    other = dated("10:00")._replace(service_id="yoga")
    assert slots(CLASS, of(other), between("09:00", "17:00")).reason is NoSlotReason.NO_STARTS


def test_a_date_takes_its_resource_from_other_services_with_its_buffers() -> None:
    resource = of(dated("12:00", buffer=30))
    offered = slots(OTHER, resource, between("10:00", "14:00")).seats
    assert [*offered] == [at(time) for time in ("10:00", "10:30", "13:30", "14:00")]
    wide = OTHER._replace(buffer_before_min=30, buffer_after_min=30)
    offered = slots(wide, resource, between("10:00", "14:00")).seats
    assert [*offered] == [at(time) for time in ("10:00", "14:00")]
    one_sided = OTHER._replace(buffer_before_min=60)
    offered = slots(one_sided, resource, between("10:00", "14:30")).seats
    assert [*offered] == [at(time) for time in ("10:00", "10:30", "14:30")]
    assert [*slots(OTHER, of(), between("10:00", "10:30")).seats] == [at("10:00"), at("10:30")]
    assert set(slots(OTHER, of(), between("10:00", "10:30")).seats.values()) == {8}


def test_a_date_of_a_class_that_overlaps_another_of_its_own_length_is_offered() -> None:
    found = slots(CLASS, of(dated("10:00"), dated("11:00")), between("09:00", "12:00")).seats
    assert found == {at("10:00"): 8, at("11:00"): 8}


def test_places_are_named_for_dates_only() -> None:
    resources = [of(dated("10:00")), of(dated("10:00"))._replace(resource_id="second")]
    (slot,) = union(CLASS, resources, between("10:00", "10:30")).slots
    assert slot.places == 16
    (first, *_) = union(OTHER, resources[:1], between("13:00", "13:30")).slots
    assert first.places is None


def test_a_date_that_the_service_has_outgrown_is_not_offered() -> None:
    resource = of(dated("10:00", buffer=15))
    for longer in (
        CLASS._replace(duration_min=90),
        CLASS._replace(buffer_before_min=30),
        CLASS._replace(buffer_after_min=30),
    ):
        found = slots(longer, resource, between("09:00", "12:00"))
        assert found.reason is NoSlotReason.NO_STARTS
    fits = CLASS._replace(buffer_before_min=15, buffer_after_min=15)
    assert [*slots(fits, resource, between("09:00", "12:00")).seats] == [at("10:00")]

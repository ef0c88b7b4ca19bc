"""Stored bookings."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from chalicelib.core import clock
from chalicelib.domains.bookings.store.bookings import BOOKINGS, STATUSES, BookingRow
from chalicelib.engine.unit import run_unit

WORKSPACE = "w"
BEGUN = datetime(2027, 3, 1, 9, tzinfo=UTC)


def new_booking(number: int, dice: random.Random) -> BookingRow:
    start = BEGUN + timedelta(hours=dice.randrange(24 * 20))
    minutes = dice.choice([30, 60, 1440])
    return BOOKINGS.new(
        WORKSPACE,
        status=dice.choice(STATUSES),
        service_id=dice.choice(["s1", "s2"]),
        service_name="Cut",
        resource_id=dice.choice(["r1", "r2", "r3"]),
        resource_name="Ada",
        starts_at=start,
        ends_at=start + timedelta(minutes=minutes),
        duration_min=minutes,
        timezone="Europe/Moscow",
        price=0,
        client_id=dice.choice(["c1", "c2", "c3"]),
        client_name=f"{dice.choice(['Ёлкина', 'Ada', 'Bob'])} {number}",
        client_phone=f"+7495123456{number % 10}",
        phone_digits=f"8495123456{number % 10}",
        source="api",
    )


@pytest.fixture
def rows(database: None) -> list[BookingRow]:
    """Forty bookings, created one minute apart."""
    dice = random.Random(7)
    booking_rows = []
    for number in range(40):
        with clock.using(lambda number=number: BEGUN + timedelta(minutes=number)):
            row = new_booking(number, dice)
            run_unit(WORKSPACE, None, lambda unit, row=row: unit.create(row))
        booking_rows.append(row)
    return booking_rows

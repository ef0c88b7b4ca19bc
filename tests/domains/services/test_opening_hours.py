"""How opening hours are stored, and read with their resources."""

from datetime import date, timedelta

import pytest

from chalicelib.domains.services.rules.open_windows import Interval, Rule, Schedule, parse
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.engine.reading import Cost, fetch
from chalicelib.engine.unit import run_unit
from tests.domains.services.rows import EVENT, WORKSPACE, store_resource

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


def largest_schedule() -> Schedule:
    """Return a schedule of 400 dates with 24 intervals each."""
    hours = [Interval(f"{hour:02}:00", f"{hour:02}:50") for hour in range(24)]
    first = date(2027, 1, 1)
    return parse([Rule(date=first + timedelta(days=d), intervals=hours) for d in range(400)])


def test_the_largest_schedule_is_stored_and_read_with_its_resource() -> None:
    first, second = store_resource(), store_resource("Boris")
    schedule = largest_schedule()
    run_unit(
        WORKSPACE, EVENT, lambda unit: opening_hours.save_schedule(unit, first, schedule) and None
    )
    gone = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
    pairs = opening_hours.find_with_schedules(WORKSPACE, [second.id, gone, first.id])
    assert [(row.id, opening_hours.schedule_of(hours)) for row, hours in pairs] == [
        (second.id, Schedule()),
        (first.id, schedule),
    ]


def test_fifty_resources_and_their_hours_are_read_in_one_request() -> None:
    ids = [store_resource(str(number)).id for number in range(50)]
    cost = Cost()
    keys = [RESOURCES.key(WORKSPACE, record_id=resource_id) for resource_id in ids]
    fetch([*keys, *[key._replace(pk=key.pk + "#OTHER") for key in keys]], cost)
    assert cost.round_trips == 1
    assert len(opening_hours.find_with_schedules(WORKSPACE, ids)) == 50

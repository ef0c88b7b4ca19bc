"""A report of two years takes few requests, and a booking writes nothing for it."""

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.ids import first_id_at, new_id
from chalicelib.domains.reports.rules import figures
from chalicelib.domains.reports.rules.figures import BookedFacts, Counts, Movement
from chalicelib.domains.reports.store import sums
from chalicelib.domains.reports.store.sums import StateRow, Week, WeekRow
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.salon import Salon

BOOKINGS, STAFF, SERVICES, CLIENTS, DAYS, RUNS = 50_000, 20, 12, 4_000, 730, 5
ZONE = "Europe/Moscow"


def facts(staff: list[str], today: date) -> Iterator[BookedFacts]:
    """Yield random bookings of two years."""
    chance = random.Random(1)
    services, clients = ([new_id() for _ in range(n)] for n in (SERVICES, CLIENTS))
    for _ in range(BOOKINGS):
        day, price = (
            today - timedelta(days=chance.randrange(DAYS)),
            chance.randrange(5, 60) * 10_000,
        )
        yield BookedFacts(
            day=day,
            status=chance.choices(["completed", "confirmed", "cancelled"], (85, 5, 10))[0],
            has_lapsed=False,
            service_id=chance.choice(services),
            resource_id=chance.choice(staff),
            source=chance.choice(["public", "console", "chat", "api", "agent"]),
            client_id=chance.choice(clients),
            price=price,
            minutes=60,
            due=0,
            money=[Movement(day, figures.noted("cash"), price)],
        )


def store_sums(workspace_id: str, staff: list[str]) -> None:
    """Store the sums of bookings as if they were counted."""
    weeks: defaultdict[str, Counts] = defaultdict(dict)
    for booking in facts(staff, clock.local_day(clock.now(), ZONE)):
        for day, numbers in figures.counts_of(booking).items():
            monday = figures.week_of(date.fromisoformat(day)).isoformat()
            of_day = weeks[monday].setdefault(day, {})
            for measure, number in numbers.items():
                of_day[measure] = of_day.get(measure, 0) + number
    pk = sums.partition(workspace_id)
    names = {f"{figures.RESOURCE}:{each}": "Stylist" for each in staff}
    for monday, days in weeks.items():
        WeekRow(pk, monday, packed=Week(days, names).pack()).save()
    StateRow(
        *(pk, sums.STATE),
        timezone=ZONE,
        cursor=first_id_at(clock.now()),
        resource_ids=staff,
        read_at=clock.now(),
        has_job=True,
    ).save()


@pytest.mark.store
def test_a_report_of_two_years_and_50_000_bookings_takes_six_requests(
    owner: Owner, api: Api, time_stopped: Time, record_property: Callable[[str, Any], None]
) -> None:
    salon = Salon.opened(api, [{"name": f"Stylist {number}"} for number in range(STAFF)])
    store_sums(owner.workspace.id, salon.resources)
    time_stopped.pass_by(minutes=30)
    today = clock.local_day(clock.now(), ZONE)
    period = {"from": str(today - timedelta(days=DAYS)), "to": str(today)}

    def measure(name: str, runs: int) -> Any:
        fastest = float("inf")
        for _ in range(runs):
            begin = time.process_time()
            with metering() as usage:
                read = call_console(owner.workspace.id, "get_money_report", **period)
            fastest = min(fastest, time.process_time() - begin)
        values = {"requests": usage.round_trips, "waves": usage.waves, "units": usage.reads}
        used = {"name": name, **values, "ms": fastest * 1000}
        record_property("usage", json.dumps(used))
        return read["report"], usage

    report, usage = measure("nothing has changed", RUNS)
    assert report["isComplete"]
    assert report["totals"]["bookings"] == BOOKINGS
    assert report["totals"]["newClients"] == CLIENTS
    assert len(report["staff"]) == STAFF
    assert usage.round_trips <= 6, usage.calls
    salon.book("2027-01-15T10:00", ignoreSchedule=True)
    report, _ = measure("a booking was made", 1)
    assert report["totals"]["bookings"] == BOOKINGS + 1
    # The change of the last minutes is read again, and known.
    _, usage = measure("the next one", RUNS)
    assert usage.round_trips <= 6, usage.calls


@pytest.fixture
def time_stopped(time: Time) -> Time:
    """The stopped clock, beside the module of this name."""
    return time

"""Cost of finding slots and listing bookings, without the look-up of the key."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.ids import new_id
from chalicelib.core.operations import load_all
from chalicelib.domains.bookings.operations.free_slots import MAX_SLOTS
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.bookings.store.calendar_days import CalendarDays
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.unit import run_unit
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import metering
from infra.bench.leads import call, make_workspace
from infra.local.seed import (
    BOOKINGS_A_CLIENT,
    FIRST_MADE_AT,
    FIRST_PHONE,
    resource_id,
    service_id,
)

COUNTS = (20_000,)
MONDAY = datetime(2027, 3, 1, tzinfo=UTC)
DAYS = 31
BOOKINGS_A_MONTH = 500
WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
REPEATS = 7
ABOUT = [
    "## Bookings, on DynamoDB Local",
    "",
    "Whole operations, without the unit and the round trip for the key. Slots take an hour and",
    f"start every 30 minutes from 8:00 to 24:00 on {DAYS} days. Each resource has",
    f"{BOOKINGS_A_MONTH} bookings of 45 minutes. A booking takes about 1 KB, and a list shows 20.",
    "Times are medians of warm calls.",
    "",
    "| call | slots or matches | units | round trips | ms |",
    "|---|---|---|---|---|",
]


def section() -> str:
    """Measure and return this section of the page."""
    with database.seeded({"bookings": COUNTS}, in_memory=True):
        load_all()
        rows = [*_slots(1), *_slots(10), *_booking(), *(r for c in COUNTS for r in _lists(c))]
    return "\n".join([*ABOUT, *rows, ""])


def _slots(resources: int) -> Iterator[str]:
    workspace, service = _salon(resources)
    last = MONDAY + timedelta(days=DAYS - 1)
    dates = {"from": f"{MONDAY:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
    wanted = {"serviceId": service, **dates, "limit": MAX_SLOTS}
    with clock.using(lambda: MONDAY - timedelta(days=1)):
        yield _line(
            f"slots of {DAYS} days, {resources} resource{'s' * (resources > 1)}",
            workspace,
            "get_available_slots",
            wanted,
            lambda data: len(data["slots"]),
        )


def _booking() -> Iterator[str]:
    """Create and move a booking in a month that is half full."""
    workspace, service = _salon(1)
    with clock.using(lambda: MONDAY - timedelta(days=1)):
        wanted = {"serviceId": service, "from": f"{MONDAY:%Y-%m-%d}"}
        first, second, *_ = call(workspace, "get_available_slots", wanted)["slots"]
        client = {"name": "Ada", "email": "ada@example.com"}
        body = {"serviceId": service, "startAt": first["startAt"], "client": client}
        with metering() as usage:
            created = call(workspace, "create_booking", body)["booking"]
        yield f"| book one of these slots | | {usage.units:,.0f} | {usage.round_trips} | |"
        body = {"id": created["id"], "startAt": second["startAt"]}
        with metering() as usage:
            call(workspace, "reschedule_booking", body)
        yield f"| move the booking | | {usage.units:,.0f} | {usage.round_trips} | |"


def _salon(resources: int) -> tuple[str, str]:
    """Create a service with resources that have bookings throughout a month.

    Returns:
        The ids of the workspace and of the service.
    """
    workspace = f"bench-salon-{new_id()}"
    make_workspace(workspace)
    ids = []
    for number in range(resources):
        body: dict[str, Any] = {"name": f"Resource {number}", "timezone": "UTC"}
        ids.append(call(workspace, "create_resource", body)["resource"]["id"])
        rules = [{"weekdays": WEEK, "start": "08:00", "end": "24:00"}]
        call(workspace, "set_availability", {"resourceId": ids[-1], "rules": rules})
        _fill(workspace, ids[-1], number)
    body = {
        "name": "Cut",
        "durationMin": 60,
        "slotStepMin": 30,
        "horizonDays": 365,
        "resourceIds": ids,
    }
    return workspace, call(workspace, "create_service", body)["service"]["id"]


def _fill(workspace: str, resource: str, number: int) -> None:
    """Add 16 or 17 bookings of 45 minutes to each day of the resource."""
    for day in range(DAYS):
        midnight = MONDAY + timedelta(days=day)
        count = (day + 1) * BOOKINGS_A_MONTH // DAYS - day * BOOKINGS_A_MONTH // DAYS
        starts = [midnight + timedelta(minutes=50 * n + 10 * (number % 5)) for n in range(count)]
        entries = [
            BusyEntry(new_id(), epoch_ms(start), epoch_ms(start) + 45 * 60_000)
            for start in (each + timedelta(hours=8) for each in starts)
        ]

        def stage(unit: Any, entries: list[BusyEntry] = entries) -> None:  # noqa: ANN401  a unit
            days = CalendarDays(workspace, [(resource, entry.buffered) for entry in entries])
            for entry in entries:
                days.add(resource, entry)
            days.stage(unit)

        run_unit(workspace, None, stage)


def _lists(count: int) -> Iterator[str]:
    workspace = database.workspace(count)
    make_workspace(workspace)
    middle = count // 2
    begin = FIRST_MADE_AT + middle * timedelta(minutes=10)  # bookings are made every ten minutes
    client = middle // BOOKINGS_A_CLIENT
    phone = {"q": f"8 {FIRST_PHONE % 10**10 + client}"}
    month = {"from": f"{begin:%Y-%m-%d}", "to": f"{begin + timedelta(days=30):%Y-%m-%d}"}
    day = {"from": month["from"], "to": month["from"]}
    one = {"resourceId": resource_id(3)}
    calls: dict[str, dict[str, Any]] = {
        "newest by start": {},
        "newest by creation": {"sort": "createdAtDesc"},
        "page 100": {"page": 100},
        "one status": {"status": "no_show"},
        "one resource": one,
        "one service": {"serviceId": service_id(1)},
        "a month": month,
        "a month of a resource": {**month, **one},
        "a month of a resource, one status": {**month, **one, "status": "no_show"},
        "a month, by creation": {**month, "sort": "createdAtDesc"},
        "a phone number in a month": {**month, **phone},
        "a name on a day": {**day, "q": f"client {client // 1000:03}"},
        "a phone number at any time": phone,
    }
    for label, arguments in calls.items():
        yield _line(
            f"{label}, of {count:,}",
            workspace,
            "list_bookings",
            arguments,
            lambda data: data["pagination"]["total"],
        )
    whole = Cost()
    list(Partition(BOOKINGS.partition(workspace), whole).items())
    yield f"| reading all bookings naively | {count:,} | {whole.units:,.0f} | | |"


def _line(
    label: str,
    workspace: str,
    operation: str,
    arguments: dict[str, Any],
    found: Any,  # noqa: ANN401  a function of the answer's data
) -> str:
    with metering() as usage:
        data = call(workspace, operation, arguments)
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call(workspace, operation, arguments)
        times.append(time.perf_counter() - started)
    ms = sorted(times)[len(times) // 2] * 1000
    units, trips = usage.units, usage.round_trips
    return f"| {label} | {found(data):,} | {units:,.0f} | {trips} | {ms:,.0f} |"

"""Database requests of each operation, and the number of times that it waits for requests.

``make update`` records the counts of new operations, and those that were exceeded, in
``docs/request_counts.json``. ``make bench ARGS=round-trips`` records all of them anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from chalicelib.transports.api_docs import samples
from infra.bench.dynamodb.usage import metering
from infra.bench.dynamodb.write_units import WrittenRow
from tests.conftest import Time
from tests.contract.conftest import (
    EACH,
    ExampleRunner,
    every_example,
    shell,
    succeeded,
)

RECORDED = Path("docs", "request_counts.json")
ROWS = Path("docs", "written_rows.json")
LATENCIES = (0.004, 0.05, 0.5)
"""Seconds added to each request, so that requests that are sent side by side overlap.

A busy machine may start a thread late. The longer ones are for calls with too many waves.
"""


@pytest.fixture(autouse=True)
def needed_bot(request: pytest.FixtureRequest) -> None:
    """A bot for the operation that needs one. With a bot, each booking makes a job more."""
    if "link_client_chat" in request.node.name:
        request.getfixturevalue("telegram")


CURE = "If the change is worth it, run make update and commit docs/request_counts.json."


def recorded() -> dict[str, dict[str, float]]:
    """Return the recorded counts by operation."""
    counts: dict[str, dict[str, float]]
    counts = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return counts


def holds(name: str, **counts: float) -> bool:
    """Whether none of an operation's counts is larger than the recorded one."""
    known = recorded().get(name, {})
    return all(count <= known.get(what, -1) for what, count in counts.items())


def record(name: str, **counts: float) -> None:
    """Replace some of an operation's recorded counts."""
    known = recorded()
    known[name] = known.get(name, {}) | counts
    write(known)


def write(counts: dict[str, dict[str, float]]) -> None:
    known_counts = {name: counts[name] for name in sorted(counts) if name in EACH}
    RECORDED.write_text(json.dumps(known_counts, indent=1) + "\n")


def record_rows(name: str, rows: list[WrittenRow]) -> None:
    """Replace the recorded rows of an operation, each with its bytes, indexes and write units."""
    known = json.loads(ROWS.read_text()) if ROWS.exists() else {}
    known[name] = [
        [r.table.rpartition("-")[2], r.kind, r.action, r.size, r.indexes, r.units] for r in rows
    ]
    current_rows = {name: known[name] for name in sorted(known) if name in EACH}
    lines = (
        f"{json.dumps(name)}: {json.dumps(rows, ensure_ascii=False)}"
        for name, rows in current_rows.items()
        if rows
    )
    ROWS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def call(runner: ExampleRunner, name: str) -> None:
    """Run the example of an operation, which must succeed."""
    answer = shell(runner, samples.curl(EACH[name]))
    assert succeeded(EACH[name], answer)


@pytest.mark.store
@every_example
def test_an_operation_sends_no_more_requests_to_the_database_than_recorded(
    name: str,
    new_runner: Any,
    time: Time,
    update_snapshots: bool,
    is_dynamodb_local: bool,
) -> None:
    if is_dynamodb_local:  # Only its capacity units are real.
        runner = new_runner()
        with metering() as usage:
            call(runner, name)
        if update_snapshots:
            record(name, readUnits=usage.reads, writeUnits=usage.writes)
        return
    runner = new_runner()
    time.pass_by(seconds=1)  # A change at the time of the one before would write fewer entries.
    with metering(rows=True) as usage:  # The process then has an instance's caches.
        call(runner, name)
    units = sum(row.units for row in usage.rows)
    # A count that still holds is not replaced: a run may happen to need fewer requests.
    if update_snapshots and not holds(name, awsWriteUnits=units):
        record(name, awsWriteUnits=units)
        record_rows(name, usage.rows)
    assert holds(name, awsWriteUnits=units), (
        f"{name} writes {units} units, more than recorded: {usage.rows}. {CURE}"
    )
    for latency in LATENCIES if "waves" in recorded()[name] else LATENCIES[1:2]:
        runner = new_runner()
        with metering(latency) as usage:
            call(runner, name)
        counts = {"requests": usage.round_trips, "waves": usage.waves}
        if holds(name, **counts):
            break
    if update_snapshots and not holds(name, **counts):
        record(name, **counts)
    assert holds(name, **counts), (
        f"{name} sends {counts}, more than recorded: {usage.calls}, {usage.requests}. {CURE}"
    )


def test_the_recorded_operations_are_those_of_the_reference(update_snapshots: bool) -> None:
    if update_snapshots:  # The other tests add what is new.
        write(recorded())
        return
    assert sorted(recorded().keys() ^ EACH.keys()) == [], "New or gone: run make update."

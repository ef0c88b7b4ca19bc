"""Database requests of each operation, and the number of times that it waits for requests.

`make bench ARGS=round-trips` records the counts in ``docs/request_counts.json``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from chalicelib.transports.api_docs import samples
from infra.bench.dynamodb.usage import metering
from infra.bench.dynamodb.write_units import WrittenRow
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


def recorded() -> dict[str, dict[str, float]]:
    """Return the recorded counts by operation."""
    counts: dict[str, dict[str, float]] = json.loads(RECORDED.read_text())
    return counts


def record(name: str, **counts: float) -> None:
    """Replace some of an operation's recorded counts."""
    known = recorded() if RECORDED.exists() else {}
    known[name] = known.get(name, {}) | counts
    known_counts = {name: known[name] for name in sorted(known) if name in EACH}
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
    pytestconfig: pytest.Config,
    is_dynamodb_local: bool,
) -> None:
    updates = pytestconfig.getoption("--update-snapshots")
    if is_dynamodb_local:  # Only its capacity units are real.
        runner = new_runner()
        with metering() as usage:
            call(runner, name)
        if updates:
            record(name, readUnits=usage.reads, writeUnits=usage.writes)
        return
    runner = new_runner()
    with metering(rows=True) as usage:  # The process then has an instance's caches.
        call(runner, name)
    units = sum(row.units for row in usage.rows)
    if updates:
        record(name, awsWriteUnits=units)
        record_rows(name, usage.rows)
    assert units <= recorded()[name]["awsWriteUnits"], usage.rows
    for latency in LATENCIES[1:] if updates else LATENCIES:
        runner = new_runner()
        with metering(latency) as usage:
            call(runner, name)
        if updates:
            record(name, requests=usage.round_trips, waves=usage.waves)
        known = recorded()[name]
        if usage.round_trips <= known["requests"] and usage.waves <= known["waves"]:
            break
    assert usage.round_trips <= known["requests"], usage.calls
    assert usage.waves <= known["waves"], usage.requests


def test_the_recorded_operations_are_those_of_the_reference() -> None:
    assert recorded().keys() == EACH.keys()

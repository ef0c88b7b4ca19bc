"""Requests to the database, waves and capacity units of every operation.

The contract tests call each operation with its example of the reference. They record the counts in
``docs/request_counts.json``, and fail if a later change needs more requests or waves.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from infra.bench.dynamodb import proxied
from infra.local import document_tables

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "request_counts.json"
MEASURED = (RECORDED, ROOT / "docs" / "written_rows.json")
SWEEP = ("-m", "pytest", "-q", "tests/contract/test_request_counts.py", "--update-snapshots")
ABOUT = [
    "## Requests to the database by operation",
    "",
    "Each operation is called over HTTP with its example of the reference, in a workspace with one",
    "record of each kind, by a process that has answered the same call before. The look-up of the",
    "key is included. Requests that are sent side by side are one wave, so the waves decide how",
    "long a call waits: on AWS a wave takes 3 to 6 ms, and a transaction 10 to 20 ms. Read units",
    "are measured on DynamoDB Local, write units are computed (see below).",
    "",
]
HEADING = [
    "| operation | requests | waves | read units | write units |",
    "|---|---:|---:|---:|---:|",
]
TABLE = "requests by operation"
"""The name of the table, which ``make update`` writes, too."""


def section() -> str:
    """Measure and return this section of the page.

    Requests and waves are counted on moto, then the units, and eight calls again by a proxy.
    """
    for path in MEASURED:
        path.unlink(missing_ok=True)  # Otherwise counts that still hold are kept.
    for database in ((), ("--dynamodb-local",)):
        subprocess.run([sys.executable, *SWEEP, *database], cwd=ROOT, check=True, stdout=sys.stderr)
    return "\n".join([*ABOUT, document_tables.table(TABLE, lines()), "", proxied.table()])


def lines() -> Iterator[str]:
    """Yield the lines of the table of all operations, as their counts are recorded."""
    recorded = json.loads(RECORDED.read_text())
    yield "| operation | requests | waves | read units | write units |"
    yield "|---|---:|---:|---:|---:|"
    for name, counts in sorted(recorded.items(), key=lambda row: (-row[1]["waves"], row[0])):
        yield (
            f"| {name} | {counts['requests']} | {counts['waves']} | {local(counts, 'readUnits')} "
            f"| {counts['awsWriteUnits']} |"
        )


def local(counts: dict[str, float], name: str) -> str:
    """Return the units on DynamoDB Local, or "" for an operation that was not measured there."""
    return f"{counts[name]:g}" if name in counts else ""

"""Database of the benchmarks: DynamoDB Local, with records of its own."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from chalicelib.core.settings import settings
from chalicelib.engine import connection, tables
from infra.bench.dynamodb import bulk
from infra.local import dynamodb, workarounds
from infra.local.stack import ENDPOINT, LOCAL_AWS

READ_TIMEOUT_SECONDS = 60
"""Read timeout. DynamoDB Local counts the rows of a table to describe it, which can take long."""
FOLDER = Path(__file__).parents[3] / "build" / "bench" / "data"


def workspace(count: int) -> str:
    """Return the id of the workspace with ``count`` records of each noun."""
    return f"bench-{count}"


@contextmanager
def seeded(
    record_counts: Mapping[str, Sequence[int]], *, in_memory: bool = False
) -> Iterator[dynamodb.Database]:
    """Run the database during a ``with`` block, create records, and yield the database.

    ``record_counts`` are the numbers of records by noun; each number has a workspace of its own.
    With ``in_memory``, nothing is kept. Records are then written much faster than to a file.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    connection.READ_SECONDS = READ_TIMEOUT_SECONDS
    database = dynamodb.start(FOLDER, in_memory=in_memory)
    try:
        os.environ.update(LOCAL_AWS | {ENDPOINT: database.endpoint, "RATE_LIMIT_SCALE": "1000"})
        settings.cache_clear()
        tables.ensure_tables()
        workarounds.apply(in_memory=in_memory)
        for noun, counts in record_counts.items():
            for count in counts:
                _seed(noun, count)
        yield database
    finally:
        database.stop()


def cpu_seconds(database: dynamodb.Database) -> float:
    """Return the CPU seconds that the database has used. Its process is a child of its supervisor.

    Linux counts them in hundredths.
    """
    lists = Path("/proc", str(database.pid), "task").glob("*/children")
    children = [child for each in lists for child in each.read_text().split()]
    fields = [Path("/proc", child, "stat").read_text().rpartition(")")[2] for child in children]
    return sum(int(ticks) for each in fields for ticks in each.split()[11:13]) / 100


def _seed(noun: str, count: int) -> None:
    label = f"seeding {count:,} {noun}"
    with click.progressbar(length=count, label=label, file=sys.stderr) as bar:
        for done in bulk.seed(workspace(count), noun, count):
            bar.update(done)

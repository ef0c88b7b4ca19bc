"""DynamoDB Local in memory, with records for the benchmarks."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from chalicelib.core.settings import settings
from chalicelib.engine import connection, tables
from infra.bench.dynamodb import bulk
from infra.local import dynamodb, workarounds
from infra.local.stack import ENDPOINT, LOCAL_AWS

READ_TIMEOUT_SECONDS = 60
"""Read timeout. DynamoDB Local counts the rows of a table to describe it, which can take long."""


def workspace(count: int) -> str:
    """Return the id of the workspace with ``count`` records."""
    return f"bench-{count}"


@contextmanager
def seeded(noun: str, counts: Sequence[int]) -> Iterator[None]:
    """Run the database during a ``with`` block, with a workspace for each number of records."""
    connection.READ_SECONDS = READ_TIMEOUT_SECONDS
    database = dynamodb.start(None, in_memory=True)
    try:
        os.environ.update(LOCAL_AWS | {ENDPOINT: database.endpoint, "RATE_LIMIT_SCALE": "1000"})
        settings.cache_clear()
        tables.ensure_tables()
        workarounds.apply(in_memory=True)
        for count in counts:
            label = f"seeding {count:,} {noun}"
            with click.progressbar(length=count, label=label, file=sys.stderr) as bar:
                for written_count in bulk.seed(workspace(count), noun=noun, count=count):
                    bar.update(written_count)
        yield
    finally:
        database.stop()

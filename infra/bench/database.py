"""Database of the benchmarks: DynamoDB Local, seeded once and kept in build/."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from chalicelib.core.settings import settings
from chalicelib.engine import connection, tables
from chalicelib.engine.listing import counters
from infra.bench import bulk
from infra.local import dynamodb, workarounds
from infra.local.seed import NOUNS
from infra.local.stack import ENDPOINT, LOCAL_AWS

PATIENCE_SECONDS = 60
"""Read timeout. To describe a table, DynamoDB Local counts its rows, which can take long."""
FOLDER = Path(__file__).parents[2] / "build" / "bench" / "data"


def workspace(count: int) -> str:
    """Return the id of the workspace with ``count`` records of each noun."""
    return f"bench-{count}"


@contextmanager
def seeded(wanted: Mapping[str, Sequence[int]], *, in_memory: bool = False) -> Iterator[None]:
    """Run a database with the wanted numbers of records during a ``with`` block.

    Missing records are seeded. With ``in_memory`` these are all records, every time. Scattered rows
    such as look-ups are nevertheless written much faster to memory than to a large file.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    connection.READ_SECONDS = PATIENCE_SECONDS
    database = dynamodb.start(FOLDER, in_memory=in_memory)
    try:
        os.environ.update(LOCAL_AWS | {ENDPOINT: database.endpoint, "RATE_LIMIT_SCALE": "1000"})
        settings.cache_clear()
        tables.ensure_tables()
        workarounds.apply()
        for noun, counts in wanted.items():
            for count in counts:
                _seed(noun, count)
        yield
    finally:
        database.stop()


def _seed(noun: str, count: int) -> None:
    total = counters.read(workspace(count), NOUNS[noun][0].noun)[counters.TOTAL]
    if total == count:
        return
    if total:
        msg = f"There are {total:,} {noun} in place of {count:,}: remove {FOLDER} and begin again"
        raise click.ClickException(msg)
    label = f"seeding {count:,} {noun}"
    with click.progressbar(length=count, label=label, file=sys.stderr) as bar:
        for done in bulk.seed(workspace(count), noun, count):
            bar.update(done)

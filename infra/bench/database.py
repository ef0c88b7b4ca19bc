"""The database that list costs are measured on: DynamoDB Local, seeded once and kept in build/."""

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
"""DynamoDB Local counts a table's rows when it describes it, which takes long in a large one."""
FOLDER = Path(__file__).parents[2] / "build" / "bench" / "data"


def workspace(count: int) -> str:
    """Return the workspace that has this many records of a noun."""
    return f"bench-{count}"


@contextmanager
def seeded(wanted: Mapping[str, Sequence[int]], *, in_memory: bool = False) -> Iterator[None]:
    """Serve a database with so many records of each noun for the length of a ``with`` block.

    What is missing is seeded. In memory that is everything, but rows that lie scattered, such as
    look-ups, are written far faster than to a large file.
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

"""The database that list costs are measured on: DynamoDB Local, seeded once and kept in build/."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from chalicelib.store import counters, tables
from infra import dynamodb, workarounds
from infra.local_stack import ENDPOINT, LOCAL_AWS
from infra.seed import seed

FOLDER = Path(__file__).parents[2] / "build" / "bench" / "data"
COUNTS = (1_000, 10_000, 100_000)


def workspace(count: int) -> str:
    """Return the workspace that has this many products."""
    return f"bench-{count}"


@contextmanager
def seeded() -> Iterator[None]:
    """Serve the seeded database for the length of a ``with`` block; seed what is missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    database = dynamodb.start(FOLDER)
    try:
        os.environ.update(LOCAL_AWS | {ENDPOINT: database.endpoint})
        tables.ensure_tables()
        workarounds.apply()
        for count in COUNTS:
            if _is_whole(count):
                continue
            label = f"seeding {count:,} products"
            with click.progressbar(length=count, label=label, file=sys.stderr) as bar:
                for done in seed(workspace(count), "products", count):
                    bar.update(done)
        yield
    finally:
        database.stop()


def _is_whole(count: int) -> bool:
    return counters.read(workspace(count), "PRODUCT")[counters.TOTAL] == count

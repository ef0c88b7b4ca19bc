"""Seed a benchmark's database with bulk writes, 25 rows in a request.

The rows are the same that units of work would write. If a run is killed, start again.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from chalicelib.core import clock
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.tables import Record, Row
from infra.local.seed import last_moment, parents, records
from infra.operator.transfer.batch_writes import BatchWriter

CHUNK = 500


def seed(workspace_id: str, *, noun: str, count: int) -> Iterator[int]:
    """Write ``count`` records with the records they refer to, and yield the number in each step."""
    last = last_moment(noun, count)
    counts: dict[str, Counter[str]] = {}
    with clock.using(lambda: last), BatchWriter() as writer:
        all_records = chain(
            parents(workspace_id, noun=noun, count=count),
            records(workspace_id, noun=noun, count=count, seed=1),
        )
        while chunk := list(islice(all_records, CHUNK)):
            for record in chunk:
                for row in _rows(workspace_id, record):
                    writer.put(type(row), row.serialize())
                listing = LISTINGS[type(record)]
                counts.setdefault(listing.noun, Counter()).update(listing.counters(record.facets))
            yield len(chunk)
    for counted_listing, changes in counts.items():
        for row, actions in counters.shard_updates(
            workspace_id, noun=counted_listing, deltas=changes
        ):
            row.update(actions)


def _rows(workspace_id: str, record: Record) -> Iterator[Row]:
    """Yield a record, with the fields that a unit of work sets, and its side rows."""
    listing = LISTINGS[type(record)]
    record.version, record.updated_at = 1, clock.now()
    listing.set_index_keys(record)
    yield record
    for side in listing.side_rows(workspace_id, record).values():
        yield side.row

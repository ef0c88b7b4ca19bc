"""Bulk seeding of a benchmark's database: no conditions, no audit log, 25 rows per request.

The rows are the same that units of work would write. If a run is killed, delete the partly seeded
database and start again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import cast

from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.tables import Record, Row
from chalicelib.engine.unit import UnitOfWork
from infra.local.seed import last_moment, parents, records
from infra.operator.transfer.batch_writes import BatchWriter

CHUNK = 500
WRITERS = 4


def seed(workspace_id: str, noun: str, count: int) -> Iterator[int]:
    """Write ``count`` records and the records that they refer to. Yield the number in each step."""
    last = last_moment(noun, count)
    tallies = _Tallies(workspace_id)
    with clock.using(lambda: last), BatchWriter() as writer:
        for chunk in _chunks(parents(workspace_id, noun, count)):
            _write(writer, tallies, chunk)
        for chunk in _chunks(records(workspace_id, noun, count, seed=1)):
            _write(writer, tallies, chunk)
            yield len(chunk)
    tallies.write()


def _chunks(all_records: Iterator[Record]) -> Iterator[list[Record]]:
    while chunk := list(islice(all_records, CHUNK)):
        yield chunk


def _write(writer: BatchWriter, tallies: "_Tallies", chunk: Sequence[Record]) -> None:
    for record in chunk:
        for row in _rows(tallies.workspace_id, record):
            writer.put(type(row), row.serialize())
    tallies.add(chunk)


class _Tallies:
    """Final values of counters and statistics for the seeded records.

    This class replaces the unit of work in which ``crm_metrics`` stages its updates. Updates are
    not written in transactions, because thousands of clients each have their own counter.
    """

    def __init__(self, workspace_id: str) -> None:
        self.workspace_id = workspace_id
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._additions: list[tuple[Row, list[Action]]] = []

    def add(self, chunk: Iterable[Record]) -> None:
        """Count records."""
        for record in chunk:
            listing = LISTINGS[type(record)]
            self._counts[listing.noun].update(listing.counters(record.facets))
        leads = [(record, False) for record in chunk if isinstance(record, LeadRow)]
        crm_metrics.count_created(cast("UnitOfWork", self), leads)

    def update(self, row: Row, actions: list[Action], _condition: object) -> None:
        """Collect an update that the statistics stage."""
        self._additions.append((row, actions))

    def write(self) -> None:
        """Write everything, with one request for each row."""
        for noun, changes in self._counts.items():
            self._additions += counters.shard_updates(self.workspace_id, noun, changes)
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda addition: addition[0].update(addition[1]), self._additions))


def _rows(workspace_id: str, record: Record) -> Iterator[Row]:
    """Yield a record, with the fields that a unit of work sets, and its side rows."""
    listing = LISTINGS[type(record)]
    record.version, record.updated_at = 1, clock.now()
    listing.set_index_keys(record)
    yield record
    for side in listing.side_rows(workspace_id, record).values():
        yield side.row

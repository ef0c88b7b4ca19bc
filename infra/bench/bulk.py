"""Seed a benchmark's database in bulk: no conditions, no audit, 25 rows a request.

The rows are those that units of work would have written. What a killed run leaves half seeded is
thrown away rather than repaired.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.unit import AuditEvent
from chalicelib.store import counters, crm_metrics
from chalicelib.store.connection import connection
from chalicelib.store.leads import LeadRow
from chalicelib.store.tables import Record, Row
from chalicelib.store.unit import LISTINGS, UnitOfWork, in_batches, run_unit
from infra.seed import last_moment, parents, records

CHUNK = 500
COUNTED_AT_ONCE = 90
"""Counters that one transaction adds to; each client has one, so leads have many."""
EVENT = AuditEvent("seed", "operator")
REQUEST_ROWS = 25
"""Rows in one BatchWriteItem (DynamoDB quota)."""
WRITERS = 4


def seed(workspace_id: str, noun: str, count: int) -> Iterator[int]:
    """Write so many records, and what they refer to; yield how many each step has written."""
    last = last_moment(noun, count)
    with clock.using(lambda: last), ThreadPoolExecutor(WRITERS) as pool:
        for chunk in _chunks(parents(workspace_id, noun, count)):
            _write(pool, workspace_id, chunk)
        for chunk in _chunks(records(workspace_id, noun, count, seed=1)):
            _write(pool, workspace_id, chunk)
            yield len(chunk)


def _chunks(made: Iterator[Record]) -> Iterator[list[Record]]:
    while chunk := list(islice(made, CHUNK)):
        yield chunk


def _write(pool: ThreadPoolExecutor, workspace_id: str, chunk: Sequence[Record]) -> None:
    rows = [row for record in chunk for row in _rows(workspace_id, record)]
    list(pool.map(_put, in_batches(rows, REQUEST_ROWS)))
    deltas: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in chunk:
        listing = LISTINGS[type(record)]
        deltas[listing.noun].update(listing.counters(record.facets))
    shards = [
        shard
        for noun, changes in deltas.items()
        for shard in counters.shard_updates(workspace_id, noun, changes)
    ]
    for batch in in_batches(shards, COUNTED_AT_ONCE):
        run_unit(workspace_id, EVENT, partial(_add, additions=batch))
    leads = [(record, False) for record in chunk if isinstance(record, LeadRow)]
    run_unit(workspace_id, EVENT, lambda unit: crm_metrics.count_created(unit, leads))


def _add(unit: UnitOfWork, additions: Iterable[tuple[Row, list[Action]]]) -> None:
    for row, actions in additions:
        unit.update(row, actions, Row.pk.exists() | Row.pk.does_not_exist())


def _rows(workspace_id: str, record: Record) -> Iterator[Row]:
    """Yield a record with all that a unit of work gives it, and the rows that go with it."""
    listing = LISTINGS[type(record)]
    record.version, record.updated_at = 1, clock.now()
    listing.set_index_keys(record)
    yield record
    for side in listing.side_rows(workspace_id, record).values():
        yield side.row


def _put(rows: Iterable[Row]) -> None:
    requests: defaultdict[str, list[object]] = defaultdict(list)
    for row in rows:
        requests[row.Meta.table_name].append({"PutRequest": {"Item": row.serialize()}})
    left: dict[str, list[object]] = dict(requests)
    while left:
        left = connection().client.batch_write_item(RequestItems=left)["UnprocessedItems"]

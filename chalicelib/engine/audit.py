"""The audit log of changes, kept for 90 days. IAM allows only adding and reading (ADR 17)."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.unit import AuditEvent
from chalicelib.engine.listing.index_ranges import id_bounds
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import AuditTableRow, JsonAttribute

RETENTION = timedelta(days=90)
MAX_RESOURCES = 100
MAX_SCANNED = 1000  # A filtered page reads at most this many rows, some 125 read units.


class AuditRow(AuditTableRow):
    """One change. ``resources`` are the changed ones, such as ``site:<id>``."""

    at = UTCDateTimeAttribute()
    actor = UnicodeAttribute()
    key_id = UnicodeAttribute()
    client_ip = UnicodeAttribute()
    operation = UnicodeAttribute()
    resources: JsonAttribute = JsonAttribute()
    fields: JsonAttribute = JsonAttribute()
    request_id = UnicodeAttribute()


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#AUDIT"


def row(tenant: str, event: AuditEvent) -> AuditRow:
    """Return the row of a change. The transaction that makes the change also writes the row."""
    now = clock.now()
    return AuditRow(
        _partition(event.workspace_id or tenant),
        new_id(),
        at=now,
        actor=event.actor,
        key_id=event.key_id,
        client_ip=event.client_ip,
        operation=event.operation,
        resources=list(event.resources[:MAX_RESOURCES]),
        fields=list(event.fields),
        request_id=event.request_id,
        expires=now + RETENTION,
    )


def latest(workspace_id: str, limit: int = 100) -> list[AuditRow]:
    """Return the latest changes of a workspace, newest first."""
    return AuditRow.partition(_partition(workspace_id), limit=limit, scan_index_forward=False)


class Change(NamedTuple):
    """The parts of a change that are counted."""

    at: datetime
    actor: str
    key_id: str  # "" without a key
    operation: str


def changes(
    workspace_id: str, *, first: datetime, last: datetime, at_most: int
) -> Iterator[Change]:
    """Yield the changes between two moments, newest first, at most so many.

    A change of the last second may be missing, because a consistent read costs twice as much.
    """
    lowest, highest = id_bounds((first, last))
    items = Partition(_partition(workspace_id), Cost(), AuditRow).items(
        at_most,
        range_key_condition=AuditRow.sk.between(lowest, f"{highest}~"),
        scan_index_forward=False,
    )
    for item in items:
        at = datetime.fromisoformat(item["at"]["S"])
        yield Change(at, *(item[name]["S"] for name in ("actor", "key_id", "operation")))


class Touched(NamedTuple):
    """A change by its id, with the records that it has changed, such as ``booking:<id>``."""

    id: str
    resources: list[str]


def after(workspace_id: str, change_id: str, limit: int) -> list[Touched]:
    """Return the first changes after an id, oldest first, read consistently in one request."""
    items = Partition(_partition(workspace_id), Cost(), AuditRow).items(
        limit, range_key_condition=AuditRow.sk > change_id, consistent_read=True
    )
    return [Touched(item["sk"]["S"], json.loads(item["resources"]["S"])) for item in items]


class AuditPage(NamedTuple):
    """Changes, newest first; ``before`` is the argument of ``page`` for the next page, if any."""

    rows: list[AuditRow]
    before: str | None


def page(  # noqa: PLR0913  the filters of a page
    workspace_id: str,
    limit: int,
    *,
    before: str | None = None,
    first: datetime | None = None,
    last: datetime | None = None,
    matches: Callable[[str, str], bool] | None = None,
) -> AuditPage:
    """Return a page of a workspace's changes, newest first. ``first`` and ``last`` are inclusive.

    ``before`` is the value that the previous page returned. ``matches`` returns, for the actor and
    the operation, whether to include a change; a page may then be short or empty although more
    changes follow.
    """
    oldest = clock.now() - RETENTION
    # DynamoDB deletes expired changes late.
    lowest, highest = id_bounds((max(first or oldest, oldest), last))
    # "~" sorts after every character of an id.
    top = min(bound for bound in (before, highest and highest + "~", "~") if bound is not None)
    if (lowest or "") > top:
        return AuditPage([], None)
    items = Partition(_partition(workspace_id), Cost(), AuditRow).items(
        limit + 2 if matches is None else MAX_SCANNED + 1,  # with ``before`` and one more row
        range_key_condition=AuditRow.sk.between(lowest, top),
        scan_index_forward=False,
        consistent_read=True,
    )
    rows: list[AuditRow] = []
    scanned = 0
    for item in items:
        row_id = item["sk"]["S"]
        if row_id == before:
            continue
        if matches is None or matches(item["actor"]["S"], item["operation"]["S"]):
            if len(rows) == limit:
                return AuditPage(rows, rows[-1].sk)
            rows.append(AuditRow.from_raw_data(item))
        scanned += 1
        if scanned == MAX_SCANNED:
            return AuditPage(rows, row_id)
    return AuditPage(rows, None)

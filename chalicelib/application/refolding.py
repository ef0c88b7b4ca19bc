"""Recompute folded search strings and look-up keys after the folding rule has changed (ADR 42).

Folding makes strings comparable: it removes case and other differences (``core.text``). A job
processes the records of a workspace noun by noun, in slices. Processing a slice again, or
concurrently in two runners, changes nothing more.
"""

import logging
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.index_entries import (
    ENTRY_ATTRIBUTES,
    EntryRow,
    TextRow,
    texts_partition,
)
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import NOUNS, listing_of
from chalicelib.engine.tables import ContentRow, Record, Row
from chalicelib.engine.unit import UnitOfWork, run_unit

REFOLD = JobKind("refold")
"""The kind of job that folds the search strings of a workspace again."""
SLICE = 50
"""Records per read."""
SECONDS = 30.0
"""Seconds of work per job. Another job continues a minute later."""

log = logging.getLogger(__name__)


def job(workspace_id: str, due: datetime, noun: str = "", *, after_id: str = "") -> JobRow:
    """Return the job for a workspace's records, starting at a noun.

    Args:
        workspace_id: the workspace.
        due: when the first job of the workspace is due. Later jobs of the workspace get the same
            time, so that scheduling a slice again replaces its job instead of adding another.
        noun: the noun to start at. The job also covers the following nouns. Default: all nouns.
        after_id: id of the last processed record of the noun.
    """
    payload = {"noun": noun, "after": after_id, "due": due.isoformat()}
    return jobs.row(REFOLD, workspace_id, payload, due, job_id=f"{workspace_id}-{noun}-{after_id}")


@job_handler(REFOLD)
def refold(task: Job) -> None:
    """Fold the search strings of a workspace's records again.

    After ``SECONDS``, schedule another job for the remaining records.
    """
    end = monotonic() + SECONDS
    noun, after_id = task.payload["noun"] or min(NOUNS), task.payload["after"]
    while following := _fold_slice(task.workspace_id, noun=noun, after_id=after_id):
        noun, after_id = following
        if monotonic() >= end:
            due = datetime.fromisoformat(task.payload["due"])
            jobs.schedule(job(task.workspace_id, due, noun, after_id=after_id))
            return


def _fold_slice(workspace_id: str, *, noun: str, after_id: str) -> tuple[str, str] | None:
    """Fold a slice of a noun's records again.

    Returns the noun and the record after which to continue, or None at the end.
    """
    listing = listing_of(noun)
    records = listing.read_after(workspace_id, record_id=after_id, limit=SLICE)
    # Each record has its own unit, so a conflict repeats one record instead of the whole slice.
    for record in records:
        stage = partial(_fold_again, listing=listing, record_id=record.id)
        run_unit(workspace_id, None, stage)
    if len(records) == SLICE:
        return noun, records[-1].id
    following = min((candidate for candidate in NOUNS if candidate > noun), default=None)
    return (following, "") if following else None


def _fold_again(unit: UnitOfWork, listing: Listing[Any], record_id: str) -> None:
    """Stage the changes of a record's index keys and of its side rows.

    The record keeps its version, because nothing that callers see has changed. Only a record with a
    restored value is saved as a whole.
    """
    record = listing.find(unit.tenant, record_id=record_id)
    if record is None:
        return
    if listing.complete:
        (record,) = listing.complete(unit.tenant, [record])
    if listing.restore is not None and listing.restore(record):
        unit.save(record)
    else:
        _stage_rows(unit, listing, record)


def _stage_rows(unit: UnitOfWork, listing: Listing[Any], record: Any) -> None:  # noqa: ANN401  of any noun
    listing.set_index_keys(record)
    missing, obsolete = _unique_row_changes(unit.tenant, listing, record)
    displaced = [lookup.displaced for lookup in listing.lookups if lookup.displaced]
    actions = record.changes({*ENTRY_ATTRIBUTES, *displaced})
    # ``x`` marks a search text that is too long for the index entry and has a row of its own.
    if record.x is None and "x" in (record.stored or {}):
        obsolete.append(TextRow(texts_partition(unit.tenant, noun=listing.noun), record.id))
    row_types = (TextRow, EntryRow) if actions else TextRow
    sides = listing.side_rows(unit.tenant, record).values()
    rows: list[Row] = [side.row for side in sides if isinstance(side.row, row_types)]
    for lookup in listing.lookups:
        rows += lookups.moved_rows(lookup, unit.tenant, noun=listing.noun, record=record)
    # A concurrent change has set newer index keys, which these must not overwrite.
    unchanged = type(record).version == record.version
    if actions:
        unit.update(ContentRow(record.pk, record.sk), actions, unchanged)
    elif rows or missing or obsolete:
        # The side rows follow from attributes that are not written here, so the version is only
        # checked.
        unit.require(record, unchanged)
    for row in missing:
        unit.create(row)
    for row in rows:
        unit.save(row)
    for row in obsolete:
        unit.delete(row)


def _unique_row_changes(
    workspace_id: str, listing: Listing[Any], record: Record
) -> tuple[list[Row], list[Row]]:
    """Return the rows to create and the rows to delete for a record's unique values.

    Each unique value has a row. Its key contains the folded value, so a new folding rule can change
    the key. If another record already has that key, no row is created. The record then keeps its
    value in the look-up's ``displaced`` attribute.
    """
    missing: list[Row] = []
    obsolete: list[Row] = []
    for lookup in listing.lookups:
        change = lookups.key_change(lookup, workspace_id, noun=listing.noun, record=record)
        if change is None:
            continue
        holders = {row.pk: row.target for row in change.existing()}
        # The release before this one finds records of exact look-ups by their former keys (ADR 69).
        if holders.get(change.former.pk) == record.id and not lookup.exact:
            obsolete.append(change.former)
        match holders.get(change.current.pk):
            case None:
                missing.append(change.current)
            case record.id:
                pass
            case other if lookup.displaced:
                setattr(record, lookup.displaced, lookup.value(record))
                log.warning(
                    "a unique value now belongs to another record",
                    extra={"noun": listing.noun, "record": record.id, "holder": other},
                )
    return missing, obsolete

"""Explain how long deletions and saves can be undone."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.clock import iso
from chalicelib.core.jobs import Job
from chalicelib.domains.files.store.files import FILES
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.engine.item_sizes import size_of
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.tables import ProgramRecord, Record
from chalicelib.engine.unit import UnitOfWork, run_job_unit

KEPT_AFTER_DELETION = timedelta(days=30)  # during which a site, page or form can be restored
RECORDS_PER_TRANSACTION = 25  # moved to the trash or back
# Limits of the rows of such records. They leave room for the other writes of the transaction.
MOST_ITEMS = 75
MOST_BYTES = 3_000_000
_ITEMS_PER_RECORD = 3  # its old and its new one, and one claim; others are counted as they are

R = TypeVar("R", bound=Record)
P = TypeVar("P", bound=ProgramRecord)

UNDO = Field(description="How and until when to undo it, or null.")


def how_to_undo(route: str, *, record_id: str, until: datetime) -> str:
    """Return a sentence on how to undo a deletion, which a caller can show to its owner."""
    call = f'{route} with {{"id": "{record_id}"}}'
    return f"Until {iso(until)}: under Sites in the console, or {call}."


def how_to_undo_save(page: PageRow, version_id: str | None) -> str | None:
    """Return a sentence on how to undo a save of HTML, or None if there was no HTML before.

    ``version_id`` is the version that was kept, if the HTML changed.
    """
    if version_id is not None:
        call = f"POST /api/pages/restore-version with versionId {version_id}"
        return f"Under Sites in the console, or {call}."
    if page.kept_at is None:
        return None
    return (
        "The HTML is as before. Under Sites in the console, the latest version is the page before "
        "its last change."
    )


def first_batch(records: Iterable[R]) -> list[R]:
    """Return as many of the first records as one transaction can move, at least one."""
    batch: list[R] = []
    items = size = 0
    for record in records:
        items += _ITEMS_PER_RECORD
        if isinstance(record, ProgramRecord):
            items += record.external_id is not None
        if isinstance(record, PageRow):
            items += len(record.former_slugs)
        size += size_of(record.serialize())
        # A single record that is too large for the limits must still move.
        if batch and (items > MOST_ITEMS or size > MOST_BYTES):
            break
        batch.append(record)
    return batch


def drop_missing_files(workspace_id: str, pages: Sequence[PageRow]) -> list[str]:
    """Remove the files that are gone from the lists of the pages' files. Returns their ids."""
    ids = sorted({file_id for page in pages for file_id in page.file_ids})
    there = {file.id for file in FILES.fetch(workspace_id, ids)} if ids else set()
    for page in pages:
        page.file_ids = [file_id for file_id in page.file_ids if file_id in there]
    return [file_id for file_id in ids if file_id not in there]


class RemovedId(NamedTuple):
    """An ``externalId`` that a record lost to its holder while the record was in the trash."""

    record_id: str
    external_id: str
    holder_id: str


def remove_taken_external_ids(
    listing: Listing[P], workspace_id: str, records: Sequence[P]
) -> list[RemovedId]:
    """Remove the external ids of records from the trash that live records of the noun have.

    The second of two records with one id loses it, too. Reads nothing if no record has an id.
    """
    there = [record for record in records if record.external_id is not None]
    ids = dict.fromkeys(str(record.external_id) for record in there)
    holders = listing.find_unique(workspace_id, lookup=EXTERNAL_ID.name, values=ids)
    removed = []
    for record in there:
        holder = holders.setdefault(str(record.external_id), record.id)
        if holder != record.id:
            removed.append(RemovedId(record.id, str(record.external_id), holder))
            record.external_id = None
    return removed


def warn_of_removed_ids(ctx: Context, removed: Iterable[RemovedId]) -> None:
    """Warn that restored records have no ``externalId`` any more."""
    for record_id, external_id, holder_id in removed:
        ctx.warn(
            f"The restored record {record_id} has no externalId, because the record {holder_id} "
            "has it now.",
            code=WarningCode.EXTERNAL_ID_REMOVED,
            id=record_id,
            externalId=external_id,
            recordId=holder_id,
        )


def end_deletion(listing: Listing[R], job: Job, record_id: str, now: datetime) -> bool:
    """Return whether a purge may remove what belongs to a deleted record.

    It may not if the record lives again, or if a later deletion still can be undone. Otherwise the
    row in the trash is deleted first, so that no restore can begin.
    """
    trash = listing.trash(job.workspace_id)

    def stage(unit: UnitOfWork) -> bool:
        deleted = listing.row.find(trash, record_id)
        if deleted is None:
            # The second read of the trash finds a record that was deleted after the first.
            is_live = listing.find(job.workspace_id, record_id=record_id) is not None
            return not is_live and listing.row.find(trash, record_id) is None
        if deleted.expires > now:
            return False
        # Without the row, a restore fails, so nothing can return while its objects are removed.
        unit.delete(deleted)
        return True

    return run_job_unit(job, stage)

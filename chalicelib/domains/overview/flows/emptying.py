"""Delete the records of a test workspace, or of one that was closed, with what belongs to them.

Of a test workspace, payments are deleted, too.

The workspace, its settings, members, keys, invitations, connected apps and payment settings stay,
and so do the audit log and what expires by itself, such as messages and deliveries of webhooks.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.chat.flows import dialog_removal
from chalicelib.domains.chat.store import chat_sessions
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.clients.store import client_chats
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FileRow
from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.sites.store import site_visits
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.engine import metrics
from chalicelib.engine.events import subscriptions
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import NOUNS, listing_of
from chalicelib.engine.partition_rows import stage_deletions, stage_deletions_of_conversations
from chalicelib.engine.tables import Record
from chalicelib.engine.unit import UnitOfWork, cascade, run_job_unit
from chalicelib.gateways.object_store import delete_unused, object_store

WIPE = JobKind("wipe-test-workspace")
BATCH = 4  # records of a unit of work, each with its look-ups and index entries
CHATS = 30  # of a client that end in a unit of work, each with an entry
OF_PLATFORM = {"POST"}
IMPORT = "IMPORT"
# Partitions of rows that are no records, after ``W#<workspace>#``.
PARTITIONS = (
    *("LEAD#HISTORY", "LEAD#DATA", "BOOKING#HISTORY", "PAGE#DESIGN", "PAGE#DRAFT", "PAGE#VERSION"),
    *("SCHEDULE", "TIME_OFF", "BOOKING_PAGE", "ASSISTANTS", "CALENDAR_LINK", "KNOWLEDGE#INDEX"),
    *("BUSY_CALENDAR", "DATED_START", "REPORT", "REPORT#COUNTED", "WAITING", "WAITING_LINE"),
    "DIRECTORY",
)
MONEY = ("PAYMENT", "PAYMENT#REFUND", "MERCHANT-PAYMENT")
FOLDERS = ("sites", "knowledge", "uploads", "exports", "imports")  # of objects


@job_handler(WIPE)
def wipe(job: Job) -> None:
    """Delete what a test workspace has. A repeated job continues."""
    if not is_test(job.workspace_id):
        return
    delete_records(job)
    for at in MONEY:
        cascade(job, partial(stage_deletions, pk=f"W#{job.workspace_id}#{at}"))


def delete_records(job: Job, *, kept: Collection[str] = ()) -> None:
    """Delete all records with their parts and statistics. Records of the ``kept`` nouns stay.

    A repeated job continues.
    """
    # No webhook is left, so no deletion is an event for one.
    run_job_unit(job, _stage_no_subscriptions)
    # A running import ends when its record is gone, and so writes no more records.
    for noun in (IMPORT, *sorted({*NOUNS} - OF_PLATFORM - {IMPORT})):
        _wipe_noun(job, noun, is_kept=noun in kept)
    for at in PARTITIONS:
        cascade(job, partial(stage_deletions, pk=f"W#{job.workspace_id}#{at}"))
    _wipe_metrics(job, crm_metrics.subject(), workspace_metrics.SUBJECT)
    for folder in FOLDERS:
        object_store().delete_under(f"{job.workspace_id}/{folder}/")


def _stage_no_subscriptions(unit: UnitOfWork) -> None:
    unit.update(*subscriptions.change_of_webhooks(unit.workspace_id, set()))
    unit.after_commit(subscriptions.forget)


def _wipe_noun(job: Job, noun: str, *, is_kept: bool) -> None:
    listing, last_id = listing_of(noun), ""
    while records := listing.read_after(job.workspace_id, record_id=last_id, limit=BATCH):
        for record in records:
            _wipe_parts(job, noun, record)
        if is_kept:
            last_id = records[-1].id
        else:
            ids = {record.id for record in records}
            run_job_unit(job, partial(_stage_records, listing, ids))
    cascade(job, partial(stage_deletions, pk=listing.trash(job.workspace_id)))


def _wipe_parts(job: Job, noun: str, record: Record) -> None:
    workspace_id = job.workspace_id
    match noun:
        case "DIALOG":
            for batch in dialog_removal.message_batches(workspace_id, dialog_id=record.id):
                run_job_unit(job, partial(dialog_removal.stage_removal, batch=batch))
        case "CLIENT":
            cascade(job, partial(_stage_ends_of_chats, client_id=record.id))
        case "RESOURCE":
            cascade(job, partial(stage_deletions, pk=f"W#{workspace_id}#CALENDAR#{record.id}"))
        case "SITE":
            subjects = crm_metrics.subject(project_id=record.id), site_visits.subject(record.id)
            _wipe_metrics(job, *subjects)
        case "FORM":
            _wipe_metrics(job, crm_metrics.subject(form_id=record.id))
        case "AGENT":
            of_tests = (bot_metrics.subject(record.id, test=test) for test in (False, True))
            _wipe_metrics(job, *of_tests, bot_metrics.widget_subject(record.id))
            cascade(job, partial(stage_deletions, pk=f"W#{workspace_id}#BOTKEY#{record.id}"))


def _stage_ends_of_chats(unit: UnitOfWork, client_id: str) -> bool:
    chats = client_chats.of_client(unit.tenant, client_id=client_id)[:CHATS]
    for chat in chats:
        client_chats.stage_end(unit, chat)
    return bool(chats)


def _stage_records(listing: Listing[Any], ids: Collection[str], unit: UnitOfWork) -> None:
    stored_bytes = 0  # A transaction changes a row once.
    # Read with each attempt: another job may save or delete one of them meanwhile.
    for record in listing.read_after(unit.tenant, record_id="", limit=BATCH):
        if record.id not in ids:
            continue  # Its parts are not wiped yet.
        unit.delete(record)
        match record:
            case FileRow():
                stored_bytes += int(record.size)
                unit.after_commit(partial(delete_unused, record.object_keys))
            case PageRow():
                stored_bytes += int(record.html_bytes)
            case DialogRow() if record.session_hash is not None:
                chat_sessions.end(unit, unit.tenant, token_hash=record.session_hash)
    files.release_bytes(unit, stored_bytes)


def _wipe_metrics(job: Job, *subjects: str) -> None:
    for subject in subjects:
        pk = metrics.partition(job.workspace_id, subject=subject)
        cascade(job, partial(stage_deletions_of_conversations, pk=pk))

"""Remove dialogs one year after their last message, or when their visitor is erased."""

from collections.abc import Iterator, Sequence
from functools import partial

from chalicelib.core import clock
from chalicelib.core.jobs import Job, JobKind, Postponed, job_handler
from chalicelib.domains.chat.store import chat_sessions, messages, proposals
from chalicelib.domains.chat.store.dialogs import DIALOGS, RETENTION, DialogRow
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.tables import ConversationRow
from chalicelib.engine.unit import UnitOfWork, run_job_unit, split_batches

DIALOG_EXPIRED = JobKind("dialog-expired")  # removes a dialog a year after its last message
MESSAGES_PER_UNIT = 90


def expiry_job(workspace_id: str, dialog: DialogRow) -> JobRow:
    """Return the job that removes a dialog a year after its last message so far."""
    payload, due = {"dialog": dialog.id}, dialog.last_message_at + RETENTION
    return jobs.row(DIALOG_EXPIRED, workspace_id, payload, due, job_id=dialog.id)


@job_handler(DIALOG_EXPIRED)
def remove_expired(job: Job) -> None:
    """Remove a dialog with its messages, a year after its last message."""
    dialog = DIALOGS.find(job.workspace_id, record_id=job.payload["dialog"])
    if dialog is None:
        return
    if dialog.last_message_at + RETENTION > clock.now():
        raise Postponed(dialog.last_message_at + RETENTION)
    for batch in message_batches(job.workspace_id, dialog_id=dialog.id):
        run_job_unit(job, partial(stage_removal, batch=batch))

    def stage(unit: UnitOfWork) -> None:
        dialog_row = DIALOGS.find(unit.tenant, record_id=dialog.id)
        # The visitor may have written again since the messages were removed.
        if dialog_row is not None and dialog_row.last_message_at + RETENTION <= clock.now():
            if dialog_row.session_hash is not None:
                chat_sessions.end(unit, unit.tenant, token_hash=dialog_row.session_hash)
            unit.delete(dialog_row)

    run_job_unit(job, stage)


def message_batches(workspace_id: str, *, dialog_id: str) -> Iterator[Sequence[ConversationRow]]:
    """Yield a dialog's messages, then its proposals, in batches that fit one unit of work."""
    yield from split_batches(messages.keys(workspace_id, dialog_id=dialog_id), MESSAGES_PER_UNIT)
    # Proposals are read when the messages have been removed, because no answer proposes anything
    # without its message.
    yield from split_batches(proposals.keys(workspace_id, dialog_id=dialog_id), MESSAGES_PER_UNIT)


def stage_removal(unit: UnitOfWork, batch: Sequence[ConversationRow]) -> None:
    """Stage the removal of messages and proposals. They may already be deleted."""
    for row in batch:
        unit.delete(row)


def stage_end(unit: UnitOfWork, dialog_id: str) -> None:
    """Stage the end of a dialog's session, so that the dialog cannot be continued."""
    dialog = DIALOGS.find(unit.tenant, record_id=dialog_id)
    if dialog is not None and dialog.session_hash is not None:
        chat_sessions.end(unit, unit.tenant, token_hash=dialog.session_hash)
        dialog.session_hash = None
        unit.save(dialog)


def stage_erasure(unit: UnitOfWork, dialog_id: str) -> None:
    """Stage the removal of personal data from a dialog, and of the values it can be found by."""
    dialog = DIALOGS.find(unit.tenant, record_id=dialog_id)
    if dialog is not None:
        dialog.erase()
        unit.save(dialog)

"""Empty a test workspace after 30 days without use. Its owner is told seven days before."""

from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.identity.rules.job_kinds import MAIL_TEST_IDLE, TEST_IDLE
from chalicelib.domains.identity.store import api_keys, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.overview.flows import emptying
from chalicelib.engine import audit, jobs
from chalicelib.engine.unit import UnitOfWork, run_job_unit

IDLE_FOR = timedelta(days=30)
NOTICE = timedelta(days=7)
OF_JOBS = "job"  # the actor of what jobs do


@job_handler(TEST_IDLE)
def follow(job: Job) -> None:
    """Empty the test workspace if nobody uses it, or say when to look again."""
    try:
        workspace = workspaces.get(job.workspace_id)
    except NotFoundError:
        return
    now, used = clock.now(), _last_use(workspace)
    if now < used + IDLE_FOR - NOTICE:
        raise Postponed(used + IDLE_FOR - NOTICE)
    told = workspace.idle_told_at
    if told is None or told <= used:
        run_job_unit(job, _stage_notice)
        raise Postponed(now + NOTICE)
    if now >= told + NOTICE:
        emptying.wipe(job)
        # An empty workspace is emptied again without another notice, until somebody uses it.
        raise Postponed(now + IDLE_FOR)
    raise Postponed(told + NOTICE)


def _stage_notice(unit: UnitOfWork) -> None:
    now, workspace = clock.now(), workspaces.get(unit.workspace_id)
    unit.update(workspace, [WorkspaceRow.idle_told_at.set(now)])
    unit.create_job(jobs.row(MAIL_TEST_IDLE, unit.workspace_id, {"at": iso(now)}), at_once=False)


def _last_use(workspace: WorkspaceRow) -> datetime:
    # The audit log has every change but those of jobs, and a key the time of its last call.
    changes = audit.page(workspace.id, 1, matches=lambda actor, _: actor != OF_JOBS).rows
    keys = [key.last_used_at for key in api_keys.read_all(workspace.id) if key.last_used_at]
    return max([workspace.created_at, *keys, *(row.at for row in changes)])

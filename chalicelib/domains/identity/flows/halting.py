"""Suspend, close and open a workspace, with its keys, its apps and an e-mail to its members."""

from typing import Literal

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.domains.identity.rules.job_kinds import MAIL_STANDING
from chalicelib.domains.identity.store import api_keys, connections, directory
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.domains.identity.store.connections import ConnectionRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import jobs, locks
from chalicelib.engine.events import subscriptions
from chalicelib.engine.locks import LockRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import mail

Standing = Literal["suspended", "resumed", "closed", "reopened"]


def lock_row(workspace_id: str) -> LockRow:
    """Return the lock row of the keys of a workspace. Read it before the workspace."""
    return locks.lock_row(workspace_id, what=api_keys.LOCK)


def stage(unit: UnitOfWork, lock: LockRow, workspace: WorkspaceRow, standing: Standing) -> None:
    """Stage a workspace with its new ``halt``: its keys follow, and its members are told."""
    unit.save(lock)
    unit.save(workspace)
    directory.follow_workspace(unit)
    stage_plan_of_keys(unit, workspace)
    unit.mention(f"workspace:{workspace.id}")
    unit.after_commit(subscriptions.forget)
    if mail.is_on():
        payload = {"standing": standing, "at": iso(clock.now())}
        unit.create(jobs.row(MAIL_STANDING, workspace.id, payload))


def stage_plan_of_keys(unit: UnitOfWork, workspace: WorkspaceRow) -> None:
    """Stage that all live keys and connected apps have what their workspace says of them.

    The caller saves the lock row of the keys, so that none is made at the same time.
    """
    plan = workspace.plan_of_keys
    for key in api_keys.live(workspace.id):
        if key.plan != plan:
            unit.update(key, [ApiKeyRow.plan.set(plan)])
    for connection in connections.live(workspace.id):
        if connection.plan != plan:
            unit.update(connection, [ConnectionRow.plan.set(plan)])

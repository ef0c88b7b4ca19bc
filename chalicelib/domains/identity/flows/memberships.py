"""Joining and leaving a workspace, and changes of roles, by operators and members."""

from collections.abc import Iterable

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.flows.connection_changes import stage_endings
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED, PAUSE_WEBHOOKS
from chalicelib.domains.identity.store import api_keys, connections, workspaces
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.domains.identity.store.workspaces import MembershipRow
from chalicelib.engine import jobs, locks
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.locks import LockRow
from chalicelib.engine.unit import UnitOfWork


def lock_row(workspace_id: str) -> LockRow:
    """Return the lock row that changes of members and keys save. Read it before memberships."""
    return locks.lock_row(workspace_id, what=api_keys.LOCK)


def stage_joining(unit: UnitOfWork, account_id: str, role: Role) -> None:
    """Stage a new membership. If the account joins at the same time, the unit starts again."""
    place = workspaces.membership_row(
        account_id, workspace_id=unit.workspace_id, role=str(role), joined_at=clock.now()
    )
    unit.create(place)
    unit.save(workspaces.member_row(account_id, workspace_id=unit.workspace_id))
    unit.outbox.emit(Event("member.added", account_id))
    unit.mention(f"account:{account_id}")


def stage_role(unit: UnitOfWork, lock: LockRow, membership: MembershipRow, role: Role) -> None:
    """Stage a member's role. A plain member cannot have keys or connected apps."""
    unchanged = MembershipRow.role == membership.role
    if membership.role == role:
        unit.require(membership, unchanged)
    else:
        unit.update(membership, workspaces.role_changes(str(role)), unchanged)
        unit.outbox.emit(Event("member.role_changed", membership.account_id))
    if role is Role.MEMBER:
        # Keys and connected apps are for managers and owners only.
        _stage_ends_of_access(unit, membership.account_id)
    unit.save(lock)
    unit.save(workspaces.member_row(membership.account_id, workspace_id=unit.workspace_id))
    unit.mention(f"account:{membership.account_id}")


def stage_removal(unit: UnitOfWork, lock: LockRow, membership: MembershipRow) -> tuple[int, int]:
    """Stage the end of a membership. Return how many keys and connected apps end."""
    account_id = membership.account_id
    unit.delete(membership, if_there=True)
    unit.delete(workspaces.member_row(account_id, workspace_id=unit.workspace_id))
    ended = _stage_ends_of_access(unit, account_id)
    unit.save(lock)
    payload = {"accountId": account_id, "endedAt": iso(clock.now())}
    # What the member has in other domains is removed by a job, which may take many transactions.
    unit.create(jobs.row(MEMBERSHIP_ENDED, unit.workspace_id, payload))
    unit.outbox.emit(Event("member.removed", account_id))
    unit.mention(f"account:{account_id}")
    return ended


def stage_revocations(unit: UnitOfWork, keys: Iterable[ApiKeyRow]) -> None:
    """Stage the revocation of keys of a workspace. A revoked key keeps its time."""
    revoked = list(keys)
    for key in revoked:
        # The audit log names the first revocation.
        since = key.revoked_at or clock.now()
        unit.update(key, [ApiKeyRow.revoked_at.set(since)])
        unit.mention(f"key:{key.key_id}")
    # Patterns of scopes do not include this one. The unit may be of an account, not of a workspace.
    can_add_webhooks = [key for key in revoked if Scope.WEBHOOKS_WRITE in key.scopes]
    if can_add_webhooks:
        key_ids = [key.key_id for key in can_add_webhooks]
        job = jobs.row(PAUSE_WEBHOOKS, can_add_webhooks[0].workspace_id, {"keyIds": key_ids})
        unit.create_job(job)


def _stage_ends_of_access(unit: UnitOfWork, account_id: str) -> tuple[int, int]:
    # The unit saves the lock row that the creation of a key or a connection saves, too. So one that
    # is created at the same time is either revoked here, or its creation fails.
    keys = api_keys.live(unit.workspace_id, account_id)
    connected = connections.live(unit.workspace_id, account_id)
    stage_revocations(unit, keys)
    stage_endings(unit, connected)
    return len(keys), len(connected)

"""Joining and leaving a workspace, and changes of roles, by operators and members."""

from collections.abc import Iterable
from datetime import timedelta

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ValidationError
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.flows.connection_changes import stage_endings
from chalicelib.domains.identity.rules.job_kinds import (
    END_CALENDAR_LINK,
    MEMBERSHIP_ENDED,
    PAUSE_WEBHOOKS,
)
from chalicelib.domains.identity.store import api_keys, connections, workspaces
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.domains.identity.store.workspaces import MembershipRow
from chalicelib.engine import jobs, locks
from chalicelib.engine.events import subscriptions
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.locks import LockRow
from chalicelib.engine.unit import UnitOfWork


def lock_row(workspace_id: str) -> LockRow:
    """Return the lock row that changes of members and keys save. Read it before memberships."""
    return locks.lock_row(workspace_id, what=api_keys.LOCK)


def staff_link(
    unit: UnitOfWork, role: Role, resource_id: str | None, former_id: str | None = None
) -> str | None:
    """Return the member of the staff that a member is linked to, the ``former_id`` by default.

    Raises ValidationError if the role *staff* has none, and NotFoundError if it does not exist.
    """
    if resource_id is not None:
        listing_of("RESOURCE").require(unit.workspace_id, record_id=resource_id)
    link = resource_id or former_id
    if role is Role.STAFF and link is None:
        raise ValidationError.of(
            "resourceId",
            message="expected the staff member that the account is, which the role staff requires",
            key="no_staff_member",
        )
    return link


def stage_joining(
    unit: UnitOfWork, account_id: str, role: Role, resource_id: str | None = None
) -> None:
    """Stage a new membership. If the account joins at the same time, the unit starts again."""
    place = workspaces.membership_row(
        account_id,
        workspace_id=unit.workspace_id,
        role=str(role),
        resource_id=resource_id,
        joined_at=clock.now(),
    )
    unit.create(place)
    _stage_messages(unit, resource_id)
    unit.save(workspaces.member_row(account_id, workspace_id=unit.workspace_id))
    unit.outbox.emit(Event("member.added", account_id))
    unit.mention(f"account:{account_id}")


def stage_role(
    unit: UnitOfWork,
    lock: LockRow,
    membership: MembershipRow,
    role: Role,
    resource_id: str | None,
) -> None:
    """Stage a member's role, and the link to the staff that goes with it.

    Only managers and owners can have keys and connected apps.
    """
    unchanged = MembershipRow.role == membership.role
    changes = workspaces.role_changes(str(role)) if membership.role != role else []
    if resource_id is not None and membership.resource_id != resource_id:
        changes.append(MembershipRow.resource_id.set(resource_id))
    if changes:
        unit.update(membership, changes, unchanged)
        if role is Role.STAFF:
            stage_end_of_calendar(unit, membership, resource_id)
        _stage_messages(unit, resource_id)
    else:
        unit.require(membership, unchanged)
    if membership.role != role:
        unit.outbox.emit(Event("member.role_changed", membership.account_id))
    if not role.includes(Role.MANAGER):
        # Keys and connected apps are for managers and owners only.
        _stage_ends_of_access(unit, membership.account_id)
    unit.save(lock)
    unit.save(workspaces.member_row(membership.account_id, workspace_id=unit.workspace_id))
    unit.mention(f"account:{membership.account_id}")


def _stage_messages(unit: UnitOfWork, resource_id: str | None) -> None:
    # A member of the staff gets messages about the own bookings, which nobody may have wanted until
    # now. The next choice of a member finds out anew what nobody wants.
    if resource_id is not None and workspaces.get(unit.workspace_id, unit.rows).unwanted_messages:
        unit.save(locks.lock_row(unit.workspace_id, what=workspaces.CHOICES_LOCK))
        unit.update(*subscriptions.change_of_people(unit.workspace_id, ()))
        unit.after_commit(subscriptions.forget)


def stage_removal(unit: UnitOfWork, lock: LockRow, membership: MembershipRow) -> tuple[int, int]:
    """Stage the end of a membership. Return how many keys and connected apps end."""
    account_id = membership.account_id
    unit.delete(membership, if_there=True)
    unit.delete(workspaces.member_row(account_id, workspace_id=unit.workspace_id))
    ended = _stage_ends_of_access(unit, account_id)
    stage_end_of_calendar(unit, membership, None)
    unit.save(lock)
    payload = {"accountId": account_id, "endedAt": iso(clock.now())}
    # What the member has in other domains is removed by a job, which may take many transactions.
    unit.create(jobs.row(MEMBERSHIP_ENDED, unit.workspace_id, payload))
    unit.outbox.emit(Event("member.removed", account_id))
    unit.mention(f"account:{account_id}")
    return ended


def stage_end_of_calendar(
    unit: UnitOfWork, membership: MembershipRow, resource_id: str | None
) -> None:
    """Stage the end of the calendar's link that a member of the staff has had, if it changes.

    The link is a secret without a person: who has it reads the calendar in any program.
    """
    former_id = membership.resource_id
    if membership.role == Role.STAFF and former_id is not None and former_id != resource_id:
        # A request that was admitted before may still make a link. None runs for a minute.
        due_at = clock.now() + timedelta(minutes=1)
        payload = {"resourceId": former_id}
        unit.create(jobs.row(END_CALENDAR_LINK, unit.workspace_id, payload, due_at))


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

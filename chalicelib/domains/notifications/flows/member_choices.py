"""Choices of members, and the kinds of messages that result for a workspace."""

from collections.abc import Callable, Iterable

from chalicelib.core.errors import ForbiddenError, NotFoundError
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.identity.flows import memberships
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.workspaces import Member, MembershipRow
from chalicelib.domains.notifications.store import choices
from chalicelib.domains.notifications.store.choices import LOCK, Choices
from chalicelib.engine import locks
from chalicelib.engine.events import subscriptions
from chalicelib.engine.unit import UnitOfWork, run_unit


def members(workspace_id: str) -> list[tuple[Member, Choices]]:
    """Return the members of a workspace with their choices, without disabled accounts."""
    country = workspaces.get(workspace_id).country
    rows = choices.read_all(workspace_id)
    return [
        (member, Choices(member.membership, country, account.mail_language, rows.get(account.id)))
        for member in workspaces.members(workspace_id)
        if (account := member.account).disabled_at is None
    ]


def read_choices(workspace_id: str, *, account_id: str) -> Choices:
    """Return the choices of a member, or raise ForbiddenError if the account is not one."""
    membership = workspaces.membership(account_id, workspace_id=workspace_id)
    if membership is None:
        raise ForbiddenError("You are not a member of this workspace.", key="not_member")
    country, language = workspaces.get(workspace_id).country, accounts.get(account_id).mail_language
    return Choices(membership, country, language, choices.find(workspace_id, account_id=account_id))


def stage_change(
    unit: UnitOfWork, workspace_id: str, *, account_id: str, change: Callable[[Choices], object]
) -> Choices:
    """Stage a change of a member's choices, and of the kinds that the workspace then sends.

    Changes in a workspace run one after another. Raises ForbiddenError if the account is no member.
    """
    lock = locks.lock_row(workspace_id, what=LOCK)
    own_choices = read_choices(workspace_id, account_id=account_id)
    change(own_choices)
    others = [
        member_choices
        for member, member_choices in members(workspace_id)
        if member.account.id != account_id
    ]
    # Two members who change their choices at the same time would each miss the other's.
    unit.save(lock)
    unit.save(own_choices.row(workspace_id, account_id=account_id))
    _stage_unwanted(unit, workspace_id, [own_choices, *others])
    return own_choices


def stage_link(
    unit: UnitOfWork, workspace_id: str, *, account_id: str, resource_id: str | None
) -> None:
    """Link a member to a member of the staff, and stage the kinds of messages to send.

    Raises NotFoundError if the account is not a member.
    """
    lock = locks.lock_row(workspace_id, what=LOCK)
    everyone = members(workspace_id)
    linked = next((member for member, _ in everyone if member.account.id == account_id), None)
    if linked is None:
        raise NotFoundError("The workspace has no member with this id.", key="member")
    memberships.stage_end_of_calendar(unit, linked.membership, resource_id)
    linked.membership.resource_id = resource_id
    rows = choices.read_all(workspace_id)
    country, language = workspaces.get(workspace_id).country, linked.account.language
    own_choices = Choices(linked.membership, country, language, rows.get(account_id))
    others = [
        member_choices for member, member_choices in everyone if member.account.id != account_id
    ]
    unit.save(lock)
    action = (
        MembershipRow.resource_id.set(resource_id)
        if resource_id
        else MembershipRow.resource_id.remove()
    )
    unit.update(linked.membership, [action])
    unit.mention(f"account:{account_id}")
    _stage_unwanted(unit, workspace_id, [own_choices, *others])


def remove(workspace_id: str, *, account_id: str) -> None:
    """Remove the choices of a former member. The choices of a member who has returned are kept."""

    def stage(unit: UnitOfWork) -> None:
        lock = locks.lock_row(workspace_id, what=LOCK)
        row = choices.find(workspace_id, account_id=account_id)
        # The account may have joined again since the job was written.
        if row is None or workspaces.membership(account_id, workspace_id=workspace_id) is not None:
            return
        unit.save(lock)
        unit.delete(row)
        _stage_unwanted(
            unit, workspace_id, [member_choices for _, member_choices in members(workspace_id)]
        )

    run_unit(workspace_id, AuditEvent.by_job(MEMBERSHIP_ENDED), stage)


def _stage_unwanted(unit: UnitOfWork, workspace_id: str, everyone: Iterable[Choices]) -> None:
    unwanted = choices.unwanted(everyone)
    unit.update(*subscriptions.change_of_people(workspace_id, unwanted))
    # Other processes learn of the change within ten seconds.
    unit.after_commit(subscriptions.forget)

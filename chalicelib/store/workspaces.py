"""Workspaces and who belongs to them."""

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.scopes import PLANS
from chalicelib.core.unit import AuditEvent
from chalicelib.rules import slugs
from chalicelib.store import accounts, api_keys
from chalicelib.store.claims import ClaimRow, claim
from chalicelib.store.tables import IdentityRow, reaching
from chalicelib.store.unit import UnitOfWork

SLUG_CLAIM = "workspace-slug"
SORT_KEY = "workspace"
MEMBER_ROLES = ("member", "manager")
KEYS_A_UNIT = 90
"""Keys rewritten in one transaction, beside the workspace and the audit record."""


class WorkspaceRow(IdentityRow):
    """A workspace (spec: group). Its owner pays for its bots; ``timezone`` is an IANA name."""

    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    logo_url = UnicodeAttribute(null=True)
    owner_id = UnicodeAttribute()
    plan = UnicodeAttribute()
    timezone = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        """The workspace's id."""
        return self.pk.partition("#")[2]


class MembershipRow(IdentityRow):
    """An account's place in a workspace, under the account.

    ``owner``, ``manager`` or ``member``.
    """

    role = UnicodeAttribute()
    joined_at = UTCDateTimeAttribute()

    @property
    def workspace_id(self) -> str:
        """The workspace's id."""
        return self.sk

    @property
    def account_id(self) -> str:
        """The account's id."""
        return self.pk.split("#")[1]


def _memberships(account_id: str) -> str:
    return f"ACCOUNT#{account_id}#WORKSPACES"


def _check_zone(timezone: str) -> str:
    from zoneinfo import available_timezones  # noqa: PLC0415  reads the zone database

    if timezone not in available_timezones():
        raise ValidationError.of(
            "timezone", f'expected an IANA name such as Europe/Moscow, received "{timezone[:80]}"'
        )
    return timezone


def create(
    owner_email: str, name: str, plan: str = "business", timezone: str = "Europe/Moscow"
) -> WorkspaceRow:
    """Create a workspace owned by the account with this e-mail address.

    Raises:
        NotFoundError: no such account.
        ValidationError: an empty name, unknown plan or time zone.
    """
    name = name.strip()
    if not name:
        raise ValidationError.of("name", "expected at least one character, received none")
    owner = accounts.by_email(owner_email)
    options = list(slugs.candidates(slugs.slugify(name, "workspace")))
    slug = slugs.first_free(options, ClaimRow.taken(SLUG_CLAIM, options))
    now = clock.now()
    workspace = WorkspaceRow(
        f"WORKSPACE#{new_id()}",
        SORT_KEY,
        name=name,
        slug=slug,
        owner_id=owner.id,
        plan=_check_plan(plan),
        timezone=_check_zone(timezone),
        created_at=now,
    )
    unit = UnitOfWork(workspace.id, workspace.id)
    unit.create(workspace)
    taken = ConflictError(
        "Another workspace of this name was created at the same moment. Try again."
    )
    unit.create(claim(SLUG_CLAIM, slug, workspace.id, workspace.id), on_conflict=taken)
    unit.create(MembershipRow(_memberships(owner.id), workspace.id, role="owner", joined_at=now))
    unit.commit(AuditEvent.by_operator("create_workspace", f"workspace:{workspace.id}"))
    return workspace


def get(workspace_id: str) -> WorkspaceRow:
    """Return a workspace by id.

    Raises:
        NotFoundError: there is none.
    """
    workspace = WorkspaceRow.find(f"WORKSPACE#{workspace_id}", SORT_KEY)
    if workspace is None:
        msg = f'No workspace has the id "{workspace_id}".'
        raise NotFoundError(msg)
    return workspace


def of_account(account_id: str) -> list[tuple[WorkspaceRow, MembershipRow]]:
    """Return an account's workspaces, each with its membership, oldest first."""
    memberships = {
        row.workspace_id: row for row in MembershipRow.partition(_memberships(account_id))
    }
    keys = [(f"WORKSPACE#{workspace_id}", SORT_KEY) for workspace_id in memberships]
    with reaching():
        rows = list(WorkspaceRow.batch_get(keys, consistent_read=True))
    return [(row, memberships[row.id]) for row in sorted(rows, key=lambda row: row.id)]


def membership(account_id: str, workspace_id: str) -> MembershipRow | None:
    """Return an account's membership of a workspace, or None."""
    return MembershipRow.find(_memberships(account_id), workspace_id)


def add_member(workspace_id: str, email: str, role: str = "member") -> MembershipRow:
    """Add an account to a workspace, or change its role there; the owner stays the owner."""
    if role not in MEMBER_ROLES:
        raise ValidationError.of(
            "role", f'expected one of {", ".join(MEMBER_ROLES)}, received "{role[:80]}"'
        )
    workspace, account = get(workspace_id), accounts.by_email(email)
    if account.id == workspace.owner_id:
        msg = f"{account.email} owns this workspace; an owner cannot become a {role}."
        raise ConflictError(msg)
    before = membership(account.id, workspace_id)
    joined_at = before.joined_at if before else clock.now()
    row = MembershipRow(_memberships(account.id), workspace_id, role=role, joined_at=joined_at)
    unit = UnitOfWork(workspace_id, account.id)
    unit.save(row)
    unit.commit(AuditEvent.by_operator("add_member", f"account:{account.id}"))
    return row


def _check_plan(plan: str) -> str:
    if plan not in PLANS:
        raise ValidationError.of(
            "plan", f'expected one of {", ".join(PLANS)}, received "{plan[:80]}"'
        )
    return plan


def set_plan(workspace_id: str, plan: str) -> WorkspaceRow:
    """Change a workspace's plan, in its record and in every live key: the next request sees it."""
    _check_plan(plan)
    workspace = get(workspace_id)
    workspace.plan = plan

    def some(*, first: bool) -> bool:
        stale = [key for key in api_keys.live(workspace_id) if key.plan != plan]
        unit = UnitOfWork(workspace_id, workspace_id)
        if first:
            unit.save(workspace)
        for key in stale[:KEYS_A_UNIT]:
            unit.update(key, [api_keys.ApiKeyRow.plan.set(plan)])
        unit.commit(
            AuditEvent.by_operator("set_plan", f"workspace:{workspace_id}") if first else None
        )
        return bool(stale)

    retry_on_conflict(lambda: some(first=True))
    # A key made while the plan changed is found now; one made later carries the new plan.
    while retry_on_conflict(lambda: some(first=False)):
        pass
    return workspace

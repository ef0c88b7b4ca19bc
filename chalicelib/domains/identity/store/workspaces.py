"""Workspaces and their members."""

from typing import Any, NamedTuple, Self

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import workspace_currency
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.events import subscriptions
from chalicelib.engine.reading import Key, Rows, fetch, fetch_of
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib.currencies import RUB

SLUG_CLAIM = "workspace-slug"
SORT_KEY = subscriptions.SORT_KEY
# The lock row (``engine.locks``) for the choices of messages in a workspace.
CHOICES_LOCK = "notifications"


class WorkspaceRow(IdentityRow):
    """A workspace. Its owner pays for its bots."""

    version = VersionAttribute()
    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    logo_url = UnicodeAttribute(null=True)  # shown to clients, as are address, phone and accent
    address = UnicodeAttribute(null=True)
    phone = UnicodeAttribute(null=True)
    accent = UnicodeAttribute(null=True)  # ``lib.accents``
    privacy_url = UnicodeAttribute(null=True)  # forms that take contacts lead to it
    owner_id = UnicodeAttribute()
    plan = UnicodeAttribute()
    timezone = UnicodeAttribute()  # IANA name
    country = UnicodeAttribute(default="RU")  # ISO 3166-1 alpha-2, the default for phone numbers
    # ISO 4217, of all prices and payments. ``engine.workspace_currency`` says when it may change.
    currency = UnicodeAttribute(default=RUB)
    has_prices = BooleanAttribute(null=True)
    takes_rubles_only = BooleanAttribute(null=True)
    created_at = UTCDateTimeAttribute()
    # Set for a workspace that came by sign-up, until an operator has looked at it: search engines
    # do not list its pages, and it takes no domain of its own.
    awaits_review = BooleanAttribute(null=True)
    halt: UnicodeAttribute = UnicodeAttribute(null=True)  # ``core.plans.Halt``
    suspended_at = UTCDateTimeAttribute(null=True)
    closed_at = UTCDateTimeAttribute(null=True)  # by its owner, who may reopen it for a time
    deletion_at = UTCDateTimeAttribute(null=True)  # when the records of a closed one are deleted
    # When a member has asked not to see the first steps any more.
    steps_dismissed_at = UTCDateTimeAttribute(null=True)
    # When the owner of a test workspace was last told that it is emptied soon.
    idle_told_at = UTCDateTimeAttribute(null=True)
    # The channels by which clients are told of bookings, the first to try first. None: the default
    # of ``notifications.rules.client_channels``.
    client_channels: ListAttribute[str] = ListAttribute(null=True)
    # Types of events that its webhooks receive.
    webhook_events: ListAttribute[Any] = ListAttribute(null=True)
    # Kinds of messages that no member wants.
    unwanted_messages: ListAttribute[Any] = ListAttribute(null=True)

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        row = super().from_raw_data(data)
        # The row was paid for already, so the caches take it without a read.
        subscriptions.learn(row.id, row.webhook_events, row.unwanted_messages, row.halt)
        workspace_currency.learn(row.id, row.currency, has_prices=row.has_prices)
        return row

    @property
    def id(self) -> str:
        return self.pk.partition("#")[2]

    @property
    def plan_of_keys(self) -> str:
        """What the rows of its keys and connected apps have as their plan."""
        return str(self.halt or self.plan)


class MembershipRow(IdentityRow):
    """Membership of an account in a workspace, stored under the account."""

    role = UnicodeAttribute()  # ``owner``, ``manager``, ``member`` or ``staff``
    # The member of the staff that the account is, if a manager has linked it. It bounds what an
    # account with the role ``staff`` sees.
    resource_id = UnicodeAttribute(null=True)
    # Another id for each time that the account joins or gets another role, so that what a lost
    # right has made does not work again.
    term = UnicodeAttribute(null=True)
    joined_at = UTCDateTimeAttribute()

    @property
    def workspace_id(self) -> str:
        return self.sk

    @property
    def account_id(self) -> str:
        return self.pk.split("#")[1]


class MemberRow(IdentityRow):
    """Reverse entry of a membership, stored under the workspace. The membership holds the role."""


class Member(NamedTuple):
    account: AccountRow
    membership: MembershipRow


def row(workspace_id: str, **attributes: Any) -> WorkspaceRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new workspace, for the caller to stage."""
    return WorkspaceRow(f"WORKSPACE#{workspace_id}", SORT_KEY, **attributes)


def slug_claim(workspace: WorkspaceRow) -> ClaimRow:
    """Return the claim of a workspace on its slug."""
    return claim(SLUG_CLAIM, name=workspace.slug, target=workspace.id, workspace_id=workspace.id)


def membership_row(account_id: str, *, workspace_id: str, **attributes: Any) -> MembershipRow:  # noqa: ANN401  the row's attributes
    """Return the row of a membership, for the caller to stage."""
    # A new term makes what an earlier membership has created useless.
    return MembershipRow(_memberships(account_id), workspace_id, term=new_id(), **attributes)


def role_changes(role: str) -> list[Action]:
    """Return the changes of a membership whose role changes. A new term begins."""
    return [MembershipRow.role.set(role), MembershipRow.term.set(new_id())]


def member_row(account_id: str, *, workspace_id: str) -> MemberRow:
    """Return the row of a member under the workspace. The caller stages it with the membership."""
    return MemberRow(f"W#{workspace_id}#MEMBER", account_id)


def _memberships(account_id: str) -> str:
    return f"ACCOUNT#{account_id}#WORKSPACES"


def key(workspace_id: str) -> Key:
    """Return a workspace's key, to read the workspace with other rows."""
    return Key(WorkspaceRow, f"WORKSPACE#{workspace_id}", SORT_KEY)


def get(workspace_id: str, rows: Rows | None = None) -> WorkspaceRow:
    """Return a workspace by id, from ``rows`` if they are given, or raise NotFoundError."""
    if rows is None:
        workspace = WorkspaceRow.find(f"WORKSPACE#{workspace_id}", SORT_KEY)
    else:
        workspace = rows.find(WorkspaceRow, key(workspace_id))
    if workspace is None:
        msg = f'No workspace has the id "{workspace_id}".'
        raise NotFoundError(msg, key="workspace")
    return workspace


def read_by_account(account_id: str) -> list[tuple[WorkspaceRow, MembershipRow]]:
    """Return an account's workspaces, each with its membership, oldest first."""
    memberships = {
        row.workspace_id: row for row in MembershipRow.partition(_memberships(account_id))
    }
    keys = ((f"WORKSPACE#{workspace_id}", SORT_KEY) for workspace_id in memberships)
    rows = fetch_of(WorkspaceRow, keys)
    return [(row, memberships[row.id]) for row in sorted(rows, key=lambda row: row.id)]


def owned_tests(account_id: str) -> list[str]:
    """Return the ids of the test workspaces that an account owns."""
    rows = MembershipRow.partition(_memberships(account_id))
    return [row.workspace_id for row in rows if row.role == "owner" and is_test(row.workspace_id)]


def owned(account_id: str) -> list[str]:
    """Return the ids of the workspaces that an account owns, without test workspaces."""
    rows = MembershipRow.partition(_memberships(account_id))
    return [
        row.workspace_id for row in rows if row.role == "owner" and not is_test(row.workspace_id)
    ]


def membership(account_id: str, *, workspace_id: str) -> MembershipRow | None:
    """Return an account's membership of a workspace, or None."""
    return MembershipRow.find(_memberships(account_id), workspace_id)


def members(workspace_id: str) -> list[Member]:
    """Return the members of a workspace, in the order that they joined."""
    ids = [row.sk for row in MemberRow.partition(member_row("", workspace_id=workspace_id).pk)]
    keys = [Key(MembershipRow, _memberships(account_id), workspace_id) for account_id in ids]
    rows_read = fetch([*map(accounts.key, ids), *keys])
    people = {row.id: row for row in rows_read if isinstance(row, AccountRow)}
    places = [row for row in rows_read if isinstance(row, MembershipRow)]
    joined = sorted(places, key=lambda row: (row.joined_at, row.account_id))
    return [Member(people[row.account_id], row) for row in joined]

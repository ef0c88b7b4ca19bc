"""Let members and keys read their workspaces, and the operator change them."""

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core import clock, plans
from chalicelib.core.errors import ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import MANAGED, OPERATOR, operation
from chalicelib.core.plans import Plan
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import (
    Id,
    MailedTitle,
    NoInput,
    Patch,
    Pattern,
    Timestamp,
    Wire,
    optional,
    printable,
)
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.domains.identity.store.connections import ConnectionRow
from chalicelib.domains.identity.store.workspaces import SLUG_CLAIM, MembershipRow, WorkspaceRow
from chalicelib.engine import locks
from chalicelib.engine.claims import ClaimRow
from chalicelib.lib import phones, public_urls, slugs, zoned_times
from chalicelib.lib.accents import Accent
from chalicelib.lib.contact_fields import Email, PhoneText


def _check_country(code: str) -> str:
    if not phones.has_number_plan(code):
        raise PydanticCustomError("country", "expected the ISO 3166 code of a country, such as RU")
    return code


Country = Annotated[
    str, Pattern("[A-Z]{2}", "two capital letters, such as RU"), AfterValidator(_check_country)
]


def _check_logo(url: str) -> str:
    if url.startswith(f"{settings().public_url}/"):
        return url
    try:
        return str(public_urls.parse(url))
    except ValueError as error:
        raise PydanticCustomError("url", "{reason}", {"reason": str(error)}) from None


LogoUrl = Annotated[str, StringConstraints(max_length=1_000), AfterValidator(_check_logo)]
Address = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=300),
    AfterValidator(printable),
]


class WorkspaceOut(Wire):
    """A workspace, and the account's role in it."""

    id: Id = Field(description="Workspace id.")
    name: str = Field(description="Display name.")
    slug: str = Field(description="Unique short name.")
    logo_url: str | None = Field(description="URL of the logo, or null.")
    owner_id: Id = Field(description="Account that owns the workspace.")
    role: str = Field(description="The account's role in it: owner, manager or member.")
    joined_at: Timestamp = Field(description="When the account joined.")
    is_owner: bool = Field(description="Whether the account owns it.")
    timezone: str = Field(description="IANA name of its time zone.")
    country: str = Field(description="ISO 3166 code of the country for parsing phone numbers.")

    @classmethod
    def from_record(cls, workspace: WorkspaceRow, membership: MembershipRow) -> Self:
        return cls.from_row(
            workspace.attribute_values,
            id=workspace.id,
            role=membership.role,
            joined_at=membership.joined_at,
            is_owner=workspace.owner_id == membership.account_id,
        )


class OwnWorkspace(WorkspaceOut):
    """A workspace and its plan."""

    plan: str = Field(description="free, start, business or enterprise.")


class OwnWorkspaceList(Wire):
    """All workspaces of an account."""

    workspaces: list[OwnWorkspace] = Field(description="Workspaces, oldest first.")


class WorkspaceList(Wire):
    """All workspaces of the key's account."""

    workspaces: list[WorkspaceOut] = Field(
        description="Workspaces of the key's owner, oldest first."
    )
    active_workspace_id: Id = Field(description="The workspace that this key works in.")
    now: str = Field(description="Current time in its zone, ISO 8601 with an offset.")


@operation(tool=True, rest="GET /api/workspaces/list", scope=None, example={})
def list_workspaces(ctx: Context, args: NoInput) -> WorkspaceList:
    """List the workspaces of the key's owner. Other calls apply only to activeWorkspaceId."""
    pairs = workspaces.read_by_account(ctx.principal.account_id)
    workspaces_out = [WorkspaceOut.from_record(*pair) for pair in pairs]
    (zone,) = (
        workspace.timezone for workspace in workspaces_out if workspace.id == ctx.workspace_id
    )
    return WorkspaceList(
        workspaces=workspaces_out,
        active_workspace_id=ctx.workspace_id,
        now=zoned_times.local_time(clock.now(), zone).text,
    )


@operation(title="List one's own workspaces", role=Role.ACCOUNT)
def list_my_workspaces(ctx: Context, args: NoInput) -> OwnWorkspaceList:
    """List the workspaces that the account belongs to."""
    pairs = workspaces.read_by_account(ctx.principal.account_id)
    return OwnWorkspaceList(workspaces=[OwnWorkspace.from_record(*pair) for pair in pairs])


class WorkspaceCreate(Wire):
    """A new workspace."""

    owner: Email = Field(description="E-mail address of the account that owns and pays.")
    name: MailedTitle = Field(description="Display name.")
    plan: Plan = Field(default="business", description="Plan of the workspace.")
    timezone: Timezone | None = optional(
        "IANA name of its time zone. Default: the country's, Europe/Moscow for RU."
    )
    country: Country = Field(
        default="RU", description="ISO 3166 code of the country for parsing phone numbers."
    )


class WorkspaceCreated(Wire):
    """A new workspace."""

    workspace_id: Id = Field(description="Workspace id.")
    slug: str = Field(description="Unique short name.")
    plan: str = Field(description="Plan of the workspace.")
    timezone: str = Field(description="IANA name of its time zone.")


class WorkspacePatch(Patch):
    """Changes to a workspace."""

    CONDITIONS: ClassVar[frozenset[str]] = frozenset({"workspace_id"})

    workspace_id: Id = optional("The workspace; the session's own if omitted.")
    name: MailedTitle = optional("Display name.")
    timezone: Timezone = optional("IANA name of its time zone.")
    country: Country = optional("ISO 3166 code of the country for parsing phone numbers.")
    address: Address | None = optional("Postal address for clients; null: none.")
    phone: PhoneText | None = optional("Phone for clients; null: none.")
    logo_url: LogoUrl | None = optional("HTTPS URL of the logo; null: none.")
    accent: Accent | None = optional("Colour of the booking page and of e-mails; null: indigo.")


class WorkspaceSettings(Wire):
    """Attributes of a workspace that its managers and the operator can change."""

    workspace_id: Id = Field(description="Workspace id.")
    name: str = Field(description="Display name.")
    timezone: str = Field(description="IANA name of its time zone.")
    country: str = Field(description="ISO 3166 code of the country for parsing phone numbers.")
    address: str | None = Field(description="Postal address for clients, or null.")
    phone: str | None = Field(description="Phone for clients, or null.")
    logo_url: str | None = Field(description="URL of the logo, or null.")
    accent: str | None = Field(description="Colour of the booking page and of e-mails, or null.")


class PlanSet(Wire):
    """A workspace's new plan."""

    workspace_id: Id = Field(description="Workspace id.")
    plan: Plan = Field(description="New plan of the workspace.")


class PlanSetResult(Wire):
    """A workspace's plan."""

    workspace_id: Id = Field(description="Workspace id.")
    plan: str = Field(description="Plan of the workspace.")


def _new_workspace(_: WorkspaceCreate) -> str:
    # The resolved id makes the call part of the new workspace's audit log.
    return new_id()


def _zone_of(country: str) -> str:
    """Return the time zone of a country.

    Raises:
        ValidationError: the country has several. The message names them.
    """
    if country == "RU":  # The default of both fields; most of its people live in this zone.
        return "Europe/Moscow"
    zones = zoned_times.zones_of_country(country)
    if len(zones) == 1:
        return zones[0]
    names = f"one of {', '.join(zones)}" if zones else "an IANA name such as Europe/Belgrade"
    message = f"expected {names}, because {country} has {len(zones)} time zones, received none"
    raise ValidationError.of("timezone", message=message)


@operation(audience=OPERATOR, resolve=_new_workspace)
def create_workspace(ctx: Context, args: WorkspaceCreate) -> WorkspaceCreated:
    """Create a workspace. A country with several time zones requires the time zone."""
    owner = accounts.require_by_email(args.owner)
    options = list(slugs.candidates(slugs.slugify(args.name, fallback="workspace")))
    taken_slugs = ClaimRow.find_claimed(SLUG_CLAIM, options)
    now = clock.now()
    workspace = workspaces.row(
        ctx.workspace_id,
        name=args.name,
        slug=new_slugs.choose(ctx, options, taken_slugs, reserved=slugs.RESERVED),
        owner_id=owner.id,
        plan=args.plan,
        timezone=args.timezone or _zone_of(args.country),
        country=args.country,
        created_at=now,
    )
    ctx.unit.create(workspace)
    ctx.unit.create(workspaces.slug_claim(workspace))
    ctx.unit.create(
        workspaces.membership_row(owner.id, workspace_id=workspace.id, role="owner", joined_at=now)
    )
    ctx.unit.create(workspaces.member_row(owner.id, workspace_id=workspace.id))
    ctx.unit.mention(f"workspace:{workspace.id}")
    return WorkspaceCreated.from_row(workspace.attribute_values, workspace_id=workspace.id)


class PlanLimits(Wire):
    """Features and limits of a plan."""

    has_api: bool = Field(description="Whether it includes API keys, AI clients and webhooks.")
    storage_bytes: int = Field(description="Bytes of files and pages.")
    leads_a_month: int = Field(description="Leads in thirty days.")
    client_mails_a_day: int = Field(description="Mails a day to clients about their bookings.")


class WorkspaceWithPlan(WorkspaceSettings):
    """A workspace's settings and its plan."""

    slug: str = Field(description="Unique short name.")
    plan: str = Field(description="free, start, business or enterprise.")
    includes: PlanLimits = Field(description="What the plan includes.")


@operation(title="Get the workspace", role=Role.MANAGER)
def get_workspace(ctx: Context, args: NoInput) -> WorkspaceWithPlan:
    """Return the settings of the session's workspace, and what its plan includes."""
    workspace = workspaces.get(ctx.workspace_id)
    plan = workspace.plan
    includes = PlanLimits(
        has_api=plan in plans.PLANS_WITH_API,
        storage_bytes=plans.STORAGE_BYTES[plan],
        leads_a_month=plans.LEADS_A_MONTH[plan],
        client_mails_a_day=plans.CLIENT_MAILS_A_DAY[plan],
    )
    return WorkspaceWithPlan.from_row(
        workspace.attribute_values, workspace_id=workspace.id, includes=includes
    )


def _workspace(args: PlanSet | WorkspacePatch) -> str:
    return args.workspace_id or ""


@operation(
    title="Update a workspace",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=_workspace,
    idempotent=True,
)
def set_workspace(ctx: Context, args: WorkspacePatch) -> WorkspaceSettings:
    """Change a workspace's name, time zone, country for phone numbers, and what its clients see.

    Existing counts and phone numbers do not change. Neither do the slug and the time zones of
    resources.
    """
    workspace = workspaces.get(ctx.workspace_id)
    if args.changes.get("timezone", workspace.timezone) != workspace.timezone:
        ctx.warn("The time zone of resources is not changed. To change it, update each resource.")
    for name, value in args.changes.items():
        setattr(workspace, name, value)
    ctx.unit.save(workspace)
    ctx.unit.mention(f"workspace:{workspace.id}")
    return WorkspaceSettings.from_row(workspace.attribute_values, workspace_id=workspace.id)


@operation(audience=OPERATOR, resolve=_workspace, idempotent=True)
def set_plan(ctx: Context, args: PlanSet) -> PlanSetResult:
    """Change a workspace's plan, in its record and in every live key and connected app.

    The next request uses the new plan.

    One transaction changes them together with the lock row of the keys, so that they never
    disagree.
    """
    lock = locks.lock_row(args.workspace_id, what=api_keys.LOCK)
    workspace = workspaces.get(args.workspace_id)
    workspace.plan = args.plan
    ctx.unit.save(lock)
    ctx.unit.save(workspace)
    for key in api_keys.live(workspace.id):
        if key.plan != args.plan:
            ctx.unit.update(key, [ApiKeyRow.plan.set(args.plan)])
    for connection in connections.live(workspace.id):
        if connection.plan != args.plan:
            ctx.unit.update(connection, [ConnectionRow.plan.set(args.plan)])
    ctx.unit.mention(f"workspace:{workspace.id}")
    return PlanSetResult(workspace_id=workspace.id, plan=workspace.plan)

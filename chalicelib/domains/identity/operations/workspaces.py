"""Let members and keys read their workspaces, and the operator change them."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core import clock, plans, test_workspaces
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConflictError, InTestWorkspaceError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import KEYS_AND_MANAGED, OPERATOR, operation
from chalicelib.core.plans import Plan
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.lists import ListResult, WholePageQuery
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
from chalicelib.domains.identity.flows import halting
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.identity.rules.job_kinds import TEST_IDLE
from chalicelib.domains.identity.store import accounts, api_keys, directory, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import SLUG_CLAIM, MembershipRow, WorkspaceRow
from chalicelib.engine import jobs, locks
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.registry import listing_of
from chalicelib.lib import currencies, public_urls, slugs, zoned_times
from chalicelib.lib.accents import Accent
from chalicelib.lib.contact_fields import Country, Email, PhoneText
from chalicelib.lib.currencies import RUB

PRICES = SortIndex("price")
MAX_TESTS = 3  # test workspaces that an account owns
TESTS = Limit("test-workspaces", "new test workspaces an hour", 10, timedelta(hours=1))


class CurrencyFixedError(ConflictError):
    """The workspace has prices, or its payment provider does not take the currency."""

    code = "currency_fixed"


def _check_https(url: str) -> str:
    if url.startswith(f"{settings().public_url}/"):
        return url
    try:
        return str(public_urls.parse(url))
    except ValueError as error:
        raise PydanticCustomError("url", "{reason}", {"reason": str(error)}) from None


def _check_currency(code: str) -> str:
    if code not in currencies.DIGITS:
        raise PydanticCustomError("currency", "expected the ISO 4217 code of a currency")
    return code


Currency = Annotated[
    str, Pattern("[A-Z]{3}", "three capital letters, such as RUB"), AfterValidator(_check_currency)
]
LogoUrl = Annotated[str, StringConstraints(max_length=1_000), AfterValidator(_check_https)]
PrivacyUrl = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=1_000),
    AfterValidator(_check_https),
]
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
    currency: str = Field(description="ISO 4217 code of the currency of prices and payments.")
    is_test: bool = Field(description="Whether it is a test workspace, which nothing leaves.")

    @classmethod
    def from_record(cls, workspace: WorkspaceRow, membership: MembershipRow) -> Self:
        return cls.from_row(
            workspace.attribute_values,
            id=workspace.id,
            role=membership.role,
            joined_at=membership.joined_at,
            is_owner=workspace.owner_id == membership.account_id,
            is_test=is_test(workspace.id),
        )


class WorkspaceListQuery(WholePageQuery):
    """Page of the workspaces."""


class WorkspaceList(ListResult):
    """All workspaces of the key's account."""

    workspaces: list[WorkspaceOut] = Field(
        description="Workspaces of the key's owner, oldest first."
    )
    active_workspace_id: Id = Field(description="The workspace that this key works in.")
    now: str = Field(description="Current time in its zone, ISO 8601 with an offset.")


@operation(tool=True, rest="GET /api/workspaces/list", scope=None, example={})
def list_workspaces(ctx: Context, args: WorkspaceListQuery) -> WorkspaceList:
    """List the workspaces of the key's owner. Other calls apply only to activeWorkspaceId."""
    pairs = workspaces.read_by_account(ctx.principal.account_id)
    workspaces_out = [WorkspaceOut.from_record(*pair) for pair in pairs]
    (zone,) = (
        workspace.timezone for workspace in workspaces_out if workspace.id == ctx.workspace_id
    )
    return WorkspaceList(
        workspaces=workspaces_out[args.rows],
        **args.counted(len(workspaces_out)),
        active_workspace_id=ctx.workspace_id,
        now=zoned_times.local_time(clock.now(), zone).text,
    )


class TestWorkspaceCreate(Wire):
    """A new test workspace."""

    name: MailedTitle = Field(description="Display name.")
    timezone: Timezone | None = optional(
        "IANA name of its time zone. Default: the country's, Europe/Moscow for RU."
    )
    country: Country = Field(
        default="RU", description="ISO 3166 code of the country for parsing phone numbers."
    )
    currency: Currency | None = optional(
        "ISO 4217 code of the currency of prices. Default: the country's, RUB for RU."
    )


class WorkspaceCreate(TestWorkspaceCreate):
    """A new workspace."""

    owner: Email = Field(description="E-mail address of the account that owns and pays.")
    plan: Plan = Field(default="business", description="Plan; a test workspace has its own.")
    is_test: bool = Field(default=False, description="Whether it is a test workspace, for good.")


class WorkspaceCreated(Wire):
    """A new workspace."""

    workspace_id: Id = Field(description="Workspace id.")
    slug: str = Field(description="Unique short name.")
    plan: str = Field(description="Plan of the workspace.")
    timezone: str = Field(description="IANA name of its time zone.")


class WorkspacePatch(Patch):
    """Changes to a workspace."""

    name: MailedTitle = optional("Display name.")
    timezone: Timezone = optional("IANA name of its time zone.")
    country: Country = optional("ISO 3166 code of the country for parsing phone numbers.")
    currency: Currency = optional(
        "ISO 4217 code of the currency of prices. It stays after the first price or payment."
    )
    address: Address | None = optional("Postal address for clients; null: none.")
    phone: PhoneText | None = optional("Phone for clients; null: none.")
    logo_url: LogoUrl | None = optional("HTTPS URL of the logo; null: none.")
    accent: Accent | None = optional("Colour of the booking page and of e-mails; null: indigo.")
    privacy_url: PrivacyUrl | None = optional("HTTPS URL of the privacy policy; null: none.")


class WorkspaceSettings(Wire):
    """Attributes of a workspace that its managers, keys and the operator can change."""

    id: Id = Field(description="Workspace id.")
    name: str = Field(description="Display name.")
    timezone: str = Field(description="IANA name of its time zone.")
    country: str = Field(description="ISO 3166 code of the country for parsing phone numbers.")
    currency: str = Field(description="ISO 4217 code of the currency of prices and payments.")
    address: str | None = Field(description="Postal address for clients, or null.")
    phone: str | None = Field(description="Phone for clients, or null.")
    logo_url: str | None = Field(description="URL of the logo, or null.")
    accent: str | None = Field(description="Colour of the booking page and of e-mails, or null.")
    privacy_url: str | None = Field(description="URL of the privacy policy, or null.")


class WorkspaceSettingsResult(Wire):
    """A workspace's settings."""

    workspace: WorkspaceSettings = Field(description="The workspace.")


class PlanSet(Wire):
    """A workspace's new plan."""

    workspace_id: Id = Field(description="Workspace id.")
    plan: Plan = Field(description="New plan of the workspace.")


class PlanSetResult(Wire):
    """A workspace's plan."""

    workspace_id: Id = Field(description="Workspace id.")
    plan: str = Field(description="Plan of the workspace.")


def _new_workspace(args: WorkspaceCreate) -> str:
    # The resolved id makes the call part of the new workspace's audit log.
    return test_workspaces.new_id() if args.is_test else new_id()


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


@operation(
    audience=OPERATOR, resolve=_new_workspace, example={"owner": "OWNER_EMAIL", "name": "Second"}
)
def create_workspace(ctx: Context, args: WorkspaceCreate) -> WorkspaceCreated:
    """Create a workspace. A country with several time zones requires the time zone."""
    owner = accounts.require_by_email(args.owner)
    return stage_workspace(ctx, owner, args, args.plan, workspace_id=ctx.workspace_id)


@operation(
    role=Role.ACCOUNT,
    resolve=lambda _: test_workspaces.new_id(),
    limit=TESTS,
    example={"name": "Tests"},
)
def create_test_workspace(ctx: Context, args: TestWorkspaceCreate) -> WorkspaceCreated:
    """Create a test workspace of the account, which costs nothing and which nothing leaves.

    An account has at most three. A test workspace cannot become another one.
    """
    owner = accounts.get(ctx.principal.account_id)
    return stage_workspace(ctx, owner, args, plans.TEST, workspace_id=ctx.workspace_id)


def stage_workspace(  # noqa: PLR0913  the parts of a workspace
    ctx: Context,
    owner: AccountRow,
    args: TestWorkspaceCreate,
    plan: str,
    *,
    workspace_id: str,
    awaits_review: bool | None = None,
) -> WorkspaceCreated:
    """Stage a new workspace with its owner's membership. Every workspace is made here."""
    if is_test(workspace_id):
        plan = plans.TEST
        # Test workspaces of an account are created one after the other.
        ctx.unit.save(locks.lock_row(PLATFORM, what=f"tests-of-{owner.id}"))
        if len(workspaces.owned_tests(owner.id)) >= MAX_TESTS:
            msg = f"The account has {MAX_TESTS} test workspaces, which is the maximum. Wipe one."
            raise ConflictError(msg, key="too_many_test_workspaces", details={"maximum": MAX_TESTS})
    options = list(slugs.candidates(slugs.slugify(args.name, fallback="workspace")))
    taken_slugs = ClaimRow.find_claimed(SLUG_CLAIM, options)
    now = clock.now()
    workspace = workspaces.row(
        workspace_id,
        name=args.name,
        slug=new_slugs.choose(ctx, options, taken_slugs, reserved=slugs.RESERVED),
        owner_id=owner.id,
        plan=plan,
        timezone=args.timezone or _zone_of(args.country),
        country=args.country,
        currency=args.currency or currencies.of_country(args.country),
        has_prices=False,
        awaits_review=awaits_review,
        created_at=now,
    )
    ctx.unit.create(workspace)
    if is_test(workspace.id):
        # Its handler says when it is due next.
        ctx.unit.create(jobs.row(TEST_IDLE, workspace.id, {}, now, job_id=workspace.id))
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
    plan: str = Field(description="free, start, business, enterprise, or test.")
    is_test: bool = Field(description="Whether it is a test workspace, which nothing leaves.")
    includes: PlanLimits = Field(description="What the plan includes.")


class WorkspaceWithPlanResult(Wire):
    """A workspace's settings and its plan."""

    workspace: WorkspaceWithPlan = Field(description="The workspace.")


@operation(
    title="Get the workspace",
    rest="GET /api/workspace",
    scope=Scope.SETTINGS_READ,
    role=Role.MANAGER,
    example={},
)
def get_workspace(ctx: Context, args: NoInput) -> WorkspaceWithPlanResult:
    """Return the settings of the workspace, and what its plan includes."""
    workspace = workspaces.get(ctx.workspace_id)
    plan = workspace.plan
    includes = PlanLimits(
        has_api=plan in plans.PLANS_WITH_API,
        storage_bytes=plans.STORAGE_BYTES[plan],
        leads_a_month=plans.LEADS_A_MONTH[plan],
        client_mails_a_day=plans.CLIENT_MAILS_A_DAY[plan],
    )
    settings_and_plan = WorkspaceWithPlan.from_row(
        workspace.attribute_values,
        id=workspace.id,
        is_test=is_test(workspace.id),
        includes=includes,
    )
    return WorkspaceWithPlanResult(workspace=settings_and_plan)


@operation(
    title="Update a workspace",
    rest="POST /api/workspace/update",
    scope=Scope.SETTINGS_WRITE,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    idempotent=True,
    example={"phone": "+7 495 123-45-67", "address": "1 Main Street"},
    errors=(CurrencyFixedError,),
)
def set_workspace(ctx: Context, args: WorkspacePatch) -> WorkspaceSettingsResult:
    """Change a workspace's name, time zone, country for phone numbers, and what its clients see.

    Existing counts and phone numbers do not change. Neither do the slug and the time zones of
    resources. The currency changes only before the first price or payment.
    """
    # Both are read in one request.
    is_searched = bool({"name", "address"} & args.changes.keys())
    searched = [directory.key(ctx.workspace_id)] if is_searched else []
    ctx.unit.rows.read([workspaces.key(ctx.workspace_id), *searched])
    workspace = workspaces.get(ctx.workspace_id, ctx.unit.rows)
    if args.changes.get("currency", workspace.currency) != workspace.currency:
        _require_changeable(workspace, args.currency)
    if args.changes.get("timezone", workspace.timezone) != workspace.timezone:
        ctx.warn(
            "The time zone of resources is not changed. To change it, update each resource.",
            code=WarningCode.RESOURCES_KEEP_TIMEZONE,
            timezone=args.timezone,
        )
    for name, value in args.changes.items():
        setattr(workspace, name, value)
    ctx.unit.save(workspace)
    if is_searched:
        directory.follow_workspace(ctx.unit)
    ctx.unit.mention(f"workspace:{workspace.id}")
    changed = WorkspaceSettings.from_row(workspace.attribute_values, id=workspace.id)
    return WorkspaceSettingsResult(workspace=changed)


def _require_changeable(workspace: WorkspaceRow, currency: str) -> None:
    if workspace.has_prices or _has_prices(workspace):
        msg = (
            f"currency: expected {workspace.currency}, received {currency}. The workspace has "
            "prices or payments, so its currency stays. Create another workspace."
        )
        raise CurrencyFixedError(msg, key="has_prices")
    if workspace.takes_rubles_only and currency != RUB:
        msg = (
            f"currency: expected RUB, received {currency}. The payment provider takes rubles "
            "only. Set up payments at another provider first."
        )
        raise CurrencyFixedError(msg, key="payment_provider")


def _has_prices(workspace: WorkspaceRow) -> bool:
    # Workspaces that are older than currencies do not say whether they have had a price. A booking
    # may have had one.
    if workspace.has_prices is None and listing_of("BOOKING").read_after(
        workspace.id, record_id="", limit=1
    ):
        return True
    dearest = (
        listing_of(noun).read_along(workspace.id, PRICES, 1, descending=True)
        for noun in ("PRODUCT", "SERVICE")
    )
    return any(position.number > 0 for positions in dearest for position in positions)


@operation(
    audience=OPERATOR,
    resolve=lambda args: args.workspace_id,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID", "plan": "enterprise"},
)
def set_plan(ctx: Context, args: PlanSet) -> PlanSetResult:
    """Change a workspace's plan, in its record and in every live key and connected app.

    The next request uses the new plan.

    One transaction changes them together with the lock row of the keys, so that they never
    disagree.
    """
    if is_test(args.workspace_id):
        raise InTestWorkspaceError("The plan of a test workspace does not change.", key="plan")
    lock = locks.lock_row(args.workspace_id, what=api_keys.LOCK)
    workspace = workspaces.get(args.workspace_id)
    workspace.plan = args.plan
    ctx.unit.save(lock)
    ctx.unit.save(workspace)
    halting.stage_plan_of_keys(ctx.unit, workspace)
    ctx.unit.mention(f"workspace:{workspace.id}")
    return PlanSetResult(workspace_id=workspace.id, plan=workspace.plan)

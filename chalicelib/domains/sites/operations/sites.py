"""List, create and update sites, which the API calls projects, and switch visit counting."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ExternalIdTakenError, SlugTakenError, ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    BY_EXTERNAL_ID,
    EXTERNAL_ID,
    EXTERNAL_ID_OUT,
    METADATA,
    METADATA_OUT,
    Metadata,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.lists import ListQuery, ListResult
from chalicelib.core.wire.schema import (
    NULL_IS_A_VALUE,
    Id,
    Patch,
    SearchText,
    Slug,
    Timestamp,
    Title,
    Wire,
    optional,
)
from chalicelib.domains.sites.rules import hostnames
from chalicelib.domains.sites.store.sites import SITES, SLUG_CLAIM, SUSPENDED, DomainMap, SiteRow
from chalicelib.engine.claims import ClaimRow
from chalicelib.gateways.site_hosts import site_hosts
from chalicelib.lib import slugs

Description = Annotated[str, StringConstraints(max_length=1000)]


class DnsRecord(Wire):
    """A DNS record to create."""

    type: str = Field(description="TXT, CNAME, A, or ALIAS (ANAME) where no CNAME may be.")
    host: str = Field(description="Full host name.")
    value: str = Field(description="Value of the record.")


class DomainOut(Wire):
    """A custom domain and its status."""

    name: str = Field(description="Host name, in punycode.")
    status: Literal["pending", "verified", "certificate", "active", "failed"] = Field(
        description="pending: no TXT record yet; verified: yours; certificate: being set up; "
        "active: served; failed: see reason."
    )
    reason: str | None = Field(description="Why it waits or failed, or null.")
    records: list[DnsRecord] = Field(description="The DNS records to set.")
    checked_at: Timestamp = Field(description="When the status was last set.")

    @classmethod
    def from_domain(cls, domain: DomainMap) -> Self:
        proof = DnsRecord(
            type="TXT",
            host=hostnames.txt_record_name(domain.name),
            value=hostnames.txt_record_value(domain.token),
        )
        records, hosts = [proof], site_hosts()
        if hosts is not None:
            address = hosts.address(apex=bool(domain.apex))
            records.append(DnsRecord(type=address.type, host=domain.name, value=address.value))
        attributes = {"status": domain.state, "reason": domain.explanation, "records": records}
        return cls.from_row(domain.attribute_values, **attributes)


class SiteRef(Wire):
    """Reference to a site."""

    id: Id = Field(description="Site id.")


class SiteOut(Wire):
    """A site."""

    id: Id = Field(description="Site id; other calls take it as projectId.")
    title: str = Field(description="Title.")
    description: str | None = Field(description="Description, or null.")
    slug: str = Field(description="Unique short name, part of the site's URL.")
    status: str = Field(description="active, inactive, or suspended by the platform.")
    url: str = Field(description="Public URL of the site.")
    domain: DomainOut | None = Field(description="Custom domain, or null.")
    stats_enabled: bool = Field(description="Whether visits are counted.")
    shows_products: bool = Field(description="Whether it has pages of the active products.")
    products_url: str | None = Field(
        description="URL of the list of products, or null while visitors see none."
    )
    external_id: str | None = EXTERNAL_ID_OUT
    metadata: Metadata = METADATA_OUT
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def from_record(cls, site: SiteRow) -> Self:
        domain, stored = site.domain, site.values
        return cls.from_row(
            stored,
            url=site.url,
            shows_products=bool(stored.get("shows_products")),
            products_url=site.products_url,
            domain=DomainOut.from_domain(domain) if domain else None,
        )


class SiteResult(Wire):
    """One site."""

    project: SiteOut = Field(description="The site.")


class SiteListQuery(ListQuery):
    """Filters and sorting for listing sites."""

    size: int = Field(default=10, ge=1, le=100, description="Sites per page.")
    status: Literal["active", "inactive", "suspended"] | None = optional("Status.")
    search: SearchText | None = optional("Searches title and slug.")
    external_id: NewExternalId = BY_EXTERNAL_ID
    sort_by: Literal["createdAt", "updatedAt", "title"] = Field(
        default="createdAt", description="Order."
    )
    sort_dir: Literal["asc", "desc"] = Field(default="desc", description="Direction.")


class SiteList(ListResult):
    """One page of sites."""

    projects: list[SiteOut] = Field(description="The sites of this page.")


class SiteCreate(Wire):
    """A new site."""

    title: Title = Field(description="Title.")
    description: Description | None = optional("Description.")
    slug: Slug | None = optional("Made from the title if omitted.")
    shows_products: bool = Field(
        default=False, description="Pages and a feed of the active products."
    )
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class SitePatch(Patch, SiteCreate, SiteRef):
    """Changes to a site."""

    description: Description | None = optional("Description.")
    slug: Slug = optional("New slug; the old URL stops working.")
    status: Literal["active", "inactive"] = optional("inactive hides it.")


class SiteStats(SiteRef):
    """Switch for counting a site's visits."""

    enabled: Annotated[bool, NULL_IS_A_VALUE] = optional(
        "Toggles if omitted; a retry toggles again."
    )


class SiteStatsResult(SiteRef):
    """State of a site's visit counting."""

    stats_enabled: bool = Field(description="Whether visits are counted now.")


def _check_slug(slug: str) -> str:
    if slug in slugs.RESERVED:
        raise ValidationError.of(
            "slug",
            message=f'"{slug}" is reserved for the platform; choose another slug',
            key="reserved",
        )
    return slug


def _slug_taken_error(slug: str) -> SlugTakenError:
    return SlugTakenError(f'The slug "{slug}" is used by another site. Choose another slug.')


@operation(
    tool=True,
    rest="GET /api/projects/list",
    scope=Scope.PROJECTS_READ,
    role=Role.MANAGER,
    example={"search": "bak", "size": 5},
)
def list_sites(ctx: Context, args: SiteListQuery) -> SiteList:
    """List the sites. Other calls take a site's id as projectId."""
    descending = args.sort_dir == "desc"
    query = SITES.query(args, sort=args.sort_by, descending=descending, search=args.search)
    page = SITES.page(ctx.workspace_id, query)
    return SiteList(
        projects=[SiteOut.from_record(site) for site in page.records],
        **args.counted(page.total),
    )


@operation(
    rest="GET /api/projects/{id}",
    scope=Scope.PROJECTS_READ,
    example={"id": "SITE_ID"},
)
def get_site(ctx: Context, args: SiteRef) -> SiteResult:
    """Return one site, with its URL and its domain."""
    return SiteResult(
        project=SiteOut.from_record(SITES.require(ctx.workspace_id, record_id=args.id))
    )


@operation(
    tool=True,
    rest="POST /api/projects/create",
    scope=Scope.PROJECTS_WRITE,
    example={"title": "Corner bakery"},
    errors=(ExternalIdTakenError, SlugTakenError),
    role=Role.MANAGER,
)
def create_site(ctx: Context, args: SiteCreate) -> SiteResult:
    """Create a site. It is active and has no pages."""
    if args.slug is not None:
        slug, on_conflict = _check_slug(args.slug), _slug_taken_error(args.slug)
    else:
        options = list(slugs.candidates(slugs.slugify(args.title, fallback="site")))
        taken_slugs = ClaimRow.find_claimed(SLUG_CLAIM, options)
        slug, on_conflict = (
            new_slugs.choose(ctx, options, taken_slugs, reserved=slugs.RESERVED),
            None,
        )
    external_data: dict[str, Any] = {"external_id": args.external_id, "metadata": args.metadata}
    merge_metadata(external_data)
    site = SITES.new(
        ctx.workspace_id,
        title=args.title,
        description=args.description,
        slug=slug,
        status="active",
        shows_products=args.shows_products,
        **external_data,
    )
    ctx.unit.create(site, claim_errors={SLUG_CLAIM: on_conflict} if on_conflict else {})
    return SiteResult(project=SiteOut.from_record(site))


@operation(
    tool=True,
    rest="POST /api/projects/update",
    scope=Scope.PROJECTS_WRITE,
    idempotent=True,
    example={"id": "SITE_ID", "title": "Corner bakery and café"},
    errors=(ExternalIdTakenError, SlugTakenError),
    role=Role.MANAGER,
)
def update_site(ctx: Context, args: SitePatch) -> SiteResult:
    """Change a site. Omitted fields stay unchanged."""
    site = SITES.require(ctx.workspace_id, record_id=args.id)
    changes = args.changes
    if changes.get("slug", site.slug) != site.slug:
        _check_slug(changes["slug"])
    if site.status == SUSPENDED and "status" in changes:
        site.status_when_resumed = changes.pop("status")
        ctx.warn(
            "The operator has suspended this site. The new status takes effect when the "
            "suspension ends.",
            code=WarningCode.SITE_SUSPENDED,
            status=site.status_when_resumed,
        )
    merge_metadata(changes, site.metadata)
    for name, value in changes.items():
        setattr(site, name, value)
    ctx.unit.save(site, claim_errors={SLUG_CLAIM: _slug_taken_error(site.slug)})
    return SiteResult(project=SiteOut.from_record(site))


@operation(
    tool=True,
    rest="POST /api/projects/toggle-stats",
    scope=Scope.PROJECTS_WRITE,
    title="Switch visit counting",
    example={"id": "SITE_ID", "enabled": False},
)
def toggle_site_stats(ctx: Context, args: SiteStats) -> SiteStatsResult:
    """Switch the counting of a site's visits on or off."""
    site = SITES.require(ctx.workspace_id, record_id=args.id)
    site.stats_enabled = args.provided().get("enabled", not site.stats_enabled)
    ctx.unit.save(site)
    return SiteStatsResult.from_row(site.values)

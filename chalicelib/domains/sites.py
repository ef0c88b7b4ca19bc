"""Sites (spec: projects): list, create, update, delete with everything on them."""

import secrets
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from chalicelib.core import clock
from chalicelib.core.errors import (
    DomainTakenError,
    NotFoundError,
    SlugTakenError,
    ValidationError,
)
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.schema import (
    DeletedResult,
    Id,
    PageNumber,
    Pagination,
    Patch,
    SearchText,
    Slug,
    Timestamp,
    Title,
    Wire,
    optional,
)
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.flows.invoke import Context
from chalicelib.gateways import dns
from chalicelib.gateways.object_store import object_store
from chalicelib.rules import hostnames, slugs
from chalicelib.store import files, jobs, pages
from chalicelib.store.claims import ClaimRow
from chalicelib.store.queries import Query
from chalicelib.store.sites import (
    ACTIVE,
    ERROR,
    ID_CLAIM,
    PENDING,
    SITES,
    SLUG_CLAIM,
    SUSPENDED,
    DomainMap,
    SiteRow,
    domain_claim,
    domain_request,
    find_domain_claim,
    free_domain,
    take_over_domain,
)
from chalicelib.store.unit import UnitOfWork, run_unit

KEPT_AFTER_DELETION = timedelta(days=30)
"""How long the platform can still bring a deleted site back (tools.md, row 7)."""
CASCADE = "site-cascade"
PURGE = "site-purge"

Description = Annotated[str, StringConstraints(max_length=1000)]


class DnsRecord(Wire):
    """A DNS record to create."""

    type: str = Field(description="Record type.")
    host: str = Field(description="Full host name.")
    value: str = Field(description="Value.")


class DomainOut(Wire):
    """A custom domain and how far its proof is."""

    name: str = Field(description="Host name, in punycode.")
    status: str = Field(
        description="pending: create the record; active: proven; error: the proof is gone."
    )
    records: list[DnsRecord] = Field(description="The records that prove you own the domain.")
    checked_at: Timestamp = Field(description="When the DNS was last asked.")

    @classmethod
    def of(cls, domain: DomainMap) -> Self:
        """Return the wire form of a stored binding."""
        proof = DnsRecord(type="TXT", host=_proof_host(domain.name), value=_proof(domain.token))
        return cls(
            name=domain.name,
            status=domain.status,
            records=[proof],
            checked_at=domain.checked_at,
        )


class SiteOut(Wire):
    """A site, as every answer shows it."""

    id: Id = Field(description="Site id; other calls take it as projectId.")
    title: str = Field(description="Title.")
    description: str | None = Field(description="Description, or null.")
    slug: str = Field(description="Unique short name, part of the site's URL.")
    status: str = Field(description="active, inactive, or suspended by the platform.")
    url: str = Field(description="Public URL.")
    domain: DomainOut | None = Field(description="Custom domain, or null.")
    stats_enabled: bool = Field(description="Whether visits are counted.")
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def of(cls, site: SiteRow) -> Self:
        """Return the wire form of a stored site."""
        stored, domain = site.values, site.domain
        return cls.from_row(
            stored,
            url=f"{settings().public_url}/s/{stored['slug']}",
            domain=DomainOut.of(domain) if domain else None,
        )


class SiteResult(Wire):
    """One site."""

    project: SiteOut = Field(description="The site.")


class SiteListQuery(Wire):
    """Which sites to list, and how."""

    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=10, ge=1, le=100, description="Sites a page.")
    status: Literal["active", "inactive", "suspended"] | None = optional(
        "Only sites with this status."
    )
    search: SearchText | None = optional("Part of the title or slug.")
    sort_by: Literal["createdAt", "updatedAt", "title"] = Field(
        default="createdAt", description="What to sort by."
    )
    sort_dir: Literal["asc", "desc"] = Field(default="desc", description="Sort direction.")


class SiteList(Wire):
    """One page of sites."""

    projects: list[SiteOut] = Field(description="The sites of this page.")
    pagination: Pagination = Field(description="Where this page stands.")


class SiteCreate(Wire):
    """A new site."""

    title: Title = Field(description="Title.")
    description: Description | None = optional("Description.")
    slug: Slug | None = optional("Unique part of the URL; made from the title if omitted.")


class SitePatch(Patch):
    """Changes to a site."""

    id: Id = Field(description="Site id, from the site list.")
    title: Title = optional("New title.")
    description: Description | None = optional("New description; null clears it.")
    slug: Slug = optional("New slug; the old URL stops working.")
    status: Literal["active", "inactive"] = optional("active shows the site, inactive hides it.")


class SiteDelete(Wire):
    """Which site to delete."""

    id: Id = Field(description="Site id, from the site list.")
    dry_run: bool = Field(default=False, description="Only report what would be deleted.")


class SiteDomain(Wire):
    """Which domain to bind to a site."""

    id: Id = Field(description="Site id, from the site list.")
    domain: Annotated[str, StringConstraints(max_length=1000)] | None = Field(
        description="Host name, such as www.example.com; null unbinds."
    )


class DomainResult(Wire):
    """The domain of a site."""

    domain: DomainOut | None = Field(description="The custom domain, or null when unbound.")


class SiteStats(Wire):
    """Whether to count a site's visits."""

    id: Id = Field(description="Site id, from the site list.")
    enabled: bool | None = optional("Say it: omitted, the setting flips, and a retry undoes that.")


class SiteStatsResult(Wire):
    """Whether a site's visits are counted."""

    id: Id = Field(description="Site id.")
    stats_enabled: bool = Field(description="Whether visits are counted now.")


class SiteCascade(Wire):
    """What goes with a deleted site. Leads, clients and services stay."""

    pages: int = Field(description="Pages deleted with it.")
    forms: int = Field(description="Forms deleted with it.")
    domain: str | None = Field(description="Custom domain freed, or null.")


class SiteDeleted(DeletedResult):
    """A deletion and what went with it."""

    cascade: SiteCascade = Field(description="What went with it.")


def _find(ctx: Context, site_id: str) -> SiteRow:
    site = SITES.find(ctx.workspace_id, site_id)
    if site is None:
        raise NotFoundError.of("site", "List the sites (svc_list_sites) for valid ids.")
    return site


def _check_slug(slug: str) -> str:
    if slug in slugs.RESERVED:
        raise ValidationError.of("slug", f'"{slug}" is reserved for the platform; choose another')
    return slug


def _taken(slug: str) -> SlugTakenError:
    return SlugTakenError(
        f'The slug "{slug}" is taken. Choose another, or omit it to have one made from the title.'
    )


@operation(
    tool="svc_list_sites",
    rest="GET /api/projects/list",
    scope=Scope.PROJECTS_READ,
    title="List sites",
)
def list_sites(ctx: Context, args: SiteListQuery) -> SiteList:
    """List the workspace's sites, newest first unless asked otherwise.

    A site's id is the projectId of the page, form and statistics calls.
    """
    found = SITES.page(
        ctx.workspace_id,
        Query(
            page=args.page,
            size=args.size,
            sort=args.sort_by,
            descending=args.sort_dir == "desc",
            filters={"status": args.status},
            search=args.search,
        ),
    )
    return SiteList(
        projects=[SiteOut.of(site) for site in found.records],
        pagination=Pagination(total=found.total, page=args.page, limit=args.size),
    )


@operation(
    tool="svc_create_site",
    rest="POST /api/projects/create",
    scope=Scope.PROJECTS_WRITE,
    title="Create a site",
)
def create_site(ctx: Context, args: SiteCreate) -> SiteResult:
    """Create an active, empty site. Add pages to it with svc_create_page."""
    if args.slug is not None:
        slug, on_conflict = _check_slug(args.slug), _taken(args.slug)
    else:
        options = list(slugs.candidates(slugs.slugify(args.title, "site")))
        slug, on_conflict = slugs.first_free(options, ClaimRow.taken(SLUG_CLAIM, options)), None
    site = SITES.new(
        ctx.workspace_id, title=args.title, description=args.description, slug=slug, status="active"
    )
    ctx.unit.create(site, taken={SLUG_CLAIM: on_conflict} if on_conflict else {})
    return SiteResult(project=SiteOut.of(site))


@operation(
    tool="svc_update_site",
    rest="POST /api/projects/update",
    scope=Scope.PROJECTS_WRITE,
    title="Update a site",
    idempotent=True,
)
def update_site(ctx: Context, args: SitePatch) -> SiteResult:
    """Change a site's title, description, slug or status; what is omitted stays."""
    site = _find(ctx, args.id)
    changes = args.provided("id")
    if changes.get("slug", site.slug) != site.slug:
        _check_slug(changes["slug"])
    if site.status == SUSPENDED and "status" in changes:
        site.status_when_resumed = changes.pop("status")
        ctx.warn(
            "The platform has suspended this site; the status takes effect when that is lifted."
        )
    for name, value in changes.items():
        setattr(site, name, value)
    ctx.unit.save(site, taken={SLUG_CLAIM: _taken(site.slug)})
    return SiteResult(project=SiteOut.of(site))


def _proof_host(domain: str) -> str:
    return f"_svc-verify.{domain}"


def _proof(token: str) -> str:
    return f"svc-verify={token}"


@operation(
    tool="svc_set_site_domain",
    rest="POST /api/projects/set-domain",
    scope=Scope.PROJECTS_WRITE,
    title="Bind a custom domain",
    destructive=True,
    idempotent=True,
    open_world=True,
    limit=HEAVY,
)
def set_site_domain(ctx: Context, args: SiteDomain) -> DomainResult:
    """Bind a custom domain to a site, or unbind it with null.

    A new domain is pending: create the TXT record of the answer, then call again to have the DNS
    checked. A domain not proven within 72 hours is dropped. One that another site has proven
    becomes yours once your record is there and that site's is gone; that site then shows error.
    """
    site = _find(ctx, args.id)
    name = None if args.domain is None else _check_domain(args.domain)
    if site.domain is None or site.domain.name != name:
        free_domain(ctx.unit, site)
        site.domain_binding = None if name is None else _request_domain(ctx, name)
    if site.domain is not None:
        _check_proof(ctx, site, site.domain)
    ctx.unit.save(site)
    return DomainResult(domain=DomainOut.of(site.domain) if site.domain else None)


def _check_domain(name: str) -> str:
    own_host = urlsplit(settings().public_url).hostname or ""
    try:
        return hostnames.normalize(name, own_host)
    except ValueError as error:
        raise ValidationError.of("domain", f'{error}; received "{name[:80]}"') from None


def _request_domain(ctx: Context, name: str) -> DomainMap:
    return domain_request(
        name, ctx.unit.run_side_effect_once("token", lambda: secrets.token_hex(16))
    )


def _check_proof(ctx: Context, site: SiteRow, domain: DomainMap) -> None:
    """Ask the DNS for the TXT record and move the binding's status by what it says."""
    host = _proof_host(domain.name)
    found = ctx.unit.run_side_effect_once("txt", lambda: _ask(host))
    domain.checked_at = clock.now()
    if found is None:
        ctx.warn(f"The DNS did not answer for {host}; the status is unchanged. Try again later.")
    elif _proof(domain.token) in found:
        _claim_domain(ctx, site, domain.name, found)
        domain.status = ACTIVE
    elif domain.status != PENDING:
        domain.status = ERROR


def _claim_domain(ctx: Context, site: SiteRow, name: str, found: frozenset[str]) -> None:
    """Stage the claim of a domain that a site has just proven.

    A holder whose own proof is no longer in the DNS has lost it.
    """
    claim = find_domain_claim(name)
    if claim is None:
        ctx.unit.create(domain_claim(ctx.workspace_id, name, site.id))
    elif claim.target != site.id:
        holder = SITES.find(claim.workspace_id or "", claim.target)
        if holder and holder.domain and _proof(holder.domain.token) in found:
            msg = (
                f"Another site has proven that it owns {name}, and its record is still there."
                f" Unbind the domain from that site, or remove the other TXT record from"
                f" {_proof_host(name)}; then call again."
            )
            raise DomainTakenError(msg)
        take_over_domain(ctx.unit, claim, holder, site.id)


def _ask(host: str) -> frozenset[str] | None:
    try:
        return dns.lookup_txt(host)
    except dns.DnsUnavailableError:
        return None


@operation(
    tool="svc_toggle_site_stats",
    rest="POST /api/projects/toggle-stats",
    scope=Scope.PROJECTS_WRITE,
    title="Switch visit counting",
)
def toggle_site_stats(ctx: Context, args: SiteStats) -> SiteStatsResult:
    """Switch the counting of a site's visits on or off. What was counted stays."""
    site = _find(ctx, args.id)
    site.stats_enabled = (not site.stats_enabled) if args.enabled is None else args.enabled
    ctx.unit.save(site)
    return SiteStatsResult(id=site.id, stats_enabled=site.stats_enabled)


@operation(
    tool="svc_delete_site",
    rest="POST /api/projects/delete",
    scope=Scope.PROJECTS_WRITE,
    title="Delete a site",
    destructive=True,
    idempotent=True,
)
def delete_site(ctx: Context, args: SiteDelete) -> SiteDeleted:
    """Delete a site with its pages and forms, and free its slug and domain.

    Leads, clients and services stay. Try dryRun first to see what would go.
    """
    site = _find(ctx, args.id)
    cascade = SiteCascade(
        pages=len(pages.PAGES.entries(ctx.workspace_id, site.id)),
        forms=0,
        domain=site.domain.name if site.domain else None,
    )
    if args.dry_run:
        return SiteDeleted(id=site.id, deleted=False, cascade=cascade)
    until = clock.now() + KEPT_AFTER_DELETION
    job = jobs.row(CASCADE, ctx.workspace_id, {"siteId": site.id})
    ctx.unit.soft_delete(site, until=until)
    free_domain(ctx.unit, site)
    ctx.unit.create(jobs.row(PURGE, ctx.workspace_id, {"siteId": site.id}, until))
    _discard_some_pages(ctx.unit, site.id, until)
    ctx.unit.create(job)
    ctx.unit.after_commit(lambda: jobs.attempt(job, delete_pages_of_site))
    return SiteDeleted(id=site.id, deleted=True, cascade=cascade)


class SiteRef(Wire):
    """Which site, whatever its workspace."""

    id: Id = Field(description="Site id.")


class SiteStatus(Wire):
    """What the platform made of a site."""

    id: Id = Field(description="Site id.")
    status: str = Field(description="active, inactive or suspended.")


class SiteStatusResult(Wire):
    """A site's status."""

    site: SiteStatus = Field(description="The site.")


def _workspace_of(args: SiteRef) -> str:
    held = ClaimRow.find_claim(ID_CLAIM, args.id)
    if held is None:
        msg = f'No site has the id "{args.id}".'
        raise NotFoundError(msg)
    return held.workspace_id or ""


@operation(
    title="Suspend a site", audience=(Audience.OPERATOR,), resolve=_workspace_of, idempotent=True
)
def suspend_site(ctx: Context, args: SiteRef) -> SiteStatusResult:
    """Suspend a site, whatever its status; only resuming it lifts that."""
    site = _find(ctx, args.id)
    if site.status != SUSPENDED:
        site.status_when_resumed, site.status = site.status, SUSPENDED
        ctx.unit.save(site)
    return SiteStatusResult(site=SiteStatus(id=site.id, status=site.status))


@operation(
    title="Resume a site", audience=(Audience.OPERATOR,), resolve=_workspace_of, idempotent=True
)
def resume_site(ctx: Context, args: SiteRef) -> SiteStatusResult:
    """Give a suspended site its former status back; another site is left alone."""
    site = _find(ctx, args.id)
    if site.status == SUSPENDED:
        site.status, site.status_when_resumed = site.status_when_resumed or "active", None
        ctx.unit.save(site)
    return SiteStatusResult(site=SiteStatus(id=site.id, status=site.status))


PAGES_A_UNIT = 25
"""Pages deleted in one transaction: each takes its record, the copy in the trash, a slug claim."""


def _discard_some_pages(unit: UnitOfWork, site_id: str, until: datetime) -> bool:
    """Stage the deletion of a site's next pages; say whether there were any."""
    rows = pages.PAGES.entries(unit.workspace_id, site_id)
    some = pages.read(unit.workspace_id, rows[:PAGES_A_UNIT])
    for page in some:
        unit.soft_delete(page, until=until)
    files.give_back(unit, sum(int(page.html_bytes) for page in some))
    return bool(rows)


@job_handler(CASCADE)
def delete_pages_of_site(job: Job) -> None:
    """Delete the pages that a site's deletion left: those past its unit, or made at that moment.

    It runs right after the deletion; what a killed process leaves, the runner finishes.
    """
    until = clock.now() + KEPT_AFTER_DELETION

    def some(unit: UnitOfWork) -> bool:
        return _discard_some_pages(unit, job.payload["siteId"], until)

    while run_unit(job.workspace_id, AuditEvent.by_job(CASCADE), some):
        pass


@job_handler(PURGE)
def purge_site_files(job: Job) -> None:
    """Remove what the pages of a site that was deleted a month ago kept outside their records."""
    pages.purge_designs(job.workspace_id, job.payload["siteId"])
    object_store().delete_under(pages.html_folder(job.workspace_id, job.payload["siteId"]))

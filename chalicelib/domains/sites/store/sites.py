"""Sites, called projects in the API."""

from collections import OrderedDict
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from pynamodb.attributes import (
    BooleanAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock
from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.core.settings import settings
from chalicelib.domains.sites.rules import site_urls
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import ProgramRecord, changed_now
from chalicelib.engine.unit import UnitOfWork

SLUG_CLAIM = "site-slug"
DOMAIN_CLAIM = "domain"
SUSPENDED = "suspended"
PENDING = "pending"
VERIFIED = "verified"
CERTIFICATE = "certificate"
ACTIVE = "active"
FAILED = "failed"
PROVEN = frozenset({VERIFIED, CERTIFICATE, ACTIVE})  # The site has the domain.
MAX_FOUND = 200  # sites whose URLs are found in one call
# A process caches where products are, because each product that it returns has a link.
KNOWN_FOR = timedelta(seconds=10)
MAX_KNOWN = 10_000  # workspaces
TIME_LIMIT = timedelta(hours=72)  # A requested domain must become active within it.
EXPIRED = "The domain was not ready within 72 hours. Check the DNS records, and repeat the call."


class DomainMap(MapAttribute[str, Any]):
    """A custom domain.

    ``pending``: no proof was seen. ``verified``: the site has the claim on the domain.
    ``certificate``: the host is being set up. ``active``: visitors find the site there. ``failed``:
    the proof has gone, or the time is over. Another site may hold the claim then.
    """

    name = UnicodeAttribute()
    token = UnicodeAttribute()  # The TXT record must contain it.
    status = UnicodeAttribute()
    requested_at = UTCDateTimeAttribute()  # the last call that bound or checked the domain
    checked_at = UTCDateTimeAttribute()  # the last change of the status
    reason = UnicodeAttribute(null=True)
    apex = BooleanAttribute(null=True)  # not a subdomain

    @property
    def state(self) -> str:
        # A domain that was not proven in time has failed.
        return FAILED if self._is_late else str(self.status)

    @property
    def explanation(self) -> str | None:
        # Why the domain waits or has failed.
        reason: str | None = EXPIRED if self._is_late else self.reason
        return reason

    @property
    def _is_late(self) -> bool:
        return bool(self.status == PENDING and clock.now() - self.requested_at > TIME_LIMIT)

    def become(self, state: str, reason: str | None = None) -> None:
        self.status, self.reason, self.checked_at = state, reason, clock.now()


class SiteRow(ProgramRecord):
    title = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    slug = UnicodeAttribute()
    status = UnicodeAttribute()
    status_when_resumed = UnicodeAttribute(null=True)  # after a suspension
    stats_enabled = BooleanAttribute(default=True)
    shows_products = BooleanAttribute(null=True)  # Visitors find the catalogue on it.
    home_page_id = UnicodeAttribute(null=True)
    page_count = NumberAttribute(null=True)  # number of pages
    last_sort_order = NumberAttribute(null=True)  # No page has a higher sort order.
    # Of the site's last deletion, which its pages and forms in the trash share.
    deletion_id = UnicodeAttribute(null=True)
    # The same, while records of that deletion still return.
    restoring_id = UnicodeAttribute(null=True)
    domain_binding = DomainMap(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's __init__

    @property
    def domain(self) -> DomainMap | None:
        binding: DomainMap | None = self.attribute_values.get("domain_binding")
        return binding

    @property
    def active_host(self) -> str | None:
        domain = self.domain
        return str(domain.name) if domain is not None and domain.state == ACTIVE else None

    @property
    def url(self) -> str:
        # On its own domain if that domain is active.
        config = settings()
        if (host := self.active_host) is not None:
            return site_urls.own_url(
                host, public_url=config.public_url, local=config.site_hosts == "local"
            )
        slug = self.attribute_values["slug"]  # read directly, for lists: see ``Record.values``
        return site_urls.site_url(
            slug, public_url=config.public_url, sites_domain=config.sites_domain
        )

    @property
    def products_url(self) -> str | None:
        """The URL of the list of products, or None if visitors find none on the site."""
        stored = self.attribute_values  # read directly, for lists: see ``Record.values``
        is_open = stored.get("shows_products") and stored.get("home_page_id")
        if not (is_open and stored["status"] == ACTIVE):
            return None
        return f"{self.url}/{site_urls.PRODUCTS}"

    def page_slug(self, url: str | None) -> str | None:
        """Return the slug of the site's page with a URL, "" for the home page, or None."""
        config = settings()
        return site_urls.page_slug(
            url,
            config.public_url,
            site_slug=self.slug,
            domain=self.active_host,
            sites_domain=config.sites_domain,
        )


SITES = register_listing(
    Listing(
        row=SiteRow,
        noun="SITE",
        listed_by="svc_list_sites",
        unavailable_message="This site does not exist.",
        text=lambda site: (site.title, site.slug),
        sorts={"createdAt": "id", "title": "t"},
        status="status",
        lookups=(
            # A slug is part of a public URL; callers without a workspace find the site by its id.
            Lookup(SLUG_CLAIM, lambda site: site.slug, platform_wide=True),
            lookups.id_lookup("SITE"),
        ),
        inline_bytes=NAME_BYTES,
        followed_by=KNOWLEDGE_STALE,
    )
)


def find_urls(workspace_id: str) -> list[str]:
    """Return the URLs of a workspace's sites, by one request, without suspended sites.

    A site on a domain of its own has its platform address, too. Of more than ``MAX_FOUND`` sites
    the newest are returned.
    """
    config = settings()
    active = [site for site in SITES.latest(workspace_id, MAX_FOUND) if site.status != SUSPENDED]
    platform = [
        site_urls.site_url(
            site.slug, public_url=config.public_url, sites_domain=config.sites_domain
        )
        for site in active
    ]
    return list(dict.fromkeys([*platform, *(site.url for site in active)]))


# URLs of products by workspace, per process, each with the moment until which it is known.
_products_urls: OrderedDict[str, tuple[str | None, datetime]] = OrderedDict()
_lock = Lock()


def find_products_url(workspace_id: str) -> str | None:
    """Return the URL of the products on the first site that shows them, or None.

    It may be ``KNOWN_FOR`` old.
    """
    with _lock:
        url, until = _products_urls.get(workspace_id, (None, None))
    if until is not None and clock.now() < until:
        return url
    oldest_first = reversed(SITES.latest(workspace_id, MAX_FOUND))
    url = next((url for site in oldest_first if (url := site.products_url)), None)
    with _lock:
        _products_urls[workspace_id] = url, clock.now() + KNOWN_FOR
        _products_urls.move_to_end(workspace_id)
        while len(_products_urls) > MAX_KNOWN:
            _products_urls.popitem(last=False)
    return url


def forget_products_urls() -> None:
    """Forget what is known, as a new process does."""
    with _lock:
        _products_urls.clear()


def domain_request(name: str, *, token: str, apex: bool) -> DomainMap:
    """Return a new binding of a domain, with its proof pending."""
    now = clock.now()
    return DomainMap(  # type: ignore[no-untyped-call]  # as above
        name=name, token=token, status=PENDING, requested_at=now, checked_at=now, apex=apex
    )


def forget_host(binding: dict[str, Any]) -> None:
    """Make a stored domain of another installation one that is not served here yet."""
    # The next call has the domain served here.
    if binding["status"]["S"] in {CERTIFICATE, ACTIVE}:
        binding["status"] = {"S": VERIFIED}


def domain_claim(workspace_id: str, *, domain: str, site_id: str) -> ClaimRow:
    """Return the claim of a site on a domain that it has proven to own."""
    return claim(DOMAIN_CLAIM, name=domain, target=site_id, workspace_id=workspace_id)


def find_domain_claim(domain: str) -> ClaimRow | None:
    """Return the claim on a domain. Its ``target`` is the id of the site that holds the domain."""
    return ClaimRow.find_claim(DOMAIN_CLAIM, name=domain)


class FoundSite(NamedTuple):
    workspace_id: str
    row: SiteRow


def find_by_slug(slug: str) -> FoundSite | None:
    """Return the site that has a slug, or None."""
    return _claimant(ClaimRow.find_claim(SLUG_CLAIM, name=slug))


def find_by_host(host: str) -> FoundSite | None:
    """Return the site that has proven a custom domain and is to be served there, or None."""
    found_site = _claimant(find_domain_claim(host))
    domain = found_site.row.domain if found_site else None
    # The claim may be of a domain that the site has replaced since.
    is_served = domain is not None and domain.name == host and domain.state in PROVEN
    return found_site if is_served else None


def _claimant(claim: ClaimRow | None) -> FoundSite | None:
    if claim is None or claim.workspace_id is None:
        return None
    site = SITES.find(claim.workspace_id, record_id=claim.target)
    return None if site is None else FoundSite(claim.workspace_id, site)


def free_domain(unit: UnitOfWork, site: SiteRow) -> str | None:
    """Stage the release of a site's claim on its domain, and return the domain, if any."""
    if site.domain is not None and site.domain.status != PENDING:
        claim = find_domain_claim(site.domain.name)
        if claim is not None and claim.target == site.id:
            # Another site may have taken the claim over since the site was read.
            unit.delete(claim, if_there=True)
            return str(site.domain.name)
    return None


def take_over_domain(
    unit: UnitOfWork, claim: ClaimRow, holder: SiteRow | None, site_id: str
) -> None:
    """Stage the move of a domain's claim to a site, and the failure of the former holder."""
    if holder is not None and holder.domain is not None:
        binding: Any = SiteRow.domain_binding
        # The update checks the former holder's version. After a concurrent change, the unit is
        # retried.
        reason = "Another site has proven that it owns the domain, after this one."
        unit.update(
            holder,
            [
                binding.status.set(FAILED),
                binding.reason.set(reason),
                binding.checked_at.set(clock.now()),
                *changed_now(),
            ],
        )
    unit.update(
        claim,
        [ClaimRow.target.set(site_id), ClaimRow.workspace_id.set(unit.workspace_id)],
        # A concurrent change of the claim makes the unit read it again.
        ClaimRow.target == claim.target,
    )

"""Sites, called projects in the API."""

from datetime import timedelta
from typing import Any

from pynamodb.attributes import (
    BooleanAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.domains.sites.rules import site_urls
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import Record
from chalicelib.engine.unit import UnitOfWork

SLUG_CLAIM = "site-slug"
DOMAIN_CLAIM = "domain"
SUSPENDED = "suspended"
PENDING = "pending"
ACTIVE = "active"
ERROR = "error"
PENDING_FOR = timedelta(hours=72)
"""Time within which the ownership of a requested domain must be proven."""


class DomainMap(MapAttribute[str, Any]):
    """A custom domain. The TXT record must contain ``token``; ``status`` is the state of the proof.

    ``active``: the proof and the claim existed at the last DNS look-up. ``error``: the proof has
    gone, and the claim, too, if another site has shown a proof.
    """

    name = UnicodeAttribute()
    token = UnicodeAttribute()
    status = UnicodeAttribute()
    requested_at = UTCDateTimeAttribute()
    checked_at = UTCDateTimeAttribute()

    @property
    def lapsed(self) -> bool:
        """Whether the domain was not proven in time. It then counts as not bound."""
        return self.status == PENDING and clock.now() - self.requested_at > PENDING_FOR


class SiteRow(Record):
    """A site.

    ``status_when_resumed`` is the status to which a suspended site returns. ``home_page_id`` is the
    home page, and ``page_count`` the number of pages. No page has a sort order above
    ``last_sort_order``.
    """

    title = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    slug = UnicodeAttribute()
    status = UnicodeAttribute()
    status_when_resumed = UnicodeAttribute(null=True)
    stats_enabled = BooleanAttribute(default=True)
    home_page_id = UnicodeAttribute(null=True)
    page_count = NumberAttribute(null=True)
    last_sort_order = NumberAttribute(null=True)
    domain_binding = DomainMap(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's __init__

    @property
    def domain(self) -> DomainMap | None:
        """The custom domain, unless it was not proven in time."""
        binding: DomainMap | None = self.attribute_values.get("domain_binding")
        return None if binding is None or binding.lapsed else binding

    @property
    def url(self) -> str:
        """URL at which visitors find the site: on its own domain once that is proven."""
        domain = self.domain
        if domain is not None and domain.status == ACTIVE:
            return f"https://{domain.name}"
        return site_urls.site_url(self.slug, settings().public_url, settings().sites_domain)


SITES = register_listing(
    Listing(
        row=SiteRow,
        noun="SITE",
        listed_by="svc_list_sites",
        unavailable_message="There is no such site.",
        text=lambda site: (site.title, site.slug),
        sorts={"createdAt": "id", "updatedAt": "n1", "title": "t"},
        status="status",
        numbers=("updated_at",),
        lookups=(
            # A slug is part of a public URL; the id leads callers without a workspace to it.
            Lookup(SLUG_CLAIM, lambda site: site.slug, platform_wide=True),
            lookups.by_id("SITE"),
        ),
        inline_bytes=NAME_BYTES,
    )
)


def find_deleted(workspace_id: str, site_id: str) -> SiteRow | None:
    """Return a site that was deleted in the last 30 days, as it was at its deletion, or None."""
    return SiteRow.find(SITES.trash(workspace_id), site_id)


def domain_request(name: str, token: str) -> DomainMap:
    """Return a new binding of a domain, with its proof pending."""
    now = clock.now()
    return DomainMap(  # type: ignore[no-untyped-call]  # as above
        name=name, token=token, status=PENDING, requested_at=now, checked_at=now
    )


def domain_claim(workspace_id: str, domain: str, site_id: str) -> ClaimRow:
    """Return the claim of a site on a domain that it has proven to own."""
    return claim(DOMAIN_CLAIM, domain, site_id, workspace_id)


def find_domain_claim(domain: str) -> ClaimRow | None:
    """Return the claim on a domain. Its ``target`` is the id of the site that holds the domain."""
    return ClaimRow.find_claim(DOMAIN_CLAIM, domain)


def free_domain(unit: UnitOfWork, site: SiteRow) -> None:
    """Stage the release of a site's claim on its domain, if it holds one."""
    if site.domain is not None and site.domain.status != PENDING:
        claim = find_domain_claim(site.domain.name)
        if claim is not None and claim.target == site.id:
            unit.delete(claim, if_there=True)


def take_over_domain(
    unit: UnitOfWork, claim: ClaimRow, holder: SiteRow | None, site_id: str
) -> None:
    """Stage the move of a domain's claim to a site, and the error status of the former holder.

    The update checks the former holder's version. After a concurrent change, the unit is retried.
    """
    if holder is not None and holder.domain is not None:
        binding: Any = SiteRow.domain_binding
        unit.update(holder, [binding.status.set(ERROR), binding.checked_at.set(clock.now())])
    unit.update(
        claim,
        [ClaimRow.target.set(site_id), ClaimRow.workspace_id.set(unit.workspace_id)],
        ClaimRow.target == claim.target,
    )

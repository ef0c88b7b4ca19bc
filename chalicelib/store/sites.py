"""Sites (spec: projects)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pynamodb.attributes import (
    BooleanAttribute,
    MapAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.unit import AuditEvent
from chalicelib.store.claims import ClaimRow, claim
from chalicelib.store.listing import Listing
from chalicelib.store.tables import Record
from chalicelib.store.unit import UnitOfWork, listed

SLUG_CLAIM = "site-slug"
ID_CLAIM = "site-id"
DOMAIN_CLAIM = "domain"
SUSPENDED = "suspended"
PENDING = "pending"
PENDING_FOR = timedelta(hours=72)
"""How long a domain may wait for its proof (tools.md, row 8)."""


class DomainMap(MapAttribute[str, Any]):
    """A custom domain: ``token`` is what its TXT record must prove, ``status`` how far that is."""

    name = UnicodeAttribute()
    token = UnicodeAttribute()
    status = UnicodeAttribute()
    requested_at = UTCDateTimeAttribute()
    checked_at = UTCDateTimeAttribute()

    @property
    def lapsed(self) -> bool:
        """Whether it was not proven in time; then it counts as not bound."""
        return self.status == PENDING and clock.now() - self.requested_at > PENDING_FOR

    @property
    def claimed(self) -> bool:
        """Whether its owner has proven it, and so holds the platform-wide claim."""
        return self.status != PENDING


class SiteRow(Record):
    """A site.

    ``status_when_resumed`` is what a suspended site returns to; ``home_page_id`` is its first page.
    """

    title = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    slug = UnicodeAttribute()
    status = UnicodeAttribute()
    status_when_resumed = UnicodeAttribute(null=True)
    stats_enabled = BooleanAttribute(default=True)
    home_page_id = UnicodeAttribute(null=True)
    domain_binding = DomainMap(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's __init__

    @property
    def domain(self) -> DomainMap | None:
        """The custom domain, unless its proof has lapsed."""
        binding: DomainMap | None = self.attribute_values.get("domain_binding")
        return None if binding is None or binding.lapsed else binding


SITES = listed(
    Listing(
        SiteRow,
        "SITE",
        text=lambda site: (site.title, site.slug),
        sorts={"createdAt": "id", "updatedAt": "n1", "title": "t"},
        status="status",
        numbers=("updated_at",),
    )
)


def slug_claim(workspace_id: str, slug: str, site_id: str) -> ClaimRow:
    """Return the claim on a site's slug, which is a public URL and so unique platform-wide."""
    return claim(SLUG_CLAIM, slug, site_id, workspace_id)


def domain_request(name: str, token: str) -> DomainMap:
    """Return a new binding, waiting for its proof."""
    now = clock.now()
    return DomainMap(  # type: ignore[no-untyped-call]  # as above
        name=name, token=token, status=PENDING, requested_at=now, checked_at=now
    )


def domain_claim(workspace_id: str, domain: str, site_id: str) -> ClaimRow:
    """Return the claim of the site that has proven to own a domain."""
    return claim(DOMAIN_CLAIM, domain, site_id, workspace_id)


def id_claim(workspace_id: str, site_id: str) -> ClaimRow:
    """Return the look-up from a site's id to its workspace, for callers without one."""
    return claim(ID_CLAIM, site_id, site_id, workspace_id)


def suspend(site_id: str) -> SiteRow:
    """Suspend a site, whatever its status; suspending it again changes nothing.

    Raises:
        NotFoundError: no live site has this id.
    """

    def change(site: SiteRow) -> None:
        site.status_when_resumed, site.status = site.status, SUSPENDED

    return _operate("suspend_site", site_id, change, when=lambda site: site.status != SUSPENDED)


def resume(site_id: str) -> SiteRow:
    """Give a suspended site its former status back; another site is left alone.

    Raises:
        NotFoundError: no live site has this id.
    """

    def change(site: SiteRow) -> None:
        site.status, site.status_when_resumed = site.status_when_resumed or "active", None

    return _operate("resume_site", site_id, change, when=lambda site: site.status == SUSPENDED)


def _operate(
    operation: str,
    site_id: str,
    change: Callable[[SiteRow], None],
    *,
    when: Callable[[SiteRow], bool],
) -> SiteRow:
    """Change a site on the platform's behalf, whatever its workspace, if it needs the change."""

    def attempt() -> SiteRow:
        held = ClaimRow.find_claim(ID_CLAIM, site_id)
        site = held and SITES.find(held.workspace_id or "", site_id)
        if not held or not site:
            msg = f'No site has the id "{site_id}".'
            raise NotFoundError(msg)
        unit = UnitOfWork(held.workspace_id or "", operation)
        if when(site):
            change(site)
            unit.save(site)
            unit.commit(AuditEvent.by_operator(operation))
        return site

    return retry_on_conflict(attempt)

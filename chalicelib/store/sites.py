"""Sites (spec: projects)."""

from collections.abc import Callable

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute

from chalicelib.core.errors import NotFoundError
from chalicelib.core.retry import until_won
from chalicelib.core.unit import Change
from chalicelib.store.claims import ClaimRow, claim
from chalicelib.store.listing import Listing
from chalicelib.store.tables import Record
from chalicelib.store.unit import UnitOfWork, listed

SLUG_CLAIM = "site-slug"
ID_CLAIM = "site-id"
SUSPENDED = "suspended"


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
    """Return the claim on a site's slug, which is a public address and so unique platform-wide."""
    return claim(SLUG_CLAIM, slug, site_id, workspace_id)


def id_claim(workspace_id: str, site_id: str) -> ClaimRow:
    """Return the look-up from a site's id to its workspace, for callers without one."""
    return claim(ID_CLAIM, site_id, site_id, workspace_id)


def suspend(site_id: str) -> SiteRow:
    """Suspend a site, whatever its status; suspending it again changes nothing.

    Raises:
        NotFoundError: no live site has this id.
    """

    def change(site: SiteRow) -> None:
        if site.status != SUSPENDED:
            site.status_when_resumed, site.status = site.status, SUSPENDED

    return _operate("suspend_site", site_id, change)


def resume(site_id: str) -> SiteRow:
    """Give a suspended site its former status back; another site is left alone.

    Raises:
        NotFoundError: no live site has this id.
    """

    def change(site: SiteRow) -> None:
        if site.status == SUSPENDED:
            site.status, site.status_when_resumed = site.status_when_resumed or "active", None

    return _operate("resume_site", site_id, change)


def _operate(operation: str, site_id: str, change: Callable[[SiteRow], None]) -> SiteRow:
    """Change a site on the platform's behalf, whatever its workspace."""

    def attempt() -> SiteRow:
        held = ClaimRow.find_claim(ID_CLAIM, site_id)
        site = held and SITES.find(held.workspace_id or "", site_id)
        if not held or not site:
            msg = f'No site has the id "{site_id}".'
            raise NotFoundError(msg)
        unit = UnitOfWork(held.workspace_id or "", operation)
        change(site)
        unit.save(site)
        unit.commit(Change.by_operator(operation))
        return site

    return until_won(attempt)

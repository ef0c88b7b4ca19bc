"""Store pages of sites, with their HTML in the object store under ``html_key``."""

from typing import Any

from pydantic_core import to_json
from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core.errors import AppError, ConcurrentUpdateError
from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine.connection import reaching
from chalicelib.engine.file_uses import ShownFiles
from chalicelib.engine.listing.event_rules import changes_others, is_new
from chalicelib.engine.listing.index_entries import IndexEntry, entries, group, parent_condition
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup, LookupRow
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Cost, Key, Partition, fetch
from chalicelib.engine.tables import ContentRow, JsonAttribute, ProgramRecord
from chalicelib.engine.unit import UnitOfWork

# Above it, a design system has a separate row, which lists and saves do not read.
INLINE_DESIGN_BYTES = 1024


MAX_FORMER_SLUGS = 20  # redirect to a page; each has a row of its own


class PageRow(ProgramRecord):
    """A page. Set ``site`` before you use the URL or ask for the home page, which it decides."""

    project_id = UnicodeAttribute()
    title = UnicodeAttribute()
    slug = UnicodeAttribute()
    # Oldest first. They redirect to the present one.
    former_slugs: ListAttribute[Any] = ListAttribute(default=list)
    description = UnicodeAttribute(null=True)
    design_system: JsonAttribute = JsonAttribute(null=True)
    # Of the separate row of a long design system, which only ``find`` reads.
    design_revision = NumberAttribute(null=True)
    sort_order = NumberAttribute(default=0)
    html_key = UnicodeAttribute(null=True)
    html_bytes = NumberAttribute(default=0)
    html_hash = UnicodeAttribute(null=True)  # SHA-256 of the HTML
    noindex = BooleanAttribute(null=True)  # The HTML forbids search engines to list the page.
    # The URL that the HTML names as the canonical one, if it is not relative.
    canonical = UnicodeAttribute(null=True)
    saved_by = UnicodeAttribute(null=True)
    saved_at = UTCDateTimeAttribute(null=True)  # by ``saved_by``: the last save of the HTML
    # The time of the save before which the last version was kept.
    kept_at = UTCDateTimeAttribute(null=True)
    # Of the workspace's files that the HTML shows (``files.find_file_ids``).
    file_ids: ListAttribute[Any] = ListAttribute(default=list)

    long_design: dict[str, Any] | None = None  # if it is long and was read
    site: SiteRow  # as it was read with the page or is staged

    @property
    def design(self) -> dict[str, Any] | None:
        # ``find`` must have read the page.
        short: dict[str, Any] | None = self.design_system
        return short if self.design_revision is None else self.long_design

    @property
    def lacks_design(self) -> bool:
        # A long design system was not read.
        return self.design_revision is not None and self.long_design is None

    @property
    def is_home(self) -> bool:
        return self.site.home_page_id == self.id

    @property
    def url(self) -> str:
        return self.site.url if self.is_home else f"{self.site.url}/{self.slug}"

    @property
    def canonical_url(self) -> str:
        # The page is served there without a redirect.
        return f"{self.url}/" if self.is_home else self.url

    @property
    def canonical_elsewhere(self) -> str | None:
        # The URL outside of the site that search engines list instead of the page.
        return self.canonical if self.site.page_slug(self.canonical) is None else None

    @property
    def order_key(self) -> tuple[bool, float, str]:
        return (not self.is_home, self.sort_order, self.id)


PAGES = register_listing(
    Listing(
        row=PageRow,
        noun="PAGE",
        plural="a site's pages",
        listed_by="svc_list_pages",
        unavailable_message="This page does not exist.",
        text=lambda page: (page.title, page.slug),
        uncounted=True,
        events={"page.created": is_new, "page.updated": changes_others()},
        deletion_event="page.deleted",
        sorts={"createdAt": "id"},
        parent="project_id",
        lookups=(
            Lookup("slug", lambda p: p.slug, unique=True, within=lambda p: p.project_id),
            Lookup("former-slug", lambda p: p.former_slugs, within=lambda p: p.project_id),
        ),
        files=ShownFiles(lambda page: page.file_ids),
        followed_by=KNOWLEDGE_STALE,
    )
)


class DesignRow(ContentRow):
    """Long design system of a page."""

    design_system: JsonAttribute = JsonAttribute()
    revision = NumberAttribute()  # of the page that it was written with


def design_key(workspace_id: str, *, page_id: str) -> Key:
    """Return the key of a page's long design system."""
    return Key(DesignRow, f"W#{workspace_id}#PAGE#DESIGN", page_id)


# Site ids by page id, per process. A page never moves to another site.
_site_ids: dict[str, str] = {}
MAX_SITE_IDS = 10_000


def set_site(page: PageRow, site: SiteRow) -> None:
    """Set a page's site, and cache the site's id. Both are then read in one request."""
    page.site = site
    # A process that serves many sites must not remember all their pages.
    if len(_site_ids) >= MAX_SITE_IDS:
        clear_site_cache()
    _site_ids[page.id] = site.id


def clear_site_cache() -> None:
    """Clear the cache of site ids."""
    _site_ids.clear()


def find(workspace_id: str, *, page_id: str) -> PageRow | None:
    """Return a page with its design system and its site, or None.

    Raises ConcurrentUpdateError if the page changed between the reads of its two rows.
    """
    # One round trip, or two the first time that this process reads the page.
    keys = [PAGES.key(workspace_id, record_id=page_id), design_key(workspace_id, page_id=page_id)]
    if (site_id := _site_ids.get(page_id)) is not None:
        keys.append(SITES.key(workspace_id, record_id=site_id))
    rows = {type(row): row for row in fetch(keys)}
    page, design = rows.get(PageRow), rows.get(DesignRow)
    if not isinstance(page, PageRow):
        return None
    if page.design_revision is not None:
        if not isinstance(design, DesignRow) or design.revision != page.design_revision:
            # The rows are read in one request, but BatchGetItem is not a snapshot.
            raise ConcurrentUpdateError
        page.long_design = design.design_system
    site = rows.get(SiteRow) or SITES.find(workspace_id, record_id=page.project_id)
    if not isinstance(site, SiteRow):
        return None  # the site is being deleted, and its pages with it
    set_site(page, site)
    return page


def read_design(workspace_id: str, page: PageRow) -> None:
    """Read the design system of a page that returns from the trash, if it is long."""
    if page.design_revision is not None:
        for row in fetch([design_key(workspace_id, page_id=page.id)]):
            page.long_design = row.design_system if isinstance(row, DesignRow) else None


def set_design(unit: UnitOfWork, page: PageRow, design: dict[str, Any] | None) -> None:
    """Set the design system of a page. The caller stages the update of the page."""
    is_long = len(to_json(design)) > INLINE_DESIGN_BYTES
    key = design_key(unit.workspace_id, page_id=page.id)
    if is_long:
        # The number is the revision after the commit, by which a torn read is noticed.
        page.design_revision = int(page.version) + 1
        row = DesignRow(key.pk, key.sk, design_system=design, revision=page.design_revision)
        row.r = group(page.project_id) + page.id
        unit.save(row)
    else:
        delete_design(unit, page)
        page.design_revision = None
    page.design_system, page.long_design = (None, design) if is_long else (design, None)


def delete_design(unit: UnitOfWork, page: PageRow) -> None:
    """Stage the removal of a page's long design system, if it has one."""
    if page.design_revision is not None:
        key = design_key(unit.workspace_id, page_id=page.id)
        unit.delete(DesignRow(key.pk, key.sk))


def purge_design(workspace_id: str, *, page_id: str) -> None:
    """Remove the long design system of a purged page, if it has one."""
    key = design_key(workspace_id, page_id=page_id)
    with reaching():
        DesignRow(key.pk, key.sk).delete()


def purge_designs(workspace_id: str, *, site_id: str) -> None:
    """Remove the long design systems of all pages of a deleted site."""
    pk = design_key(workspace_id, page_id="").pk
    design_entries = list(
        entries(Partition(pk, Cost()), parent_condition(site_id), where=None, consistent=True)
    )
    for entry in design_entries:
        with reaching():
            DesignRow(pk, entry.id).delete()


def site_and_taken_slugs(
    workspace_id: str, *, site_id: str, slugs: list[str]
) -> tuple[SiteRow | None, set[str]]:
    """Return a site, and the given slugs that its pages already have, in one round trip."""
    keys = {PAGES.value_key(workspace_id, lookup="slug", value=s, group=site_id): s for s in slugs}
    rows = fetch([SITES.key(workspace_id, record_id=site_id), *keys])
    site = next((row for row in rows if isinstance(row, SiteRow)), None)
    taken_keys = {row.pk for row in rows if isinstance(row, LookupRow)}
    return site, {slug for key, slug in keys.items() if key.pk in taken_keys}


def find_id(workspace_id: str, site: SiteRow, slug: str) -> str | None:
    """Return the id of a site's page by its slug ("" for the home page), or None."""
    if not slug:
        home: str | None = site.home_page_id
        return home
    rows = fetch([PAGES.value_key(workspace_id, lookup="slug", value=slug, group=site.id)])
    return next((row.target for row in rows if isinstance(row, LookupRow)), None)


def rename(page: PageRow, slug: str) -> None:
    """Give a page another slug. The former slug redirects, until another page has it."""
    if slug != page.slug:
        former = [
            former_slug for former_slug in (*page.former_slugs, page.slug) if former_slug != slug
        ]
        # Each former slug has a row, and a transaction takes 100 items.
        page.former_slugs = list(dict.fromkeys(former))[-MAX_FORMER_SLUGS:]
        page.slug = slug


def find_former(workspace_id: str, site: SiteRow, slug: str) -> PageRow | None:
    """Return the page of a site that had a slug last, or None."""
    ids = PAGES.find_by(workspace_id, lookup="former-slug", value=slug, group=site.id)
    former_pages = PAGES.fetch(workspace_id, ids) if ids else []
    return max(former_pages, key=lambda page: page.updated_at, default=None)


def read_site_and_pages(workspace_id: str, *, site_id: str) -> tuple[SiteRow | None, list[PageRow]]:
    """Return a site, or None, and its pages in order, in two round trips."""
    keys = [
        PAGES.key(workspace_id, record_id=row.id) for row in PAGES.entries(workspace_id, site_id)
    ]
    rows = fetch([SITES.key(workspace_id, record_id=site_id), *keys])
    site = next((row for row in rows if isinstance(row, SiteRow)), None)
    pages = [row for row in rows if isinstance(row, PageRow)]
    if site is None:
        return None, []
    for page in pages:
        set_site(page, site)
    return site, sorted(pages, key=lambda page: page.order_key)


def read(workspace_id: str, rows: list[IndexEntry]) -> list[PageRow]:
    """Return the pages of these index entries, as far as they still exist."""
    page_rows = fetch(PAGES.key(workspace_id, record_id=row.id) for row in rows)
    return [page for page in page_rows if isinstance(page, PageRow)]


def find_html_key(workspace_id: str, *, page_id: str) -> str | None:
    """Return the key of a page's HTML, or of its last HTML if it was deleted with its site."""
    # The order matters: a page that is deleted between the two reads is found by the second.
    page = PAGES.find(workspace_id, record_id=page_id) or PageRow.find(
        PAGES.trash(workspace_id), page_id
    )
    return page.html_key if page else None


class PageCountRow(ContentRow):
    """Row for the creation and deletion of a site's pages, while other attributes may change."""

    page_count = NumberAttribute(null=True)
    last_sort_order = NumberAttribute(null=True)
    # Raised, so that other writers that read the site before are retried.
    version = NumberAttribute()


def count_new_page(unit: UnitOfWork, page: PageRow, max_pages: int) -> None:
    """Stage the counting of a new page, last in order, of a site that has a home page.

    The operation is retried if the site at commit has another home page, ``max_pages`` pages, or a
    page with a higher sort order.
    """
    site, count, last = page.site, PageCountRow.page_count, PageCountRow.last_sort_order
    has_room = count.does_not_exist() | (count < max_pages)
    is_last = last.does_not_exist() | (last <= page.sort_order)
    # A page that becomes the home page changes its URL, so a concurrent change must be noticed.
    same_home = SiteRow.home_page_id == site.home_page_id
    actions = [*_count_actions(1), last.set(page.sort_order)]
    unit.update(PageCountRow(site.pk, site.sk), actions, same_home & has_room & is_last)


def count_restored_page(unit: UnitOfWork, page: PageRow, max_pages: int) -> None:
    """Stage the counting of a restored page of a site that has a home page.

    The operation is retried if the site at commit has another home page or ``max_pages`` pages.
    """
    site, count = page.site, PageCountRow.page_count
    has_room = count.does_not_exist() | (count < max_pages)
    same_home = SiteRow.home_page_id == site.home_page_id
    unit.update(PageCountRow(site.pk, site.sk), _count_actions(1), same_home & has_room)


def count_deleted_page(unit: UnitOfWork, page: PageRow, *, on_conflict: AppError) -> None:
    """Stage the counting of a deleted page. ``on_conflict`` is raised if the site is gone."""
    key = SITES.key(unit.workspace_id, record_id=page.project_id)
    unit.update(PageCountRow(key.pk, key.sk), _count_actions(-1), on_conflict=on_conflict)


def _count_actions(change: int) -> list[Action]:
    return [PageCountRow.page_count.add(change), PageCountRow.version.add(1)]


def html_folder(workspace_id: str, *, site_id: str, page_id: str | None = None) -> str:
    """Return the object-store prefix of the HTML of a site's pages, or of one page."""
    folder = f"{workspace_id}/sites/{site_id}/pages/"
    return folder if page_id is None else f"{folder}{page_id}/"

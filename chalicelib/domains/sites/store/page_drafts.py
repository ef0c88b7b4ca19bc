"""Store the draft of a page: HTML that visitors do not see yet. ADR 130 says what becomes of it.

A page has at most one. Its HTML is an object that neither the page nor a version shares.
"""

from pynamodb.attributes import (
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.engine.connection import reaching
from chalicelib.engine.listing.index_entries import entries, group, parent_condition
from chalicelib.engine.reading import Cost, Key, Partition, fetch
from chalicelib.engine.tables import ContentRow


class DraftRow(ContentRow):
    """A page's draft, with the account that saved it. The sort key is the page's id."""

    version = VersionAttribute()
    html_key = UnicodeAttribute()
    html_bytes = NumberAttribute()
    mark = UnicodeAttribute()  # of its HTML (``mark_of``)
    began_from = UnicodeAttribute()  # the mark of the page's HTML that it is a change of
    saved_by = UnicodeAttribute(null=True)
    saved_at = UTCDateTimeAttribute()

    @property
    def page_id(self) -> str:
        return self.sk


def _key(workspace_id: str, *, page_id: str) -> Key:
    return Key(DraftRow, f"W#{workspace_id}#PAGE#DRAFT", page_id)


def mark_of(page: PageRow) -> str:
    """Return what changes with a page's HTML: its SHA-256, or "" of a page without HTML."""
    # HTML of early releases was stored without its hash. Each save has a key of its own.
    mark: str | None = page.html_hash or page.html_key
    return mark or ""


def new_row(workspace_id: str, page: PageRow) -> DraftRow:
    """Return the row of a page's first draft. The caller sets the rest, and stages it."""
    key = _key(workspace_id, page_id=page.id)
    # The key of the index begins with the site, so one query finds the drafts of a site.
    return DraftRow(key.pk, key.sk, r=group(page.project_id) + page.id)


def find(workspace_id: str, *, page_id: str) -> DraftRow | None:
    """Return a page's draft, or None."""
    key = _key(workspace_id, page_id=page_id)
    return DraftRow.find(key.pk, key.sk)


def find_of_site(workspace_id: str, *, site_id: str) -> list[DraftRow]:
    """Return the drafts of a site's pages, also of deleted ones."""
    rows = fetch(
        _key(workspace_id, page_id=page_id) for page_id in _page_ids(workspace_id, site_id)
    )
    return [row for row in rows if isinstance(row, DraftRow)]


def purge_of_page(workspace_id: str, *, page_id: str) -> None:
    """Remove the row of a purged page's draft."""
    key = _key(workspace_id, page_id=page_id)
    with reaching():
        # Only a page that exists can get a draft, so nothing else writes the row.
        DraftRow(key.pk, key.sk).delete(add_version_condition=False)


def purge_of_site(workspace_id: str, *, site_id: str) -> None:
    """Remove the rows of the drafts of all pages of a purged site."""
    for page_id in _page_ids(workspace_id, site_id):
        purge_of_page(workspace_id, page_id=page_id)


def _page_ids(workspace_id: str, site_id: str) -> list[str]:
    partition = Partition(_key(workspace_id, page_id="").pk, Cost())
    found = entries(partition, parent_condition(site_id), where=None, consistent=True)
    return [entry.id for entry in found]

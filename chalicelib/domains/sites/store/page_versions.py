"""Earlier versions of pages' HTML.

A version is a row that refers to an object of the store. A page and its versions never share an
object.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core.ids import new_id
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.engine.connection import reaching
from chalicelib.engine.listing.index_entries import entries, group, parent_condition
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

MAX_VERSIONS = 30
MAX_BYTES = 10 * 2**20
"""Limits of the versions of one page. They do not count against the quota of files."""
SAME_EDIT = timedelta(minutes=10)
"""Time within which saves by one caller keep a single version: the HTML before the first."""


class VersionRow(ContentRow):
    """The HTML that a page had, with the caller that saved it and the time of that save.

    The sort key is the page's id and the version's id. Ids sort by the time at which other HTML
    replaced the version.
    """

    html_key = UnicodeAttribute()
    html_bytes = NumberAttribute()
    saved_by = UnicodeAttribute(null=True)
    saved_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        """The id of the version."""
        return self.sk.partition("#")[2]


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#PAGE#VERSION"


def continues_edit(page: PageRow, caller: str, now: datetime) -> bool:
    """Return whether a save belongs to an edit that has kept its version already."""
    kept_at: datetime | None = page.kept_at
    return page.kept_for == caller and kept_at is not None and now - kept_at < SAME_EDIT


def keep(unit: UnitOfWork, page: PageRow, caller: str, now: datetime) -> str:
    """Stage the page's HTML as a version, before ``caller`` saves other HTML.

    Returns its id.
    """
    # A retry must keep the id, because the response names it.
    version_id = unit.run_side_effect_once("version id", new_id)
    row = VersionRow(
        _partition(unit.workspace_id),
        f"{page.id}#{version_id}",
        html_key=page.html_key,
        html_bytes=page.html_bytes,
        saved_by=page.saved_by,
        saved_at=page.saved_at or page.updated_at,
    )
    # The key begins with the site, so a purge of the site finds all versions in one query.
    row.r = group(page.project_id) + row.sk
    unit.create(row)
    page.kept_for, page.kept_at = caller, now
    return version_id


def read_all(workspace_id: str, *, page_id: str) -> list[VersionRow]:
    """Return all stored versions of a page, the latest first."""
    rows = VersionRow.partition(
        _partition(workspace_id), range_key_condition=VersionRow.sk.startswith(f"{page_id}#")
    )
    return rows[::-1]


def within_limits(versions: Sequence[VersionRow]) -> Sequence[VersionRow]:
    """Return the versions that a page may have, of versions from the latest on."""
    sizes = accumulate(int(version.html_bytes) for version in versions)
    fitting = sum(size <= MAX_BYTES for size in sizes)
    return versions[: min(fitting, MAX_VERSIONS)]


def find(workspace_id: str, *, page_id: str, version_id: str) -> VersionRow | None:
    """Return one of the versions that a page may have, or None."""
    versions = within_limits(read_all(workspace_id, page_id=page_id))
    return next((version for version in versions if version.id == version_id), None)


def purge_of_page(workspace_id: str, *, page_id: str) -> None:
    """Remove the rows of a purged page's versions."""
    for row in read_all(workspace_id, page_id=page_id):
        with reaching():
            row.delete()


def purge_of_site(workspace_id: str, *, site_id: str) -> None:
    """Remove the rows of the versions of all pages of a purged site."""
    pk = _partition(workspace_id)
    version_entries = list(
        entries(Partition(pk, Cost()), parent_condition(site_id), where=None, consistent=True)
    )
    for entry in version_entries:
        with reaching():
            VersionRow(pk, entry.id).delete()

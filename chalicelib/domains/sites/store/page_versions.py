"""Store earlier versions of pages' HTML. ADR 99 says which versions a page keeps.

A version is a row that refers to an object of the store. A page and its versions never share an
object.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock, ids
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.engine.connection import reaching
from chalicelib.engine.listing.index_entries import entries, group, parent_condition
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

EACH_SAVE_FOR = timedelta(hours=24)  # The HTML before each save is kept for this time.
# Limits of the versions of that time, per page.
MAX_SAVES = 500
MAX_BYTES_OF_SAVES = 20 * 2**20
# Time that HTML must have been on the page to be kept for longer.
PAUSE = timedelta(minutes=10)
# Limits of the versions that are kept for longer, per page. No version counts against the quota of
# files.
MAX_VERSIONS = 30
MAX_BYTES = 10 * 2**20
_TICK = timedelta(milliseconds=1)  # the precision of times in ids


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
        return self.sk.partition("#")[2]

    @property
    def replaced_at(self) -> datetime:
        # Other HTML replaced the version then.
        return ids.moment_of(self.id)


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#PAGE#VERSION"


def keep(unit: UnitOfWork, page: PageRow) -> str:
    """Stage the page's HTML as a version, before other HTML replaces it. Returns its id."""
    # Ids sort by time, so an id must be later than the last one, whatever the clocks of two
    # processes say. A retry after a conflict takes a new id, because another save was first.
    now: datetime = clock.now()
    replaced_at = max(now, page.kept_at + _TICK) if page.kept_at else now
    version_id = ids.new_id(replaced_at)
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
    page.kept_at = replaced_at
    return version_id


def read_all(workspace_id: str, *, page_id: str) -> list[VersionRow]:
    """Return all stored versions of a page, the latest first."""
    rows = VersionRow.partition(
        _partition(workspace_id), range_key_condition=VersionRow.sk.startswith(f"{page_id}#")
    )
    return rows[::-1]


def within_limits(versions: Sequence[VersionRow], now: datetime) -> list[VersionRow]:
    """Return the versions that a page may have at a time, of versions from the latest on."""
    # Kept are the versions of each save of the last 24 hours, then the ones before pauses. The
    # first version of a day stays for 24 hours, however many saves follow.
    recent = [version for version in versions if now - version.replaced_at < EACH_SAVE_FOR]
    saves = _first_fitting(recent, MAX_SAVES, MAX_BYTES_OF_SAVES)
    first_of_day = {version.replaced_at.date(): version for version in recent}
    kept = {version.id for version in (*saves, *first_of_day.values())}
    others = [version for version in versions if version.id not in kept]
    before_pauses = [v for v in others if v.replaced_at + _TICK > v.saved_at + PAUSE]
    kept |= {v.id for v in _first_fitting(before_pauses, MAX_VERSIONS, MAX_BYTES)}
    return [version for version in versions if version.id in kept]


def _first_fitting(
    versions: Sequence[VersionRow], max_count: int, max_bytes: int
) -> Sequence[VersionRow]:
    sizes = accumulate(int(version.html_bytes) for version in versions)
    return versions[: min(max_count, sum(size <= max_bytes for size in sizes))]


def thinned_at(versions: Sequence[VersionRow]) -> datetime | None:
    """Return when fewer of these versions may be kept, if no other save follows, or None."""
    if not versions:
        return None
    end: datetime = versions[0].replaced_at + EACH_SAVE_FOR
    return end if len(within_limits(versions, end)) < len(versions) else None


def find_all(workspace_id: str, *, page_id: str) -> list[VersionRow]:
    """Return the versions that a page may have now, the latest first."""
    return within_limits(read_all(workspace_id, page_id=page_id), clock.now())


def find(workspace_id: str, *, page_id: str, version_id: str) -> VersionRow | None:
    """Return one of the versions that a page may have, or None."""
    versions = find_all(workspace_id, page_id=page_id)
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

"""Daily counters for the statistics of leads, per workspace, form and site.

A lead counts on the day of its creation, under its current status. A change of status moves it
between the counters of that day, no matter how long ago the day was (ADR 19).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.domains.sites.store import site_visits
from chalicelib.engine.metrics import Increments
from chalicelib.engine.unit import UnitOfWork

CREATED = "created"
OVER_QUOTA = "over_quota"
CLIENTS = "clients"
SOURCE = "source"
BOOKINGS = "bookings"


def subject(*, form_id: str | None = None, project_id: str | None = None) -> str:
    """Return the subject of the counters of a form, of a site, or of all leads."""
    if form_id is not None:
        return f"crm:form:{form_id}"
    return "crm" if project_id is None else f"crm:site:{project_id}"


def count_created(unit: UnitOfWork, created: Iterable[tuple[LeadRow, bool]]) -> None:
    """Stage the counting of new leads, each with a flag for a new client. Call it once per unit."""
    counts = Increments(unit.workspace_id)
    for lead, with_client in created:
        day = date.fromisoformat(lead.day)
        for subject in _subjects(lead):
            counts.add(subject, day, {CREATED: 1}, source=lead.source_name)
            over_quota = int(bool(lead.over_quota))
            counts.add(
                subject, day, {lead.status: 1, CLIENTS: int(with_client), OVER_QUOTA: over_quota}
            )
    counts.stage(unit)


def count_status(unit: UnitOfWork, lead: LeadRow, old_status: str) -> None:
    """Stage the counting of a lead's change of status. Call it once per unit."""
    counts = Increments(unit.workspace_id)
    for subject in _subjects(lead):
        # The counts move on the day of creation, so the statuses of each day add up to its leads.
        counts.add(subject, date.fromisoformat(lead.day), {old_status: -1, lead.status: 1})
    counts.stage(unit)


def count_client(unit: UnitOfWork, lead: LeadRow, day: date) -> None:
    """Stage the counting of a new client of an existing lead. Call it once per unit."""
    counts = Increments(unit.workspace_id)
    for subject in _subjects(lead):
        counts.add(subject, day, {CLIENTS: 1})
    counts.stage(unit)


def count_bookings(
    unit: UnitOfWork, day: date, site_ids: Sequence[str | None], *, with_client: bool
) -> None:
    """Stage the counting of bookings, once per unit; ``day`` is in the workspace's time zone.

    ``site_ids`` has the site of each booking, or None.
    """
    counts = Increments(unit.workspace_id)
    counts.add(workspace_metrics.SUBJECT, day, {workspace_metrics.BOOKINGS: len(site_ids)})
    sites = Counter(filter(None, site_ids))
    for site_id, count in sites.items():
        counts.add(site_visits.subject(site_id), day, {BOOKINGS: count})
    if with_client:
        counts.add(subject(), day, {CLIENTS: 1})
        for site_id in sites:
            counts.add(subject(project_id=site_id), day, {CLIENTS: 1})
    counts.stage(unit)


def _subjects(lead: LeadRow) -> Iterator[str]:
    yield subject()
    if lead.form_id is not None:
        yield subject(form_id=lead.form_id)
    if lead.project_id is not None:
        yield subject(project_id=lead.project_id)

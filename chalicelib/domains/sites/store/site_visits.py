"""Visits of sites, counted by the day: views, visitors, pages and referring hosts (ADR 29).

Nothing is kept of a visit itself but that a visitor, known by a hash of the day, was there; that
row expires with the hash's salt.
"""

from datetime import date, datetime, time, timedelta

from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.metrics import Increments
from chalicelib.engine.tables import ConversationRow

VIEWS = "views"
VISITORS = "visitors"
PAGE = "page"
REFERRER = "referrer"
SORT_KEY = "-"
SEEN_FOR = timedelta(days=2)
"""After a day's beginning in UTC: by then it is over in every time zone."""


class SeenRow(ConversationRow):
    """Says that a visitor was on a site on a day."""


def subject(site_id: str) -> str:
    """Return what a site's daily counters are under; bookings of its services are there, too."""
    return f"site:{site_id}"


def count(  # noqa: PLR0913  what a visit is
    workspace_id: str,
    site_id: str,
    day: date,
    *,
    page_id: str,
    referrer: str | None,
    visitor: str,
) -> None:
    """Count a view of a page on a day of the site's, and the visitor if it is the first today.

    At once, without a transaction: any number at a time, each of them once (ADR 14).
    """
    counts, of = Increments(workspace_id), subject(site_id)
    counts.add(of, day, {VIEWS: 1}, page=page_id, referrer=referrer)
    new = int(_is_first(workspace_id, site_id, day, visitor))
    counts.add(of, day, {VISITORS: new})
    counts.add(workspace_metrics.SUBJECT, day, {workspace_metrics.VISITORS: new})
    counts.write()


def _is_first(workspace_id: str, site_id: str, day: date, visitor: str) -> bool:
    """Whether a visitor was not yet seen on a day; of views at once, one is the first."""
    expires = datetime.combine(day, time(), clock.now().tzinfo) + SEEN_FOR
    row = SeenRow(f"W#{workspace_id}#SEEN#{site_id}#{day}#{visitor}", SORT_KEY, expires=expires)
    try:
        row.save(condition=SeenRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return False
        raise_failure(error)
    return True

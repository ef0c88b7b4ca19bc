"""Count a site's views, visitors, pages and referring hosts per day (ADR 29).

Only one row is stored for a visit: it records that a visitor was on the site on a day. The visitor
is identified by a hash that changes daily. The row expires with the salt of the hash.
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
SEEN_TTL = timedelta(days=2)  # from midnight UTC, so the day has ended in every time zone


class SeenRow(ConversationRow):
    """Record that a visitor was on a site on a day."""


def subject(site_id: str) -> str:
    """Return the subject of the daily counters of a site and its bookings."""
    return f"site:{site_id}"


def count(  # noqa: PLR0913  the attributes of a visit
    workspace_id: str,
    *,
    site_id: str,
    day: date,
    page_id: str,
    referrer: str | None,
    visitor: str,
) -> None:
    """Count a view of a page, and the visitor on the first view of the site on this day.

    ``day`` is the current day in the site's time zone. The counters are incremented immediately and
    without a transaction, so concurrent views do not conflict (ADR 14).
    """
    counts, site_subject = Increments(workspace_id), subject(site_id)
    counts.add(site_subject, day, {VIEWS: 1}, page=page_id, referrer=referrer)
    first_view = int(_is_first_view(workspace_id, site_id=site_id, day=day, visitor=visitor))
    counts.add(site_subject, day, {VISITORS: first_view})
    counts.add(workspace_metrics.SUBJECT, day, {workspace_metrics.VISITORS: first_view})
    counts.write()


def _is_first_view(workspace_id: str, *, site_id: str, day: date, visitor: str) -> bool:
    # Of concurrent views, exactly one is the first.
    expires = datetime.combine(day, time(), clock.now().tzinfo) + SEEN_TTL
    row = SeenRow(f"W#{workspace_id}#SEEN#{site_id}#{day}#{visitor}", SORT_KEY, expires=expires)
    try:
        # Two tabs that open at the same time are one visitor.
        row.save(condition=SeenRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return False
        raise_failure(error)
    return True

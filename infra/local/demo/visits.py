"""Visits of the demo's site in the last weeks."""

import random
from datetime import timedelta

from chalicelib.core import clock
from chalicelib.domains.identity.store import workspace_metrics, workspaces
from chalicelib.domains.sites.store import site_visits
from chalicelib.engine import metrics
from chalicelib.engine.metrics import Increments
from infra.local.demo import bakery
from infra.local.demo.caller import Caller
from infra.local.demo.texts import Language

VISITED_DAYS = 35
FRIDAY = 4


def make_visits(do: Caller, language: Language) -> None:
    """Count page views over the last weeks, more at week-ends and on the home page.

    They are written to the database directly, because a page view is always counted today.
    """
    shop = bakery.load(language)
    site = do("list_sites", search=shop.site)["projects"][0]["id"]
    ids = [page["id"] for page in do("list_pages", projectId=site)["pages"]]
    zone = workspaces.get(do.workspace_id).timezone
    today = clock.local_day(clock.now(), zone)
    dice = random.Random("visits")  # noqa: S311  repeatable by intent
    first = today - timedelta(days=VISITED_DAYS - 1)
    recorded_counts = metrics.read(
        do.workspace_id, subject=site_visits.subject(site), first=first, last=today
    )
    for day in (day for day, counts in recorded_counts.items() if not counts.totals):
        counts = Increments(do.workspace_id)
        visitors = dice.randrange(9, 16) + (9 if day.weekday() > FRIDAY else 0)
        counts.add(site_visits.subject(site), day, {site_visits.VISITORS: visitors})
        totals = {workspace_metrics.VISITORS: visitors}
        counts.add(workspace_metrics.SUBJECT, day, totals)
        for _ in range(visitors * 2):
            page_id = dice.choices(ids, [8, 5, 4, 3, 2][: len(ids)])[0]
            referrer = dice.choices([None, *shop.referrers], [6, 4, 2, 1])[0]
            counts.add(
                site_visits.subject(site),
                day,
                {site_visits.VIEWS: 1},
                page=page_id,
                referrer=referrer,
            )
        counts.write()

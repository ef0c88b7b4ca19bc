"""Store visits of pages with a bot's widget, and the stages that they reached."""

from datetime import date, timedelta

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute

from chalicelib.core import clock
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.bots.store.bot_metrics import MAX_PAGES, STAGES, Stage
from chalicelib.engine.claims import name_hash
from chalicelib.engine.metrics import Increments
from chalicelib.engine.tables import ConversationRow, DateAttribute
from chalicelib.engine.unit import UnitOfWork

RETENTION = timedelta(days=30)  # A visit can reach further stages for this time.
SORT_KEY = "-"


class VisitRow(ConversationRow):
    """A visit of a page with a bot's widget."""

    version = VersionAttribute()
    day = DateAttribute()
    page_url = UnicodeAttribute(null=True)
    project_id = UnicodeAttribute(null=True)
    reached = NumberAttribute()  # number of stages that it has passed


def find(workspace_id: str, *, agent_id: str, visit_id: str) -> VisitRow | None:
    """Return a visit, or None if it has reached no stage yet."""
    return VisitRow.find(_partition(workspace_id, agent_id=agent_id, visit_id=visit_id), SORT_KEY)


def reach(  # noqa: PLR0913  the fields of a visit
    unit: UnitOfWork,
    counts: Increments,
    agent_id: str,
    *,
    visit_id: str,
    stage: Stage,
    visit: VisitRow | None,
    today: date,
    page_url: str | None = None,
    project_id: str | None = None,
) -> bool:
    """Record that a visit has reached a stage of the funnel. Return False if it had before.

    The caller stages ``counts``. ``visit`` is what ``find`` returned. The page and site of the
    visit's first event are kept.
    """
    if visit is None:
        visit = VisitRow(
            _partition(unit.workspace_id, agent_id=agent_id, visit_id=visit_id),
            SORT_KEY,
            day=today,
            page_url=page_url,
            project_id=project_id,
            reached=0,
            expires=clock.now() + RETENTION,
        )
    upto = STAGES.index(stage) + 1
    # A visit counts once per stage, on its first day and under its first page. Stages that it
    # skipped are counted, too, so no stage of a day has a higher count than the previous one.
    gained = STAGES[int(visit.reached) : upto]
    if not gained:
        return False
    measures: dict[str, int] = dict.fromkeys(gained, 1)
    # Without a site, the set has one element, so that the visit counts once.
    for site in {None, visit.project_id}:
        counts.add(
            bot_metrics.widget_subject(agent_id, site),
            visit.day,
            measures,
            max_values=MAX_PAGES,
            page=visit.page_url,
        )
    visit.reached = upto
    unit.save(visit)
    return True


def _partition(workspace_id: str, *, agent_id: str, visit_id: str) -> str:
    return f"W#{workspace_id}#VISIT#{agent_id}#{name_hash(visit_id)}"

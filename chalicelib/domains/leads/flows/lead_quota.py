"""Quota of leads per 30 days that a plan includes. Further leads are marked, but never refused.

The leads of one visitor use up a tenth of it a day at most.
"""

from datetime import timedelta

from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.plans import LEADS_A_MONTH
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork

LEAST_SHARE = 30
"""Leads of one visitor that are counted in any plan."""


def share(workspace: WorkspaceRow) -> Limit:
    """Return the limit on a visitor's leads that are counted. Further ones are marked."""
    most = max(LEAST_SHARE, LEADS_A_MONTH[workspace.plan] // 10)
    return Limit("leads-visitor", "counted leads a day", most, timedelta(days=1))


def is_over_quota(unit: UnitOfWork, workspace: WorkspaceRow) -> bool:
    """Count a new lead, once per unit of work. Return whether the plan does not include it.

    Such a lead is not counted. If the unit fails, or undoes its effects, the lead is uncounted.

    Raises:
        UnavailableError: the database cannot be reached.
    """

    def count() -> bool:
        now = clock.now()
        try:
            limits.take(_quota(workspace), workspace.id)
        except RateLimitedError:
            return True
        unit.on_failure(lambda: limits.give_back(_quota(workspace), workspace.id, now))
        return False

    return unit.run_side_effect_once("leads", count)


def _quota(workspace: WorkspaceRow) -> Limit:
    included = LEADS_A_MONTH[workspace.plan]
    return Limit(
        "leads", "leads in thirty days", included, timedelta(days=30), share=share(workspace)
    )

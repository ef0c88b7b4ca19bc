"""Quota of leads per 30 days that a plan includes. Further leads are marked, but never refused."""

from datetime import timedelta

from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.plans import LEADS_A_MONTH
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork


def is_over_quota(unit: UnitOfWork, workspace: WorkspaceRow) -> bool:
    """Count a new lead, once per unit of work. Return whether the plan does not include it.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    included = LEADS_A_MONTH[workspace.plan]
    quota = Limit("leads", "leads in thirty days", included, timedelta(days=30))

    def count_lead() -> bool:
        try:
            limits.take(quota, workspace.id)
        except RateLimitedError:
            return True
        return False

    return unit.run_side_effect_once("leads", count_lead)

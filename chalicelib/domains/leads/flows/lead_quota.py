"""Number of leads that a plan includes. A lead beyond it is marked, but never refused."""

from datetime import timedelta

from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.plans import LEADS_A_MONTH
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork


def is_over_quota(unit: UnitOfWork, workspace: WorkspaceRow) -> bool:
    """Count a new lead towards the plan, once per unit. Return whether it exceeds the plan.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    included = LEADS_A_MONTH[workspace.plan]
    quota = Limit("leads", "leads in thirty days", included, timedelta(days=30))

    def is_exceeded() -> bool:
        try:
            limits.take(quota, workspace.id)
        except RateLimitedError:
            return True
        return False

    return unit.run_side_effect_once("leads", is_exceeded)

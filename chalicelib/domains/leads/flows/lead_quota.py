"""Quota of leads per 30 days that a plan includes. Further leads are marked, but never refused.

The leads of one visitor use up at most a tenth of the quota a day.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.plans import LEADS_A_MONTH
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork

LEAST_SHARE = 30  # Leads of one visitor that are counted in any plan.


# Leads of one visitor in a workspace, from all its forms and bots. If the limiter is unavailable,
# they are refused.
VISITOR_LEADS_PER_DAY = Limit("form-visitor-day", "submissions a day", 500, timedelta(days=1))


def share(workspace: WorkspaceRow) -> Limit:
    """Return the limit on a visitor's leads that are counted. Further ones are marked."""
    max_leads = max(LEAST_SHARE, LEADS_A_MONTH[workspace.plan] // 10)
    return Limit("leads-visitor", "leads per day", max_leads, timedelta(days=1))


def visitor_limits(
    workspace_id: str, subjects: Sequence[str], shared: Limit | None = None
) -> list[tuple[Limit, str]]:
    """Return the limits that count a visitor's leads in a workspace, with their subjects."""
    own_subjects = [f"{subject}#{workspace_id}" for subject in subjects]
    return limits.visitor_limits(VISITOR_LEADS_PER_DAY, own_subjects, shared)


def exceeds_share(workspace: WorkspaceRow, used: Iterable[int]) -> bool:
    """Return whether the leads of a visitor today, or of its network, exceed the share of each."""
    own_limits = limits.visitor_limits(share(workspace), ("", ""), _quota(workspace))
    return any(
        used_count > part.max_requests
        for used_count, (part, _) in zip(used, own_limits, strict=False)
    )


def count_in_chat(unit: UnitOfWork, workspace: WorkspaceRow, subjects: Sequence[str]) -> bool:
    """Count a visitor's lead from a chat, once per unit. Return whether it exceeds the share.

    Raises:
        UnavailableError: the database cannot be reached.
    """

    def count() -> bool:
        try:
            statuses = [limits.take(*counter) for counter in visitor_limits(workspace.id, subjects)]
        except RateLimitedError:
            return True
        return exceeds_share(workspace, (status.limit - status.remaining for status in statuses))

    # A retry of the unit must not count the lead a second time.
    return unit.run_side_effect_once("visitor's leads", count)


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
        # The unit may fail after the lead was counted.
        unit.on_failure(lambda: limits.give_back(_quota(workspace), workspace.id, now))
        return False

    return unit.run_side_effect_once("leads", count)


def _quota(workspace: WorkspaceRow) -> Limit:
    included = LEADS_A_MONTH[workspace.plan]
    return Limit(
        "leads", "leads in thirty days", included, timedelta(days=30), share=share(workspace)
    )

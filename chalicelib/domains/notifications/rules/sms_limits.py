"""Limits on SMS to clients: of a number over all workspaces, and of a workspace.

Nobody has proved the number that a visitor types. So few SMS go to it, whoever causes them, and
visitors cannot use up what the owner pays for.
"""

from datetime import timedelta

from chalicelib.core.limits import Limit
from chalicelib.core.plans import SMS_A_DAY

_DAY = timedelta(days=1)
UNPROVED = Limit("sms-unproved", "SMS a day to a number that a visitor has typed", 2, _DAY)
KNOWN = Limit("sms-number", "SMS a day to a number", 10, _DAY)
# The parts of a workspace's SMS that visitors may cause together, and one visitor of these.
_VISITORS_PART, _VISITOR_PART = 2, 5
_LEAST_FOR_VISITOR = 2


def number_limit(*, is_unproved: bool) -> Limit:
    """Return the limit of a number, which counts the SMS of all workspaces."""
    return UNPROVED if is_unproved else KNOWN


def workspace_limits(plan: str, *, is_unproved: bool) -> list[Limit]:
    """Return the limits on the SMS of a workspace. The limit of visitors has a visitor's share."""
    total = Limit("workspace-sms", "SMS a day to clients", SMS_A_DAY[plan], _DAY)
    if not is_unproved:
        return [total]
    what, part = "SMS a day that visitors cause", SMS_A_DAY[plan] // _VISITORS_PART
    most = max(_LEAST_FOR_VISITOR, part // _VISITOR_PART)
    share = Limit("workspace-visitor-sms-share", what, most, _DAY)
    return [total, Limit("workspace-visitor-sms", what, part, _DAY, share=share)]

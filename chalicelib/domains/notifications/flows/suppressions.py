"""Checks before each mail: whether the address or the workspace may be mailed.

Check ``is_suppressed`` before every mail, and ``is_paused`` before a mail to a visitor.
"""

from chalicelib.domains.notifications.store import mail_rates, suppressions


def is_suppressed(address: str) -> bool:
    """Return whether an address gets no mail, because one bounced or was complained of."""
    return bool(suppressions.find(address))


def is_paused(workspace_id: str) -> bool:
    """Return whether the mails of a workspace to visitors are paused, until an operator resumes."""
    return mail_rates.pause_reason(workspace_id) is not None

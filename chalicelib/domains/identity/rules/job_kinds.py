"""Kinds of jobs that identity stages and that domains above it handle.

Each has its payload beside it; times are in ISO 8601.
"""

from chalicelib.core.jobs import JobKind, Queue

# Removes what a former member of a workspace has there: ``accountId``, ``endedAt``.
MEMBERSHIP_ENDED = JobKind("membership-ended")
MAIL_INVITATION = JobKind("mail-invitation", Queue.EVENTS)  # ``invitationId``
# Sends the link by which an account proves its address: ``accountId``, ``at``.
MAIL_PROOF = JobKind("mail-proof", Queue.EVENTS)
MAIL_PASSWORD_RESET = JobKind("mail-password-reset", Queue.EVENTS)  # ``resetId``
# Tells the owner of an account what was done with a code or the password: ``accountId``,
# ``operation``, ``workspaceId``, ``at``.
MAIL_CONFIRMED = JobKind("mail-confirmed", Queue.EVENTS)
# Tells the owner of an account of a new password: ``accountId``, ``setAt``.
MAIL_PASSWORD_SET = JobKind("mail-password-set", Queue.EVENTS)

"""Kinds of jobs that identity stages and that domains above it handle."""

from chalicelib.core.jobs import JobKind, Queue

# Removes what a former member of a workspace has there. The payload has ``accountId``, and
# ``endedAt`` in ISO 8601.
MEMBERSHIP_ENDED = JobKind("membership-ended")
MAIL_INVITATION = JobKind("mail-invitation", Queue.EVENTS)  # The payload has ``invitationId``.
# Sends the link by which an account proves its address. The payload has ``accountId``, and ``at``
# in ISO 8601.
MAIL_PROOF = JobKind("mail-proof", Queue.EVENTS)
MAIL_PASSWORD_RESET = JobKind("mail-password-reset", Queue.EVENTS)  # The payload has ``resetId``.
# Tells the owner of an account what was done with a code or the password. The payload has
# ``accountId``, ``operation``, ``workspaceId``, and ``at`` in ISO 8601.
MAIL_CONFIRMED = JobKind("mail-confirmed", Queue.EVENTS)
# Tells the owner of an account of a new password. The payload has ``accountId``, and ``setAt`` in
# ISO 8601.
MAIL_PASSWORD_SET = JobKind("mail-password-set", Queue.EVENTS)

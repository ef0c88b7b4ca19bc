"""Kinds of jobs that identity stages and that domains above it handle."""

from chalicelib.core.jobs import JobKind, Queue

# Removes what a former member of a workspace has there. The payload has ``accountId``, and
# ``endedAt`` in ISO 8601.
MEMBERSHIP_ENDED = JobKind("membership-ended")
# Switches off the webhooks that revoked keys have made or changed. The payload has ``keyIds``.
PAUSE_WEBHOOKS = JobKind("pause-webhooks")
# Ends the link of a calendar feed that a member of the staff has had. The payload has
# ``resourceId``.
END_CALENDAR_LINK = JobKind("end-calendar-link")
MAIL_INVITATION = JobKind("mail-invitation", Queue.EVENTS)  # The payload has ``invitationId``.
# Sends the link by which an account proves its address. The payload has ``accountId``, and ``at``
# in ISO 8601.
MAIL_PROOF = JobKind("mail-proof", Queue.EVENTS)
MAIL_PASSWORD_RESET = JobKind("mail-password-reset", Queue.EVENTS)  # The payload has ``resetId``.
MAIL_SIGN_UP = JobKind("mail-sign-up", Queue.EVENTS)  # The payload has ``signUpId``.
# Tells the owner of an account what was done with a code or the password. The payload has
# ``accountId``, ``operation``, ``workspaceId``, and ``at`` in ISO 8601.
MAIL_CONFIRMED = JobKind("mail-confirmed", Queue.EVENTS)
# Tells the owner of an account of a new password. The payload has ``accountId``, and ``setAt`` in
# ISO 8601.
MAIL_PASSWORD_SET = JobKind("mail-password-set", Queue.EVENTS)
# Empties a test workspace that nobody uses, and has its owner told before.
TEST_IDLE = JobKind("test-workspace-idle")
# Tells the owner that the test workspace of the job is emptied soon. The payload has ``at`` in ISO
# 8601.
MAIL_TEST_IDLE = JobKind("mail-test-idle", Queue.EVENTS)
# Tells the members of a workspace that it is suspended, closed or open again. The payload has
# ``standing``, and ``at`` in ISO 8601.
MAIL_STANDING = JobKind("mail-standing", Queue.EVENTS)
# Cancels the future bookings of a workspace that its owner has closed, and deletes its records in
# the end. The payload has ``closedAt`` in ISO 8601: a workspace that is reopened keeps the rest.
CANCEL_BOOKINGS = JobKind("cancel-bookings-of-closed")
DELETE_WORKSPACE = JobKind("delete-workspace")
# Brings the entries of a listed business up to date, after changes of the workspace or of services.
DIRECTORY = JobKind("directory")

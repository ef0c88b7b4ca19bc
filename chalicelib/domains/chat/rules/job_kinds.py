"""Kinds of jobs that follow chats."""

from chalicelib.core.jobs import JobKind, Queue

# Sends a member's reply to the visitor of a dialog by e-mail. The payload has ``dialogId`` and
# ``replyId``, and ``at`` in ISO 8601.
MAIL_REPLY = JobKind("mail-reply", Queue.EVENTS)

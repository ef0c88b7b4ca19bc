"""Kinds of jobs that send messages to members, and reminders to clients."""

from chalicelib.core.jobs import JobKind, Queue

NOTIFY_MEMBER = JobKind("notify-member", Queue.EVENTS)
"""Sends one message to one member."""
NOTIFY_DIGEST = JobKind("notify-digest", Queue.EVENTS)
"""Sends one message for many that were held back."""
REMIND_CLIENT = JobKind("remind-client", Queue.EVENTS)
"""Reminds a client of a booking, and makes the job of the next reminder."""

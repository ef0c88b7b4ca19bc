"""Kinds of jobs that follow bookings."""

from chalicelib.core.jobs import JobKind, Queue

MAIL_CLIENT = JobKind("mail-client", Queue.EVENTS)
"""Sends one mail about a booking to its client."""
CLOSE_RECEIPT = JobKind("close-receipt", Queue.EVENTS)
"""Sends the closing receipt of a booking that took place."""

"""Kinds of jobs that follow bookings."""

from chalicelib.core.jobs import JobKind, Queue

MAIL_CLIENT = JobKind("mail-client", Queue.EVENTS)  # one mail about a booking
CLOSE_RECEIPT = JobKind("close-receipt", Queue.EVENTS)  # of a booking that took place
# Looks at the waiting lists of days whose bookings or busy times have changed. Only a change of a
# day that somebody waits for makes it (``calendar_days``).
DAYS_CHANGED = JobKind("waiting-days")

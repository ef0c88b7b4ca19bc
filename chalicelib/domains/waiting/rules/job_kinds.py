"""Kinds of jobs of waiting lists. ``bookings.rules.job_kinds`` has the one that bookings make."""

from chalicelib.core.jobs import JobKind, Queue

# Attends to one line: at the end of an offer, and else every hour.
ATTEND_LINE = JobKind("waiting-line")
TELL_WAITING = JobKind("tell-waiting", Queue.EVENTS)  # one message to one who waits

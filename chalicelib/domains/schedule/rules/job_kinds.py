"""Kinds of jobs of the calendars in which the staff is busy elsewhere, and of dates."""

from chalicelib.core.jobs import JobKind

READ_BUSY_TIMES = JobKind("busy-times-read")  # one reading, which writes the job of the next one
CLEAR_BUSY_TIMES = JobKind("busy-times-clear")  # after a calendar was removed
CLEAR_STARTS = JobKind("starts-clear")  # after a service with dates was deleted

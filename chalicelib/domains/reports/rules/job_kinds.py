"""Kinds of jobs of reports."""

from chalicelib.core.jobs import JobKind

COUNT_REPORTS = JobKind("reports-count")  # brings the sums of a workspace up to date each night

"""The kinds of jobs that the knowledge of bots stages."""

from chalicelib.core.jobs import JobKind

FETCH = JobKind("knowledge-fetch")  # Reads the page or the file of a source.

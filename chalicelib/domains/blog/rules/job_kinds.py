"""The kinds of jobs that the blog stages."""

from chalicelib.core.jobs import JobKind

COVER_UNUSED = JobKind("blog-cover-unused")  # Removes a cover that no post shows any more.

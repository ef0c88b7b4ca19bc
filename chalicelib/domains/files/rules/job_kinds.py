"""The kinds of jobs that uploads stage."""

from chalicelib.core.jobs import JobKind

UPLOAD_LAPSED = JobKind("upload-lapsed")  # Removes an announced upload that was not completed.

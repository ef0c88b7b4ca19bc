"""The kinds of jobs that uploads and replacements stage."""

from chalicelib.core.jobs import JobKind

UPLOAD_LAPSED = JobKind("upload-lapsed")  # Removes an announced upload that was not completed.
REPLACED = JobKind("file-replaced")  # Shows the new content of a file at its URLs.

"""The kinds of jobs of an export."""

from chalicelib.core.jobs import JobKind

EXPORT = JobKind("workspace-export")  # Continues an export until its file is complete.
EXPORT_EXPIRED = JobKind("export-expired")  # Deletes the file and the record of an export.

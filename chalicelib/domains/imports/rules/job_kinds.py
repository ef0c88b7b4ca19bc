"""The kinds of jobs of imports."""

from chalicelib.core.jobs import JobKind

IMPORT = JobKind("import")  # continues an import until all rows are sent
IMPORT_EXPIRED = JobKind("import-expired")  # deletes an import with its table of refused rows

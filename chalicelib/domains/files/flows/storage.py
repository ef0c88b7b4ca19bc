"""Charge files, thumbnails and HTML of pages to the storage quota of a workspace."""

from chalicelib.core import plans
from chalicelib.core.errors import ConflictError
from chalicelib.domains.files.store import files
from chalicelib.engine.unit import UnitOfWork


class QuotaExceededError(ConflictError):
    """The workspace's files would exceed the storage of its plan."""

    code = "quota_exceeded"


def charge(unit: UnitOfWork, plan: str, size: int, *, retry_if_full: bool = False) -> None:
    """Stage a change of the used storage by ``size`` bytes. A negative size frees storage.

    A unit calls this once, with the sum of all that it stores and removes, because a transaction
    may change a row only once. QuotaExceededError is raised at commit if the bytes do not fit. With
    ``retry_if_full``, for callers that selected what fits, the operation is retried instead.
    """
    if size <= 0:
        files.release_bytes(unit, -size)
        return
    quota = plans.STORAGE_BYTES[plan]
    over = QuotaExceededError(
        f"The workspace's plan includes {quota // plans.MEGABYTE:,} MB for files and pages. "
        f"{size:,} more bytes exceed this limit. Delete files, or upgrade the plan."
    )
    files.reserve_bytes(unit, size, quota=quota, on_conflict=None if retry_if_full else over)

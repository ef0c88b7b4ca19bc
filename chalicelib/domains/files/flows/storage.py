"""The quota of what a workspace stores: its files, thumbnails included, and its pages' HTML."""

from chalicelib.core import plans
from chalicelib.core.errors import ConflictError
from chalicelib.domains.files.store import files
from chalicelib.engine.unit import UnitOfWork


class QuotaExceededError(ConflictError):
    """The workspace's files would take more than its plan allows."""

    code = "quota_exceeded"


def charge(unit: UnitOfWork, plan: str, size: int, *, begin_again: bool = False) -> None:
    """Stage the taking of bytes of the quota, or the return of fewer than none.

    A unit does so once, with all that it stores and removes: DynamoDB takes one change of a row.
    What was made to fit, as images are taken as far as there is room, may ``begin_again``.

    Raises:
        QuotaExceededError: at commit, if they do not fit, unless it begins again.
    """
    quota = plans.STORAGE_BYTES[plan]
    over = QuotaExceededError(
        f"Files and pages of the workspace may take {quota // plans.MEGABYTE:,} MB in all on its "
        f"plan; {size:,} bytes more do not fit. Delete some or upgrade."
    )
    if size > 0:
        files.take(unit, size, quota, on_conflict=None if begin_again else over)
    else:
        files.give_back(unit, -size)

"""Delete whole partitions, whatever rows they have."""

from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import ContentRow, ConversationRow
from chalicelib.engine.unit import UnitOfWork

MAX_ROWS = 50  # in one transaction


def stage_deletions(unit: UnitOfWork, pk: str) -> bool:
    """Stage the deletion of the next rows of a partition of ``content``; return if there are any.

    It is for rows that no other rows depend on.
    """
    rows = list(Partition(pk, Cost()).items(MAX_ROWS, consistent_read=True))
    for row in rows:
        unit.delete(ContentRow(pk, row["sk"]["S"]))
    return bool(rows)


def stage_deletions_of_conversations(unit: UnitOfWork, pk: str) -> bool:
    """Stage the deletion of the next rows of a partition of ``conversations``, as above."""
    rows = ConversationRow.partition(pk, limit=MAX_ROWS)
    for row in rows:
        unit.delete(ConversationRow(pk, row.sk))
    return bool(rows)

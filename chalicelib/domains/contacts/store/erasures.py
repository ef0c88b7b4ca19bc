"""Ids of records whose person was erased.

They are kept for good, so that the import of an older export does not bring the person back. An id
says nothing about the person.
"""

from chalicelib.engine.tables import ContentRow

PARTITION = "ERASED"


class ErasedRow(ContentRow):
    """An erased record. Its sort key is the record's id."""


def row(workspace_id: str, record_id: str) -> ErasedRow:
    """Return the row of an erased record. The caller stages it with the erasure."""
    return ErasedRow(f"W#{workspace_id}#{PARTITION}", record_id)


def ids(workspace_id: str) -> set[str]:
    """Return the ids of a workspace's erased records."""
    return {each.sk for each in ErasedRow.partition(f"W#{workspace_id}#{PARTITION}")}

"""Store ids of records whose data subject was erased, and never remove them."""

from chalicelib.engine.tables import ContentRow

ERASED = "ERASED"


class ErasedRow(ContentRow):
    """An erased record, whose id is the sort key."""


def erased_row(workspace_id: str, *, record_id: str) -> ErasedRow:
    """Return the row of an erased record, for the caller to stage with the erasure."""
    # The import of an older export must not bring back what was erased. An id reveals nothing
    # personal.
    return ErasedRow(f"W#{workspace_id}#{ERASED}", record_id)


def erased_ids(workspace_id: str) -> set[str]:
    """Return the ids of a workspace's erased records."""
    return {row.sk for row in ErasedRow.partition(f"W#{workspace_id}#{ERASED}")}

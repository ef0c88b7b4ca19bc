"""Indexes of bots' knowledge. An index is an object that never changes; its row names it."""

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute
from pynamodb.exceptions import PutError

from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.tables import ContentRow


class IndexRow(ContentRow):
    """The index of a bot. ``key`` is the key of its object, or None if there is nothing to find.

    ``fingerprint`` is a hash of what was indexed.
    """

    version = VersionAttribute()
    key = UnicodeAttribute(null=True)
    fingerprint = UnicodeAttribute()
    passages = NumberAttribute()


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#KNOWLEDGE#INDEX"


def find(workspace_id: str, agent_id: str) -> IndexRow | None:
    """Return the row of a bot's index, or None if it was never built."""
    return IndexRow.find(_partition(workspace_id), agent_id)


def new(workspace_id: str, agent_id: str) -> IndexRow:
    """Return the row of a bot's first index. ``publish`` writes it."""
    return IndexRow(_partition(workspace_id), agent_id)


def publish(row: IndexRow) -> bool:
    """Write the row. Return False if another builder has written it since it was read."""
    try:
        row.save()
    except PutError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return False
    return True

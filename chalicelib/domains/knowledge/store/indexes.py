"""Indexes of bots' knowledge. An index is an object that never changes; its row names it."""

from collections.abc import Collection

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute
from pynamodb.exceptions import PutError

from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import ContentRow


class IndexRow(ContentRow):
    """The index of a bot."""

    version = VersionAttribute()
    key = UnicodeAttribute(null=True)  # of its object, or None if there is nothing to find
    fingerprint = UnicodeAttribute()  # a hash of what was indexed
    passages = NumberAttribute()


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#KNOWLEDGE#INDEX"


def find(workspace_id: str, *, agent_id: str) -> IndexRow | None:
    """Return the row of a bot's index, or None if it was never built."""
    return IndexRow.find(_partition(workspace_id), agent_id)


def read_index_rows(workspace_id: str, agent_ids: Collection[str]) -> dict[str, IndexRow]:
    """Return the rows of some bots' indexes. A bot without one gets a new row, not yet written."""
    place = _partition(workspace_id)
    rows_by_bot = {
        row.sk: row for row in fetch(Key(IndexRow, place, agent_id) for agent_id in agent_ids)
    }
    return {
        agent_id: row
        if isinstance(row := rows_by_bot.get(agent_id), IndexRow)
        else IndexRow(place, agent_id)
        for agent_id in agent_ids
    }


def publish(row: IndexRow) -> bool:
    """Write the row. Return False if another builder has written it since it was read."""
    try:
        row.save()
    except PutError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return False
    return True

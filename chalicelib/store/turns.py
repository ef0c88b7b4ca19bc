"""Turns: changes that must not overlap take the same turn, and of two at once one begins again."""

from pynamodb.attributes import VersionAttribute

from chalicelib.store.reading import Key
from chalicelib.store.tables import ContentRow


class TurnRow(ContentRow):
    """Whose turn it is. Saved by every change that takes it, over the version that was read."""

    version = VersionAttribute()


def turn_key(workspace_id: str, what: str) -> Key:
    """Return the key of a turn, to ``fetch`` it with what the change reads."""
    return Key(TurnRow, f"W#{workspace_id}#TURN", what)


def turn(workspace_id: str, what: str) -> TurnRow:
    """Return the turn of changing something, to be saved with the change.

    Read it before the rest, so that what is read after it cannot be older.
    """
    key = turn_key(workspace_id, what)
    return TurnRow.find(key.pk, key.sk) or TurnRow(key.pk, key.sk)

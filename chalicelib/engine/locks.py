"""Lock rows. Changes that must not overlap save the same row, so one of them starts again."""

from pynamodb.attributes import VersionAttribute

from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ContentRow


class LockRow(ContentRow):
    """Serialises writers: each one saves this row at the version that it read."""

    version = VersionAttribute()


def lock_key(workspace_id: str, what: str) -> Key:
    """Return the key of a lock row, so that ``fetch`` can read it with the other rows."""
    return Key(LockRow, f"W#{workspace_id}#LOCK", what)


def lock_row(workspace_id: str, what: str) -> LockRow:
    """Return the lock row for a kind of change. The change must save it.

    Read it before other rows, so that they cannot be older.
    """
    key = lock_key(workspace_id, what)
    return LockRow.find(key.pk, key.sk) or LockRow(key.pk, key.sk)

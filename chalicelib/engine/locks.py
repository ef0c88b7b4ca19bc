"""Lock rows: changes that must not overlap save the same row; of two at once one begins again."""

from pynamodb.attributes import VersionAttribute

from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ContentRow


class LockRow(ContentRow):
    """Serialises writers: saved by every change that needs it, over the version that was read."""

    version = VersionAttribute()


def lock_key(workspace_id: str, what: str) -> Key:
    """Return the key of a lock row, to ``fetch`` it with what the change reads."""
    return Key(LockRow, f"W#{workspace_id}#LOCK", what)


def lock_row(workspace_id: str, what: str) -> LockRow:
    """Return the lock row of changing something, to be saved with the change.

    Read it before the rest, so that what is read after it cannot be older.
    """
    key = lock_key(workspace_id, what)
    return LockRow.find(key.pk, key.sk) or LockRow(key.pk, key.sk)

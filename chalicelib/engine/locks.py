"""Lock rows, which serialise changes that must not overlap: each saves the same row."""

from pynamodb.attributes import NumberAttribute, VersionAttribute

from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork


class LockRow(ContentRow):
    """Serialises writers, each of which saves this row at the version that it read."""

    version = VersionAttribute()


def lock_key(workspace_id: str, *, what: str) -> Key:
    """Return the key of a lock row, so that ``fetch`` can read it with the other rows."""
    return Key(LockRow, f"W#{workspace_id}#LOCK", what)


def lock_row(workspace_id: str, *, what: str, rows: Rows | None = None) -> LockRow:
    """Return a change's lock row, which is read before other rows and saved by the change."""
    key = lock_key(workspace_id, what=what)
    row = LockRow.find(key.pk, key.sk) if rows is None else rows.find(LockRow, key)
    return row or LockRow(key.pk, key.sk)


class UnreadLockRow(ContentRow):
    """A lock row that is written without reading it, so PynamoDB must not check its version."""

    version = NumberAttribute()


def stage_raise(unit: UnitOfWork, what: str) -> None:
    """Stage a new version of a lock row, for a change that needs no lock but must be noticed."""
    key = lock_key(unit.workspace_id, what=what)
    row = UnreadLockRow(key.pk, key.sk)
    always = UnreadLockRow.pk.exists() | UnreadLockRow.pk.does_not_exist()
    unit.update(row, [UnreadLockRow.version.add(1)], always)

"""Marks of imports in progress, which let an interrupted import continue."""

from typing import Any

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.tables import IdentityRow, JsonAttribute


class ImportRow(IdentityRow):
    """An import in progress; the row is deleted when the import is done.

    ``checksum`` is the file's. ``seed`` determines the new ids of a copy. ``slugs`` maps
    sites' old slugs to new ones. Once ``workspace_created`` is true, only the jobs are missing.
    """

    checksum = UnicodeAttribute()
    exported_at = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    slug = UnicodeAttribute()
    slugs: JsonAttribute = JsonAttribute()
    seed = UnicodeAttribute(null=True)
    workspace_created = BooleanAttribute(attr_name="sealed", default=False)
    begun_at = UTCDateTimeAttribute()


def key(exported_id: str, copied_file: str | None) -> tuple[str, str]:
    """Return the key of an import's mark, from the workspace's id in the export.

    Copies have a separate mark for each file, identified by its checksum.
    """
    return f"IMPORT#{exported_id}", f"new#{copied_file}" if copied_file else "keep"


def find(exported_id: str, copied_file: str | None) -> ImportRow | None:
    """Return the mark of an interrupted import, or None."""
    return ImportRow.find(*key(exported_id, copied_file))


def begin(
    exported_id: str,
    copied_file: str | None,
    **attributes: Any,  # noqa: ANN401  the row's attributes
) -> ImportRow | None:
    """Create the mark of an import, or return None if another run created it concurrently."""
    row = ImportRow(*key(exported_id, copied_file), begun_at=clock.now(), **attributes)
    try:
        row.save(condition=ImportRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return None
        raise_failure(error)
    return row


def end(row: ImportRow) -> None:
    """Delete the mark of a completed import."""
    with reaching():
        row.delete()

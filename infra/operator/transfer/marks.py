"""How far an import has come: what one that was interrupted goes on by."""

from typing import Any

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.tables import IdentityRow, JsonAttribute


class ImportRow(IdentityRow):
    """An import that has begun; it goes when the import is done.

    ``checksum`` is the file's. With ``seed`` new ids are made of old ones, always the same;
    ``slugs`` are the new ones of sites by their old ones. What is ``sealed`` is there, and only
    waits for its jobs.
    """

    checksum = UnicodeAttribute()
    exported_at = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    slug = UnicodeAttribute()
    slugs: JsonAttribute = JsonAttribute()
    seed = UnicodeAttribute(null=True)
    sealed = BooleanAttribute(default=False)
    begun_at = UTCDateTimeAttribute()


def key(exported_id: str, copied_file: str | None) -> tuple[str, str]:
    """Return the key of the mark of an import, by the id that the workspace was exported with.

    Copies have a mark for each file, given by its checksum.
    """
    return f"IMPORT#{exported_id}", f"new#{copied_file}" if copied_file else "keep"


def find(exported_id: str, copied_file: str | None) -> ImportRow | None:
    """Return the mark of an import that was interrupted, or None."""
    return ImportRow.find(*key(exported_id, copied_file))


def begin(
    exported_id: str,
    copied_file: str | None,
    **attributes: Any,  # noqa: ANN401  the row's attributes
) -> ImportRow | None:
    """Return the mark of an import that begins now; None if another began at this moment."""
    row = ImportRow(*key(exported_id, copied_file), begun_at=clock.now(), **attributes)
    try:
        row.save(condition=ImportRow.pk.does_not_exist())
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return None
        raise_failure(error)
    return row


def end(row: ImportRow) -> None:
    """Remove the mark of an import that is done."""
    with reaching():
        row.delete()

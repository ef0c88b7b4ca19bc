"""Store the exports of a workspace, and where a running one continues."""

from datetime import timedelta
from typing import Literal

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import JsonAttribute, Record

ExportState = Literal["running", "ready", "failed"]
RUNNING: ExportState = "running"
READY: ExportState = "ready"
FAILED: ExportState = "failed"
KEPT_FOR = timedelta(days=7)
MAX_KEPT = 100  # more than the daily share allows in the time that exports are kept


class ExportRow(Record):
    """An export. While it runs, it has the place where its next run continues.

    The file is uploaded in parts. What a run has written beyond the last part, and what its parts
    contain, are objects in ``folder``, which ``saves`` numbers.
    """

    state = UnicodeAttribute(default=RUNNING)
    has_money = BooleanAttribute()  # whether it has payments, as only the console's exports
    key_id = UnicodeAttribute(null=True)  # of the key that started it
    key = UnicodeAttribute()  # of the file in the object store
    header: JsonAttribute = JsonAttribute()  # of the manifest
    records = NumberAttribute(default=0)  # written so far
    expected = NumberAttribute(null=True)  # about how many records it will have
    size = NumberAttribute(null=True)  # bytes of the complete file
    missing = NumberAttribute(default=0)  # objects that should exist but do not
    expires_at = UTCDateTimeAttribute()

    upload_id = UnicodeAttribute(null=True)
    step = UnicodeAttribute(null=True)
    after = UnicodeAttribute(null=True)
    saves = NumberAttribute(default=0)
    parts = NumberAttribute(default=0)
    taken = NumberAttribute(default=0)  # bytes in the parts
    counts: JsonAttribute = JsonAttribute(default=dict)  # lines by kind

    @property
    def workspace_id(self) -> str:
        return self.pk.split("#")[1]

    @property
    def folder(self) -> str:
        """The beginning of the keys of everything that an export stores."""
        return f"{self.key.rpartition('/')[0]}/"

    def begin_again(self) -> None:
        """Forget what was written, because its upload is gone."""
        self.upload_id = self.step = self.after = None
        self.saves = self.parts = self.taken = self.records = self.missing = 0
        self.counts = {}


EXPORTS = register_listing(
    Listing(
        row=ExportRow,
        noun="EXPORT",
        not_found_message="The workspace has no export with this id. Start one; its file is kept "
        f"for {KEPT_FOR.days} days.",
        text=lambda export: (export.id,),
        sorts={"createdAt": "id"},
        uncounted=True,
    )
)


def read_latest(workspace_id: str) -> list[ExportRow]:
    """Return the exports of a workspace, newest first. A job deletes them after ``KEPT_FOR``."""
    return EXPORTS.latest(workspace_id, MAX_KEPT)

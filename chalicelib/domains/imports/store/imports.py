"""Store the imports of a workspace, and where a running one continues."""

from datetime import timedelta
from typing import Literal, cast

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.domains.imports.rules.nouns import Noun
from chalicelib.domains.imports.rules.reasons import Form
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import JsonAttribute, Record

ImportState = Literal["running", "finished", "failed"]
RUNNING: ImportState = "running"
FINISHED: ImportState = "finished"
FAILED: ImportState = "failed"
KEPT_FOR = timedelta(days=7)


class ImportRow(Record):
    """An import of a table. Its rows are objects in ``folder``, until they are sent."""

    state = UnicodeAttribute(default=RUNNING)
    kind = UnicodeAttribute()  # products, services or clients
    file_name = UnicodeAttribute()
    file_id = UnicodeAttribute(null=True)  # of a file that is deleted with the last row
    account_id = UnicodeAttribute(null=True)  # of the member who started it
    key_id = UnicodeAttribute(null=True)  # of the key that started it
    rows = NumberAttribute()
    done = NumberAttribute(default=0)  # rows that were sent
    counts: JsonAttribute = JsonAttribute(default=dict)  # rows by outcome
    warned = NumberAttribute(default=0)  # rows of which a value was left out or read differently
    refused_at: ListAttribute[int] = ListAttribute(
        default=list
    )  # starts of ranges with refused rows
    ended_at = UTCDateTimeAttribute(null=True)
    expires_at = UTCDateTimeAttribute()

    @property
    def noun(self) -> Noun:
        return cast("Noun", self.kind)

    @property
    def workspace_id(self) -> str:
        return self.pk.split("#")[1]

    @property
    def folder(self) -> str:
        """The beginning of the keys of everything that an import stores."""
        return f"{self.workspace_id}/imports/{self.id}/"

    def report_key(self, form: Form) -> str:
        """Return the key of the table of refused rows, for a language or for programs."""
        return f"{self.folder}refused.{form}.csv" if form else f"{self.folder}refused.csv"


IMPORTS = register_listing(
    Listing(
        row=ImportRow,
        noun="IMPORT",
        not_found_message="The workspace has no import with this id. Imports are kept for "
        f"{KEPT_FOR.days} days.",
        text=lambda record: (record.id,),
        sorts={"createdAt": "id"},
        uncounted=True,
    )
)

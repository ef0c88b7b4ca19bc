"""Erase records of a file again if the client was erased after the export."""

from dataclasses import dataclass
from typing import Any

from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.client_profiles.operations.erasure import HISTORIES
from chalicelib.domains.clients.store.clients import ClientRow
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.flows.contents import Kind
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.index_entries import SEPARATOR
from chalicelib.engine.reading import Item


@dataclass
class Erased:
    """The ids of erased records, as the import writes them.

    ``count`` is the number of erased records in a file.
    """

    ids: set[str]
    count: int = 0

    def has(self, record: Any) -> bool:  # noqa: ANN401  a record of any noun
        """Whether a record was erased."""
        return isinstance(record, BookingRow | ClientRow | DialogRow | LeadRow) and (
            record.id in self.ids
        )

    def wipe(self, record: Any) -> None:  # noqa: ANN401  as above
        """Remove personal data from an erased record, as the erasure has done."""
        if not self.has(record):
            return
        match record:
            case LeadRow():
                record.data_revision = None
            case BookingRow() if bookings.is_upcoming(record):
                record.status = "cancelled"
        record.erase()

    def clean_row(self, kind: Kind, at: str, item: Item) -> Item | None:
        """Return a row that belongs to a record without the strings of an erased client.

        Returns None for messages and sessions of an erased dialog.
        """
        if kind is contents.MESSAGES and at.removeprefix(kind.at) in self.ids:
            return None
        if kind is contents.SESSIONS and item["dialog_id"]["S"] in self.ids:
            return None
        row, record_id = kind.row, item["sk"]["S"].partition(SEPARATOR)[0]
        if issubclass(row, HistoryRow) and row in HISTORIES.values() and record_id in self.ids:
            erased_names = {attribute.attr_name for attribute in row.erasable().values()}
            return {name: value for name, value in item.items() if name not in erased_names}
        return item

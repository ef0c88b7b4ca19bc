"""A record that another process saves while a job deletes it."""

from typing import Any

from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.unit import run_unit
from chalicelib.gateways.object_store import object_store


class SavedMeanwhile:
    """The object store, which saves a record once before it deletes the record's objects."""

    def __init__(self, listing: Listing[Any], workspace_id: str, record_id: str) -> None:
        self.has_saved = False
        self._listing, self._place = listing, (workspace_id, record_id)

    def delete_under(self, folder: str) -> None:
        if not self.has_saved:
            self.has_saved = True
            workspace_id, record_id = self._place
            record = self._listing.require(workspace_id, record_id=record_id)
            run_unit(workspace_id, None, lambda unit: unit.save(record))
        object_store().delete_under(folder)

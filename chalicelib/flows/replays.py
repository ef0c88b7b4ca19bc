"""The end of large results that were kept for replay as objects."""

from chalicelib.core.schedule import Due, due_work
from chalicelib.gateways.object_store import object_store
from chalicelib.store.idempotency import LAPSED


@due_work(LAPSED)
def remove_result(work: Due) -> None:
    """Remove the object of a result that cannot be replayed any more."""
    object_store().delete(work.payload["key"])

"""The end of large results that were kept for replay as objects."""

from chalicelib.core.jobs import Job, job_handler
from chalicelib.gateways.object_store import object_store
from chalicelib.store.idempotency import LAPSED


@job_handler(LAPSED)
def remove_result(job: Job) -> None:
    """Remove the object of a result that cannot be replayed any more."""
    object_store().delete(job.payload["key"])

"""Read once a day what was refunded or disputed at the provider, because notifications get lost."""

import logging
from datetime import timedelta

from chalicelib.core import clock
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.rules.job_kinds import READ_RETURNS
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.merchants import RETURNS_READ_AFTER
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways.payments import ProviderError, UnknownOutcomeError

# Time before the last list that the next one reads again, because clocks differ.
OVERLAP = timedelta(hours=1)

log = logging.getLogger(__name__)


@job_handler(READ_RETURNS)
def read_returns(job: Job) -> None:
    """Make the jobs due of payments that were returned since the last list, once a day."""
    workspace_id, merchant_id = job.workspace_id, job.payload["merchantId"]
    merchant = merchants.find(workspace_id, merchant_id=merchant_id)
    if merchant is None or merchant.secret_removed_at is not None:
        return
    now = clock.now()
    since = (merchant.returns_read_at or now - RETURNS_READ_AFTER) - OVERLAP
    try:
        ids = accounts.provider_of(workspace_id, merchant).list_returned(since)
    except (ProviderError, UnknownOutcomeError) as error:
        log.warning("returned payments were not read", extra={"cause": repr(error)})
        raise Postponed(now + RETURNS_READ_AFTER) from None
    for provider_id in sorted(ids):
        if (
            known := payments.find_by_provider_id(merchant_id, provider_id=provider_id)
        ) is not None:
            payment = payments.require(known.workspace_id, payment_id=known.payment_id)
            jobs.schedule(payments.payment_job(known.workspace_id, payment, now))

    def stage(unit: UnitOfWork) -> None:
        row = merchants.find(workspace_id, merchant_id=merchant_id)
        if row is not None:
            merchants.stage_returns_read(unit, row, now)

    # Before the next job is written: a crash in between reads the same list again.
    run_job_unit(job, stage)
    raise Postponed(now + RETURNS_READ_AFTER)

"""The job that claims an account's e-mail address under its current key (ADR 69)."""

from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork, run_unit

CLAIM_EMAIL = "claim-email"


def job(account_id: str) -> JobRow:
    """Return the job for an account."""
    return jobs.row(CLAIM_EMAIL, PLATFORM, {"accountId": account_id}, job_id=account_id)


@job_handler(CLAIM_EMAIL)
def claim_email(task: Job) -> None:
    """Claim an address under its current key, unless it is claimed."""

    def stage(unit: UnitOfWork) -> None:
        claim = accounts.unclaimed_email(accounts.get(task.payload["accountId"]))
        if claim is not None:
            unit.create(claim)

    run_unit(PLATFORM, None, stage)

"""Prove e-mail addresses of accounts by a link, and claim them under the current key."""

import hmac

from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.principals import PLATFORM
from chalicelib.core.settings import settings
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.master_key import derived_token
from chalicelib.lib import emails

CLAIM_EMAIL = JobKind("claim-email")


def claim_job(account_id: str) -> JobRow:
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


PROOF_PAGE = "/console/account/proof/{token}"


def proof_page_url(account: AccountRow) -> str:
    """Return the URL of the page on which an account proves its address.

    Raises:
        NotConfiguredError: the master key is missing.
        UnavailableError: the master key cannot be read.
    """
    return settings().public_url + PROOF_PAGE.format(token=_token(account))


def is_genuine(token: str, account: AccountRow) -> bool:
    """Whether a token was mailed to an account."""
    # The comparison takes constant time, so that a token cannot be guessed byte by byte.
    return hmac.compare_digest(_token(account).encode(), token.encode())


def _token(account: AccountRow) -> str:
    # The token contains the address, so a change of the address makes it useless.
    return derived_token(f"proof:{account.id}:{emails.key(account.email)}")

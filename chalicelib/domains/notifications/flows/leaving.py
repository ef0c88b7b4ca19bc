"""Removes what a former member has in a workspace: the Telegram chat and the choices."""

from datetime import datetime

from chalicelib.core.jobs import MEMBERSHIP_ENDED, Job, job_handler
from chalicelib.domains.notifications.flows import choosing, telegram_chats


@job_handler(MEMBERSHIP_ENDED)
def remove_member(job: Job) -> None:
    """Remove the chat and the choices of a former member. It may run more than once.

    Raises:
        UnavailableError: the database is unavailable.
    """
    account_id, ended_at = job.payload["accountId"], job.payload["endedAt"]
    telegram_chats.end_link(job.workspace_id, account_id, datetime.fromisoformat(ended_at))
    choosing.remove(job.workspace_id, account_id)

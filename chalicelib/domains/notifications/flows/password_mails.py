"""Mails links for new passwords, and tells owners of accounts of new passwords."""

from datetime import datetime
from typing import cast

from chalicelib.core.jobs import MAIL_PASSWORD_RESET, MAIL_PASSWORD_SET, Job, job_handler
from chalicelib.core.settings import settings
from chalicelib.domains.identity.flows import password_resets
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.notifications.flows import mail_gate
from chalicelib.domains.notifications.rules.messages import TEMPLATES
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail
from chalicelib.lib import localized
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails


@job_handler(MAIL_PASSWORD_RESET)
def mail_password_reset(job: Job) -> None:
    """Mail a link for a new password if a proved account has the requested address.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    reset_id = job.payload["resetId"]
    token = password_resets.token(reset_id)
    found = password_resets.working(token)
    if found is None or not mail.is_on():
        return
    row, account = found
    language = cast("Language", account.language or row.language)
    url = password_resets.page_url(token)
    message = _mail(f"password-reset-{reset_id}", "password_reset", account, language, url)
    mail_gate.deliver(message, "account", row.expires_at, account=account)


@job_handler(MAIL_PASSWORD_SET)
def mail_password_set(job: Job) -> None:
    """Tell the owner of an account that its password was changed.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    account = accounts.get(job.payload["accountId"])
    if account.disabled_at is not None or not mail.is_on():
        return
    homes = [workspace.country for workspace, _ in workspaces.of_account(account.id)]
    language = account.language or localized.language_of_country(homes[0] if homes else "")
    url = settings().public_url + password_resets.REQUEST_PAGE
    mail_id = f"password-set-{job.job_id}"
    message = _mail(mail_id, "password_set", account, cast("Language", language), url)
    until = datetime.fromisoformat(job.payload["setAt"]) + mail_gate.LONGEST_WAIT
    mail_gate.deliver(message, "account", until, account=account)


def _mail(mail_id: str, kind: str, account: AccountRow, language: Language, url: str) -> Mail:
    shown = mails.render(TEMPLATES, kind, language, email=account.email, page_url=url)
    return Mail(
        id=mail_id,
        recipient=account.email,
        content=shown,
    )

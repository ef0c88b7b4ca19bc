"""Send e-mails about an account: links that prove its address or set a password, and a notice."""

from datetime import datetime
from typing import cast

from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.core.principals import PLATFORM
from chalicelib.core.settings import settings
from chalicelib.domains.identity.flows import emails, reset_links, sign_up_links
from chalicelib.domains.identity.rules.job_kinds import (
    MAIL_CONFIRMED,
    MAIL_PASSWORD_RESET,
    MAIL_PASSWORD_SET,
    MAIL_PROOF,
    MAIL_SIGN_UP,
    MAIL_STANDING,
    MAIL_TEST_IDLE,
)
from chalicelib.domains.identity.store import accounts, sign_ups, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Verdict
from chalicelib.domains.notifications.rules import messages
from chalicelib.domains.notifications.rules.messages import TEMPLATES
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail
from chalicelib.lib import localized
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails


@job_handler(MAIL_PASSWORD_RESET)
def mail_password_reset(job: Job) -> None:
    """Mail a link for a new password if a proved account has the requested address."""
    reset_id = job.payload["resetId"]
    # The token is computed here, because the database has only its hash.
    token = reset_links.token(reset_id)
    reset = reset_links.working(token)
    if reset is None or not mail.is_on():
        return
    row, account = reset
    language = cast("Language", account.mail_language or row.language)
    url = reset_links.page_url(token)
    message = _password_mail(
        f"password-reset-{reset_id}",
        kind="password_reset",
        account=account,
        language=language,
        url=url,
    )
    mail_gate.deliver(message, "account", row.expires_at, account=account)


@job_handler(MAIL_SIGN_UP)
def mail_sign_up(job: Job) -> None:
    """Mail the link that makes an account, or to an address with an account where to sign in."""
    sign_up_id = job.payload["signUpId"]
    token = sign_up_links.token(sign_up_id)
    row = sign_ups.find(token)
    if row is None or row.used_at is not None or not sign_up_links.is_open():
        return
    account = accounts.find_by_email(row.email)
    if account is not None and account.disabled_at is not None:
        return
    # An account that nobody has proved goes to whoever reads the e-mail of its address.
    is_known = account is not None and account.is_proved
    kind = "sign_up_known" if is_known else "sign_up"
    page_url = sign_up_links.page_url(token)
    if is_known:
        page_url = settings().public_url + sign_up_links.SIGN_IN_PAGE
    language = cast("Language", (is_known and account and account.mail_language) or row.language)
    content = mails.render(TEMPLATES, kind, language, email=row.email, page_url=page_url)
    message = Mail(
        id=f"sign-up-{sign_up_id}", recipient=row.email, content=content, origin=PLATFORM
    )
    mail_gate.deliver(message, "account", row.expires_at)


@job_handler(MAIL_PASSWORD_SET)
def mail_password_set(job: Job) -> None:
    """Tell the owner of an account that its password was changed."""
    account = accounts.get(job.payload["accountId"])
    if account.disabled_at is not None or not mail.is_on():
        return
    url = settings().public_url + reset_links.REQUEST_PAGE
    mail_id = f"password-set-{job.job_id}"
    message = _password_mail(
        mail_id, kind="password_set", account=account, language=_language_of(account), url=url
    )
    until = datetime.fromisoformat(job.payload["setAt"]) + mail_gate.LONGEST_WAIT
    mail_gate.deliver(message, "account", until, account=account)


@job_handler(MAIL_CONFIRMED)
def mail_confirmed(job: Job) -> None:
    """Tell the owner of an account what was done with a code or the password."""
    account = accounts.get(job.payload["accountId"])
    if account.disabled_at is not None or not mail.is_on():
        return
    language, workspace_id = _language_of(account), job.payload["workspaceId"]
    workspace = workspaces.get(workspace_id).name if workspace_id != PLATFORM else ""
    content = mails.render(
        TEMPLATES,
        "confirmed",
        language,
        title=messages.confirmed_title(language, job.payload["operation"]),
        email=account.email,
        workspace=messages.mailed_name(workspace),
        page_url=settings().public_url + reset_links.REQUEST_PAGE,
    )
    message = Mail(
        id=f"confirmed-{job.job_id}",
        recipient=account.email,
        content=content,
        origin=workspace_id,
    )
    until = datetime.fromisoformat(job.payload["at"]) + mail_gate.LONGEST_WAIT
    mail_gate.deliver(message, "confirmed", until, account=account)


@job_handler(MAIL_TEST_IDLE)
def mail_test_idle(job: Job) -> None:
    """Tell the owner of a test workspace that it is emptied soon."""
    workspace = workspaces.get(job.workspace_id)
    account = accounts.get(workspace.owner_id)
    if account.disabled_at is not None or not mail.is_on():
        return
    content = mails.render(
        TEMPLATES,
        "test_idle",
        _language_of(account),
        workspace=messages.mailed_name(workspace.name),
        page_url=f"{settings().public_url}/console/w/{workspace.slug}",
    )
    message = Mail(
        id=f"test-idle-{job.job_id}",
        recipient=account.email,
        content=content,
        origin=PLATFORM,  # The service tells the owner. Nothing in the workspace causes it.
    )
    until = datetime.fromisoformat(job.payload["at"]) + mail_gate.LONGEST_WAIT
    mail_gate.deliver(message, "account", until, account=account)


def _language_of(account: AccountRow) -> Language:
    homes = [workspace.country for workspace, _ in workspaces.read_by_account(account.id)]
    language = account.mail_language or localized.language_of_country(homes[0] if homes else "")
    return cast("Language", language)


def _password_mail(
    mail_id: str, *, kind: str, account: AccountRow, language: Language, url: str
) -> Mail:
    message = mails.render(TEMPLATES, kind, language, email=account.email, page_url=url)
    return Mail(
        id=mail_id,
        recipient=account.email,
        content=message,
        origin=PLATFORM,
    )


@job_handler(MAIL_PROOF)
def mail_proof(job: Job) -> None:
    """Mail the link to an account that has not proved its address, once."""
    # Until then, this link is the one e-mail that the account gets. It contains nothing that a user
    # wrote, because whoever made the account may have typed the address of another.
    account = accounts.get(job.payload["accountId"])
    if account.is_proved or account.disabled_at or account.proof_mailed_at or not mail.is_on():
        return
    language = cast("Language", account.mail_language or "en")
    page_url = emails.proof_page_url(account)
    content = mails.render(TEMPLATES, "proof", language, email=account.email, page_url=page_url)
    message = Mail(
        id=f"proof-{account.id}",
        recipient=account.email,
        content=content,
        origin=PLATFORM,  # The account needs it, whichever workspace has made the account.
        workspace_id=job.workspace_id if job.workspace_id != PLATFORM else None,
    )
    until = datetime.fromisoformat(job.payload["at"]) + mail_gate.LONGEST_WAIT

    def note(verdict: Verdict) -> None:
        if verdict.state == "sent":
            # An e-mail that was withheld may be sent later.
            accounts.note_proof_mailed(account)

    mail_gate.deliver(message, "account", until, note=note)


@job_handler(MAIL_STANDING)
def mail_standing(job: Job) -> None:
    """Tell each member of a workspace that it is suspended, closed or open again."""
    if not mail.is_on():
        return
    workspace = workspaces.get(job.workspace_id)
    until = datetime.fromisoformat(job.payload["at"]) + mail_gate.LONGEST_WAIT
    postponed: Postponed | None = None
    for account, _ in workspaces.members(workspace.id):
        if account.disabled_at is not None:
            continue
        language = _language_of(account)
        content = mails.render(
            TEMPLATES,
            "standing",
            language,
            standing=job.payload["standing"],
            workspace=messages.mailed_name(workspace.name),
            page_url=f"{settings().public_url}/console/w/{workspace.slug}",
        )
        message = Mail(
            id=f"standing-{job.job_id}-{account.id}",
            recipient=account.email,
            content=content,
            origin=PLATFORM,  # The service tells the members.
        )
        try:
            mail_gate.deliver(message, "account", until, account=account)
        except Postponed as error:  # The others do not wait. Each gets the e-mail once.
            postponed = error
    if postponed is not None:
        raise postponed

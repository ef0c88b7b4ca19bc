"""Mails the link by which an account proves its address.

It is the one mail that an account gets before. It has no text of a person, because whoever made the
account may have typed the address of another.
"""

from datetime import datetime
from typing import cast

from chalicelib.core.jobs import MAIL_PROOF, Job, job_handler
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.identity.flows import email_proofs
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.notifications.flows import mail_gate
from chalicelib.domains.notifications.flows.mail_gate import Verdict
from chalicelib.domains.notifications.rules.messages import TEMPLATES
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails


@job_handler(MAIL_PROOF)
def mail_proof(job: Job) -> None:
    """Mail the link to an account that has not proved its address, once.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    account = accounts.get(job.payload["accountId"])
    if account.is_proved or account.disabled_at or account.proof_mailed_at or not mail.is_on():
        return
    language = cast("Language", account.language or "en")
    page_url = email_proofs.page_url(account)
    shown = mails.render(TEMPLATES, "proof", language, email=account.email, page_url=page_url)
    message = Mail(
        id=f"proof-{account.id}",
        recipient=account.email,
        content=shown,
        workspace_id=job.workspace_id if job.workspace_id != PLATFORM else None,
    )
    until = datetime.fromisoformat(job.payload["at"]) + mail_gate.LONGEST_WAIT

    def note(verdict: Verdict) -> None:
        if verdict.state == "sent":
            accounts.note_proof_mailed(account)

    mail_gate.deliver(message, "account", until, note=note)

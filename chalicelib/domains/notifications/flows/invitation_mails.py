"""Mails invitations to a workspace.

The mail is made from the live invitation, so one that was used or revoked meanwhile is not sent.
It counts for its address like a mail to a client: anyone with a workspace can type any address.
"""

import logging
from datetime import timedelta
from typing import cast
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.jobs import MAIL_INVITATION, Job, job_handler
from chalicelib.core.text import one_line
from chalicelib.domains.identity.flows import invitations
from chalicelib.domains.identity.flows.invitations import OpenInvitation
from chalicelib.domains.identity.store import invitations as rows
from chalicelib.domains.notifications.flows import suppressions
from chalicelib.domains.notifications.flows.client_mails import MAILS_TO_ADDRESS, address_hash
from chalicelib.domains.notifications.rules.messages import MAX_TITLE, TEMPLATES
from chalicelib.domains.notifications.store import client_mails
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail, MailRefusedError
from chalicelib.lib import localized
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails

LONGEST_DELAY = timedelta(days=1)
"""A mail that could not be sent for this long is given up."""

log = logging.getLogger(__name__)


@job_handler(MAIL_INVITATION)
def mail_invitation(job: Job) -> None:
    """Mail an invitation, unless it was sent before, no longer works, or its address gets no mail.

    Raises:
        MailDelayedError: the mail may be sent later.
        UnavailableError: the database is unavailable.
    """
    invitation_id = job.payload["invitationId"]
    found = invitations.working(rows.by_id(job.workspace_id, invitation_id))
    if found is None or not mail.is_on():
        return
    if clock.now() - found.row.created_at > LONGEST_DELAY:
        log.warning("an invitation was not mailed", extra={"invitationId": invitation_id})
        return
    mail_id = f"invitation-{invitation_id}"
    if not _admit(found, mail_id):
        return
    try:
        mail.send(_mail(found, mail_id))
    except MailRefusedError:
        log.warning("an invitation was refused", extra={"invitationId": invitation_id})
    client_mails.note_sent(job.workspace_id, mail_id)


def _admit(invitation: OpenInvitation, mail_id: str) -> bool:
    """Count a mail and return whether it may be sent. A repeated call counts nothing."""
    workspace_id, address = invitation.workspace.id, invitation.row.email
    state = client_mails.state(workspace_id, mail_id)
    if state is not None:
        return state == "admitted"
    if not mail.takes(address):
        log.info("an invitation is withheld: unsupported", extra={"mail": mail_id})
        return False
    if suppressions.is_suppressed(address) or suppressions.is_paused(workspace_id):
        return False

    def stage(unit: UnitOfWork) -> None:
        client_mails.stage_admission(unit, mail_id)
        limits.stage(unit, MAILS_TO_ADDRESS, address_hash(address))

    try:
        run_unit(workspace_id, None, stage)
    except RateLimitedError:
        log.info(
            "an invitation is not mailed", extra={"invitationId": invitation.row.invitation_id}
        )
        return False
    return True


def _mail(invitation: OpenInvitation, mail_id: str) -> Mail:
    row, workspace, inviter = invitation.row, invitation.workspace, invitation.inviter
    chosen = inviter.language or localized.language_of_country(workspace.country)
    language = cast("Language", chosen)
    local = row.expires_at.astimezone(ZoneInfo(workspace.timezone))
    shown = mails.render(
        TEMPLATES,
        "invitation",
        language,
        workspace=one_line(workspace.name, MAX_TITLE),
        inviter=one_line(inviter.name, MAX_TITLE),
        until=f"{localized.weekday_and_time(language, local)} ({workspace.timezone})",
        page_url=invitations.page_url(invitations.token(row.invitation_id)),
    )
    return Mail(
        id=mail_id,
        recipient=row.email,
        subject=shown.subject,
        text=shown.text,
        html=shown.html,
        sender_name=workspace.name,
        workspace_id=workspace.id,
    )

"""Send invitations to a workspace."""

from typing import cast
from zoneinfo import ZoneInfo

from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.identity.flows import invitation_links
from chalicelib.domains.identity.flows.invitation_links import OpenInvitation
from chalicelib.domains.identity.rules.job_kinds import MAIL_INVITATION
from chalicelib.domains.identity.store import invitations as rows
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.notifications.rules.messages import TEMPLATES, mailed_name
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail
from chalicelib.lib import localized
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails


@job_handler(MAIL_INVITATION)
def mail_invitation(job: Job) -> None:
    """Send an invitation by e-mail, if it still works and was not sent, and the gate admits it."""
    invitation_id = job.payload["invitationId"]
    # The e-mail is made from the live invitation, so one that was used or revoked in the meantime
    # is not sent.
    invitation = invitation_links.working(
        rows.find_by_id(job.workspace_id, invitation_id=invitation_id)
    )
    if invitation is None or not mail.is_on():
        return
    until = invitation.row.created_at + mail_gate.LONGEST_WAIT
    mail_gate.deliver(
        _invitation_mail(invitation, f"invitation-{invitation_id}"),
        "account",
        until,
        note=lambda verdict: rows.note_mail(invitation.row, verdict.state, verdict.reason),
    )


def _invitation_mail(invitation: OpenInvitation, mail_id: str) -> Mail:
    row, workspace, inviter = invitation.row, invitation.workspace, invitation.inviter
    language_code = inviter.mail_language or localized.language_of_country(workspace.country)
    language = cast("Language", language_code)
    local = row.expires_at.astimezone(ZoneInfo(workspace.timezone))
    message = mails.render(
        TEMPLATES,
        "invitation",
        language,
        # The name of a workspace is a user's text, which mail programs could turn into a link.
        workspace=mailed_name(workspace.name),
        inviter=mailed_name(inviter.name),
        until=f"{localized.weekday_and_time(language, local)} ({workspace.timezone})",
        page_url=invitation_links.page_url(invitation_links.mailed_token(row.invitation_id)),
    )
    return Mail(
        id=mail_id,
        recipient=row.email,
        content=message,
        sender_name=workspace.name,
        origin=workspace.id,
        workspace_id=workspace.id,
        is_secret=True,
    )

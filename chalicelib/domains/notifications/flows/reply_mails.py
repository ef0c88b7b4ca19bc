"""Mail the replies of members to visitors who have left an address in the chat."""

from datetime import datetime

from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.chat.flows import reply_addresses
from chalicelib.domains.chat.rules.job_kinds import MAIL_REPLY
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.notifications.flows import mail_brands
from chalicelib.domains.notifications.rules.messages import TEMPLATES, mailed_name
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail
from chalicelib.lib import localized
from chalicelib.lib.markup import mails


@job_handler(MAIL_REPLY)
def mail_reply(job: Job) -> None:
    """Send a reply by e-mail, unless the visitor has left no address or was erased."""
    dialog = DIALOGS.find(job.workspace_id, record_id=job.payload["dialogId"])
    replies = (dialog and dialog.replies) or []
    reply = next((row for row in replies if row["id"] == job.payload["replyId"]), None)
    if dialog is None or reply is None or not mail.is_on():
        return
    lead = LEADS.find(job.workspace_id, record_id=dialog.lead_id) if dialog.lead_id else None
    address = reply_addresses.address_of(dialog, lead)
    if address is None:
        return
    workspace, brand = mail_brands.read(job.workspace_id)
    # The e-mail has nothing that the visitor wrote, because anyone can enter any address in a chat.
    content = mails.render(
        TEMPLATES,
        "reply",
        localized.language_of_message(reply["text"]),
        brand=brand,
        author=mailed_name(reply["author"]),
        lines=reply["text"].splitlines(),
    )
    message = Mail(
        id=f"reply-{job.payload['replyId']}",
        recipient=address,
        content=content,
        sender_name=workspace.name,
        origin=workspace.id,
        workspace_id=workspace.id,
    )
    until = datetime.fromisoformat(job.payload["at"]) + mail_gate.LONGEST_WAIT
    mail_gate.deliver(message, "business", until)

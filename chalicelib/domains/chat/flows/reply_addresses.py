"""Find the address to which a reply in a chat is mailed."""

from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.lib import emails


def address_of(dialog: DialogRow, lead: LeadRow | None) -> str | None:
    """Return the address of the dialog's lead, or else the first one that the visitor wrote."""
    contacts = [lead.email if lead else None, *(dialog.named_contacts or ())]
    addresses = (emails.find_email(contact or "") for contact in contacts)
    return next(filter(None, addresses), None)

"""Create leads from chats in which a visitor leaves an e-mail address or a phone number."""

from collections.abc import Sequence
from datetime import datetime

from chalicelib.core import clock
from chalicelib.domains.bots.rules.channels import TEST_CHANNEL
from chalicelib.domains.chat.flows.chat_request import ChatContact, ChatRequest
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.clients.flows import contacts, matching
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.store import contact_lookups
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.flows import lead_quota
from chalicelib.domains.leads.store import crm_metrics, leads
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails, phones, sources

LEAD_SOURCE = "chat"  # in statistics
_CONSENT = "consent"  # name of the consent among the values of a lead


def find_contact(request: ChatRequest, country: str, *, channel: str) -> Contact | None:
    """Return the contact details in the widget's form, else those in the message, or None."""
    if channel == TEST_CHANNEL:
        # The channel ``test`` creates no leads.
        return None
    form, text = request.contact or ChatContact(), request.message
    email = form.email or emails.first_email_in(text)
    find = phones.find_phone if form.phone else phones.first_phone_in
    phone = find(form.phone or text, country=country)
    return Contact(form.name, email, phone, form.phone) if email or phone or form.phone else None


def consent_in(request: ChatRequest) -> str | None:
    """Return the text to which the visitor has agreed in the widget's form, or None."""
    return request.contact.consent if request.contact else None


def contacts_in(request: ChatRequest, country: str) -> list[str]:
    """Return every e-mail address and phone number in a message and in its form."""
    form = request.contact or ChatContact()
    phone = phones.find_phone(form.phone, country=country) if form.phone else None
    contact = Contact(None, form.email, phone)
    return [
        *filter(None, contact.identity.values()),
        *contacts.contacts_in([request.message], country),
    ]


def stage_lead(  # noqa: PLR0913, PLR0917  the fields of a lead
    unit: UnitOfWork,
    workspace: WorkspaceRow,
    dialog: DialogRow,
    contact: Contact,
    text: str,
    at: datetime,
    subjects: Sequence[str],
    consent: str | None,
) -> bool:
    """Stage the lead of a dialog, and return whether it is new. The caller stages the dialog.

    A lead over the plan's quota, or over the share of the visitor of ``subjects``, is stored and
    marked. ``consent`` is the text to which the visitor has agreed with the contact.
    """
    consents = {_CONSENT: leads.consent(consent, at)} if consent else {}
    if dialog.lead_id is not None:
        _fill(unit, dialog.lead_id, contact, consents)
        return False
    match = matching.match(workspace.id, contact)
    if match is not None:
        match.count(unit, at, leads=1)
    lead = LEADS.new(
        workspace.id,
        status="new",
        dialog_id=dialog.id,
        client_id=match.client.id if match else None,
        **contact._asdict(),
        source=sources.source_of(dialog.page_url, referrer=None, campaign={})
        | {"name": LEAD_SOURCE},
        source_name=LEAD_SOURCE,
        named_contacts=contact_lookups.merge_contacts(
            None, contacts.contacts_in([text], workspace.country), besides=contact.identity.values()
        ),
        day=clock.local_day(at, workspace.timezone).isoformat(),
        over_quota=lead_quota.count_in_chat(unit, workspace, subjects)
        or lead_quota.is_over_quota(unit, workspace)
        or None,
    )
    leads.set_data(unit, lead, {"message": text} | consents)
    unit.create(lead)
    crm_metrics.count_created(unit, [(lead, match is not None and match.is_new)])
    dialog.lead_id = lead.id
    dialog.client_id = match.client.id if match and match.is_new else None
    return True


def _fill(
    unit: UnitOfWork, lead_id: str, contact: Contact, consents: dict[str, dict[str, str]]
) -> None:
    lead = leads.find(unit.workspace_id, lead_id=lead_id)
    if lead is None:
        return
    if lead.phone:
        contact = contact._replace(phone_entered=None)
    elif contact.phone:
        lead.phone_entered = None
    missing = {
        name: value
        for name, value in contact._asdict().items()
        if value and not getattr(lead, name)
    }
    if consents.keys() <= lead.whole_data.keys():
        consents = {}
    if not (missing or consents):
        return
    if consents:
        leads.set_data(unit, lead, lead.whole_data | consents)
    for name, value in missing.items():
        setattr(lead, name, value)
    unit.save(lead)

"""Change the status, contacts, data (a JSON merge patch, RFC 7396), notes and tags of leads."""

from typing import Any

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.application.descriptions import cut_error, require_whole
from chalicelib.core import clock, deadline
from chalicelib.core.errors import (
    ExternalIdTakenError,
    FieldError,
    PayloadTooLargeError,
    ValidationError,
    VersionConflictError,
)
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    EXTERNAL_ID,
    METADATA,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.schema import IF_VERSION, IfVersion, Patch, optional, wire_name
from chalicelib.domains.clients.flows import contacts, matching
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.flows.phone_warning import warn_of_phone
from chalicelib.domains.clients.store import clients, contact_lookups
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.operations.leads import MAX_LISTED_NOTES, LeadOut, LeadRef, LeadResult
from chalicelib.domains.leads.rules import form_fields
from chalicelib.domains.leads.rules.form_fields import CART, FieldSpec, Place
from chalicelib.domains.leads.store import crm_metrics, leads
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.domains.leads.store.leads import LEADS, LeadRow, LeadStatus
from chalicelib.lib import phones
from chalicelib.lib.contact_fields import Email, Notes, PersonName, PhoneText, Tags
from chalicelib.lib.shortening import size_of, truncated_fields


def merge(target: Any, *, patch: Any) -> Any:  # noqa: ANN401  JSON
    """Return the target with a patch: null removes, an object is merged, other values are set."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), patch=value)
    return merged


MAX_DATA_BYTES = 32 * 1024  # Size limit of a lead's data, as JSON.


class LeadStatusSet(LeadRef):
    """New status of a lead."""

    status: LeadStatus = Field(description="New status.")


class LeadPatch(Patch, LeadRef):
    """Changes to a lead."""

    name: PersonName | None = optional("Name.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("In any format.")
    notes: Notes | None = optional("Notes.")
    tags: Tags = optional("Replaces all.")
    data: dict[str, Any] = optional("Merge patch: null removes a value; items cannot be changed.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA
    if_version: IfVersion = IF_VERSION


@operation(
    tool=True,
    rest="POST /api/forms/collection-status",
    scope=Scope.CRM_WRITE,
    title="Set a lead's status",
    idempotent=True,
    example={"id": "LEAD_ID", "status": "in_progress"},
    role=Role.MEMBER,
)
def set_lead_status(ctx: Context, args: LeadStatusSet) -> LeadResult:
    """Set the status of a lead. Its history records the change and its author."""
    lead = LEADS.found(leads.find(ctx.workspace_id, lead_id=args.id))
    old_status = lead.status
    if args.status != old_status:
        lead.status = args.status
        ctx.unit.save(lead)
        crm_metrics.count_status(ctx.unit, lead, old_status)
        by = ctx.principal.audit_actor
        leads.record_event(ctx.unit, lead, by, status_before=old_status, status_after=lead.status)
    return LeadResult(lead=LeadOut.from_record(lead))


@operation(
    tool=True,
    rest="POST /api/forms/collection-update",
    scope=Scope.CRM_WRITE,
    idempotent=True,
    example={"id": "LEAD_ID", "notes": "Call back", "data": {"message": "By Friday"}},
    errors=(ExternalIdTakenError, VersionConflictError),
    role=Role.MEMBER,
)
def update_lead(ctx: Context, args: LeadPatch) -> LeadResult:
    """Change a lead; omitted fields stay unchanged.

    New contacts link it to the client who has them, or to a new one. Status: svc_set_lead_status.
    """
    with deadline.side_by_side() as start:
        workspace_task = start(lambda: workspaces.get(ctx.workspace_id))
        lead = LEADS.found(leads.find(ctx.workspace_id, lead_id=args.id))
        workspace = workspace_task.result()
    lead.require_version(args.if_version)
    changes, changed_fields = args.changes, []
    merge_metadata(changes, lead.metadata)
    former = contact = Contact(lead.name, lead.email, lead.phone, lead.phone_entered)
    require_whole(
        changes.get("notes"), stored_text=lead.notes, field="notes", length=MAX_LISTED_NOTES
    )
    if "data" in changes:
        fields, data = _patch_data(ctx, lead, changes.pop("data"), workspace)
        if data != lead.whole_data:
            changed_fields.append("data")
            contact = _updated_contact(
                contact, fields, lead.whole_data, new_data=data, country=workspace.country
            )
            leads.set_data(ctx.unit, lead, data)
    if "phone" in changes and changes["phone"] != lead.phone:
        entered = changes["phone_entered"] = changes["phone"]
        changes["phone"] = entered and phones.find_phone(entered, country=workspace.country)
    contact = contact._replace(**{n: changes.pop(n) for n in Contact._fields if n in changes})
    warn_of_phone(ctx, contact)
    for name, value in {**contact._asdict(), **changes}.items():
        if getattr(lead, name) != value:
            changed_fields.append(name)
            setattr(lead, name, value)
    if not changed_fields:
        return LeadResult(lead=LeadOut.from_record(lead))
    if contact.identity != former.identity:
        _assign_client(ctx, lead, contact, former=former, workspace=workspace)
    texts = leads.texts_in({k: v for k, v in lead.whole_data.items() if k != CART})
    lead.named_contacts = contact_lookups.merge_contacts(
        lead.named_contacts,
        [*former.identity.values(), *contacts.contacts_in(texts, workspace.country)],
        besides=contact.identity.values(),
    )
    ctx.unit.save(lead)
    names = [
        wire_name(LeadPatch, name) for name in changed_fields if name in LeadPatch.model_fields
    ]
    leads.record_event(ctx.unit, lead, ctx.principal.audit_actor, fields=names)
    return LeadResult(lead=LeadOut.from_record(lead))


def _patch_data(
    ctx: Context, lead: LeadRow, patch: dict[str, Any], workspace: WorkspaceRow
) -> tuple[tuple[FieldSpec, ...], dict[str, Any]]:
    if CART in patch:
        raise ValidationError.of(
            "data.items",
            message="the products of an order cannot be changed; omit this field",
            key="fixed",
        )
    if shortened := truncated_fields(patch, stored_fields=lead.whole_data):
        path = f"data.{shortened[0]}"
        raise cut_error(path)
    form = FORMS.find(ctx.workspace_id, record_id=lead.form_id) if lead.form_id else None
    fields = form.specs if form else ()
    place = Place(workspace.country, workspace.timezone)
    declared = [field for field in fields if field.name in patch]
    cleaned, errors = form_fields.validate(declared, patch, "en", place)
    for field in declared:
        if field.type == "consent" and cleaned.get(field.name):
            errors.append(
                FieldError(
                    field.name,
                    "only the visitor can give this consent; omit this field",
                    "consent_of_visitor",
                )
            )
    if errors:
        errors = [error._replace(field=f"data.{error.field}") for error in errors]
        summary = "; ".join(f"{error.field}: {error.message}" for error in errors[:5])
        raise ValidationError(summary, errors=errors)
    valid_values = {field.name: cleaned.get(field.name) for field in declared}
    data: dict[str, Any] = merge(lead.whole_data, patch={**patch, **valid_values})
    if (size := size_of(data)) > MAX_DATA_BYTES:
        msg = f"data: expected at most {MAX_DATA_BYTES:,} bytes of JSON, received {size:,}."
        raise PayloadTooLargeError(msg, key="data")
    return fields, data


def _updated_contact(
    contact: Contact,
    fields: tuple[FieldSpec, ...],
    old_data: dict[str, Any],
    *,
    new_data: dict[str, Any],
    country: str,
) -> Contact:
    old, new = (
        Contact.create(name=name, email=email, phone=phone, country=country)._asdict()
        for name, email, phone in (
            form_fields.contact(fields, data) for data in (old_data, new_data)
        )
    )
    return contact._replace(**{name: new[name] for name in new if new[name] != old[name]})


def _assign_client(
    ctx: Context, lead: LeadRow, contact: Contact, *, former: Contact, workspace: WorkspaceRow
) -> None:
    # Only the new contacts may complete the client.
    pairs = zip(contact, former, strict=True)
    fills = Contact(*(new if new != old else None for new, old in pairs))
    match = matching.match(ctx.workspace_id, contact, fills=fills)
    is_reassigned = (match.client.id if match else None) != lead.client_id
    if is_reassigned and lead.client_id is not None:
        former_client = CLIENTS.find(ctx.workspace_id, record_id=lead.client_id)
        if former_client is not None:
            clients.count(ctx.unit, former_client, None, leads=-1)
    if match is not None:
        match.count(ctx.unit, None, leads=int(is_reassigned))
        if match.is_new:
            today = clock.local_day(clock.now(), workspace.timezone)
            crm_metrics.count_client(ctx.unit, lead, today)
    lead.client_id = match.client.id if match else None

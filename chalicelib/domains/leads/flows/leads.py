"""Leads that an operation needs."""

from chalicelib.application.invoke import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.leads import LeadRow


def unknown_lead() -> NotFoundError:
    """Return the error for an id that no lead of the workspace has."""
    return NotFoundError.of("lead", "List the leads (svc_list_leads) for valid ids.")


def existing_lead(ctx: Context, lead_id: str) -> LeadRow:
    """Return a lead with its data.

    Raises:
        NotFoundError: no lead of the workspace has this id.
    """
    lead = leads.find(ctx.workspace_id, lead_id)
    if lead is None:
        raise unknown_lead()
    return lead

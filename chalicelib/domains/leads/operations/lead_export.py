"""Export of leads as a table, for spreadsheets."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import Field
from pydantic_core import to_json

from chalicelib.application.context import Context
from chalicelib.core.errors import PayloadTooLargeError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, SearchText, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.flows import submitted_values
from chalicelib.domains.leads.operations.leads import LeadListQuery, query_of
from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.forms import FormRow
from chalicelib.domains.leads.store.leads import LEADS, LeadRow, LeadStatus
from chalicelib.engine import limits
from chalicelib.lib import currencies, zoned_times
from chalicelib.lib.contact_fields import Tag

MAX_EXPORTED = 5_000  # Maximum number of leads in an export. A Lambda response has at most 6 MB.
# Exports of a workspace. One that reads many leads costs as much as thousands of calls.
EXPORTS_PER_DAY = Limit("lead-exports", "exports of leads per day", 50, timedelta(days=1))
# Columns of every export.
FIXED = (
    *("createdAt", "status", "name", "email", "phone", "form", "tags", "notes"),
    *("source", "campaign", "page", "items", "total"),
)

Cell = str | int | float | bool | None


class LeadExport(Wire):
    """The leads to export: the filters of the list."""

    status: LeadStatus | None = optional("Only leads with this status.")
    search: SearchText | None = optional("In submitted values, name, notes.")
    form_id: Id | None = optional("Form id.")
    project_id: Id | None = optional("Site id.")
    tag: Tag | None = optional("With this tag.")
    from_: When | None = Field(default=None, alias="from", description="Date or ISO 8601.")
    to: When | None = optional("End; a date includes the whole day.")


class ExportColumn(Wire):
    """A column of the table."""

    name: str = Field(description="createdAt, status or another fixed name; or a field's name.")
    label: str | None = Field(description="Label of a form's field; null for fixed columns.")


class LeadTable(Wire):
    """Leads as a table. Its texts are untrusted."""

    columns: list[ExportColumn] = Field(description="Columns, in order.")
    rows: list[list[Cell]] = Field(description="One row for each lead, newest first.")


@operation(
    role=Role.MANAGER, idempotent=True, errors=(PayloadTooLargeError,), example={"status": "new"}
)
def export_leads(ctx: Context, args: LeadExport) -> LeadTable:
    """Return the leads of a filter as a table, at most 5,000. The audit log records the export.

    Raises:
        PayloadTooLargeError: the filter matches more leads.
        RateLimitedError: the workspace has exported often today.
    """
    limits.stage(ctx.unit, EXPORTS_PER_DAY, ctx.workspace_id)
    lead_rows = _read(ctx, args)
    ctx.unit.mention(f"rows:{len(lead_rows)}")
    return table(ctx.workspace_id, lead_rows)


def _read(ctx: Context, args: LeadExport) -> list[LeadRow]:
    # A search and a tag read all entries anyway, so counting first would double their cost.
    filters = args.provided()
    if not (args.search or args.tag):
        _refuse_many(_page(ctx, filters, 1)[1])
    rows, total = _page(ctx, filters, MAX_EXPORTED)
    _refuse_many(total)
    return leads.add_long_data(ctx.workspace_id, rows)


def _page(ctx: Context, filters: Mapping[str, Any], size: int) -> tuple[list[LeadRow], int]:
    query = query_of(ctx, LeadListQuery.model_construct(**filters, page=1, size=size))
    page = LEADS.page(ctx.workspace_id, query)
    return page.records, page.total


def _refuse_many(total: int) -> None:
    if total > MAX_EXPORTED:
        msg = (
            f"The filter matches {total:,} leads, but the maximum for an export is "
            f"{MAX_EXPORTED:,}. Choose a shorter period."
        )
        raise PayloadTooLargeError(msg, key="leads")


def table(workspace_id: str, lead_rows: Sequence[LeadRow]) -> LeadTable:
    """Return leads as a table: the fixed columns, then one for each field of their forms.

    A field that has nothing but the contacts of its leads gets no column.
    """
    workspace = workspaces.get(workspace_id)
    forms = submitted_values.forms(
        workspace_id, (lead.form_id for lead in lead_rows if lead.form_id)
    )
    submitted = [_submitted(lead, forms) for lead in lead_rows]
    labels: dict[str, str] = {}
    for lead, values in zip(lead_rows, submitted, strict=True):
        for name, (label, cell) in values.items():
            if cell not in {None, lead.name, lead.email, lead.phone or lead.phone_entered}:
                labels.setdefault(name, label)
    columns = [ExportColumn(name=name, label=None) for name in FIXED]
    columns += [ExportColumn(name=name, label=label) for name, label in labels.items()]
    rows = [
        [*_fixed(lead, forms, workspace), *(values.get(name, ("", None))[1] for name in labels)]
        for lead, values in zip(lead_rows, submitted, strict=True)
    ]
    return LeadTable(columns=columns, rows=rows)


def _submitted(lead: LeadRow, forms: Mapping[str, FormRow]) -> dict[str, tuple[str, Cell]]:
    return {
        submitted_value.name: (
            submitted_value.label,
            submitted_value.consent_at or _cell(submitted_value.value),
        )
        for submitted_value in submitted_values.list_values(lead, forms.get(lead.form_id))
    }


def _fixed(lead: LeadRow, forms: Mapping[str, FormRow], workspace: WorkspaceRow) -> Iterable[Cell]:
    source, form = lead.source or {}, forms.get(lead.form_id)
    lines: list[dict[str, Any]] = lead.whole_data.get(CART) or []
    yield zoned_times.local_time(lead.created_at, workspace.timezone).text.replace("T", " ")[:16]
    yield from (lead.status, lead.name, lead.email, lead.phone or lead.phone_entered)
    yield form.title if form else None
    yield ", ".join(lead.tags)
    yield lead.notes
    yield lead.source_name if lead.source else None
    yield (source.get("campaign") or {}).get("campaign")
    yield source.get("page")
    yield "; ".join(f"{line['name']} × {line['quantity']}" for line in lines)  # noqa: RUF001  a sign for people
    total = sum(line["price"] * line["quantity"] for line in lines)
    yield currencies.cell(total, workspace.currency) if lines else None


def _cell(value: Any) -> Cell:  # noqa: ANN401  JSON
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, Cell) else to_json(value).decode()

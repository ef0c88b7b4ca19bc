"""Read and change one form."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ExternalIdTakenError, VersionConflictError
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
from chalicelib.core.wire.schema import IF_VERSION, IfVersion, Patch, Title, Wire, optional
from chalicelib.domains.leads.flows.form_html import preview_html
from chalicelib.domains.leads.operations.forms import (
    MAX_FIELDS,
    FieldName,
    FormFieldIn,
    FormOut,
    FormRef,
    RedirectUrl,
    SuccessMessage,
    check_unique,
)
from chalicelib.domains.leads.rules import form_fields
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.sites.store.sites import SITES, SUSPENDED
from chalicelib.engine.listing import counters


class FormDraftField(FormFieldIn):
    """A field of a form that is being edited."""

    name: FieldName | None = optional(  # type: ignore[assignment]  # new fields have no name yet
        "Name of an existing field, under which its values are stored. Omitted: a new field, whose "
        "name is made from its label."
    )


def _add_names(fields: list[FormDraftField]) -> list[FormDraftField]:
    # A name that is used twice is refused.
    names = [field.name for field in fields if field.name]
    check_unique(names)
    named_fields = []
    for field in fields:
        name = field.name or form_fields.name_for(field.label or "", names)
        names.append(name)
        named_fields.append(field.model_copy(update={"name": name}))
    return named_fields


class FormDetail(FormOut):
    """A form, with what an editor of it needs."""

    version: int = Field(description="Increases with every change. Send it as ifVersion.")
    preview_html: str = Field(description="HTML of the form without its script.")

    @classmethod
    def read(cls, workspace_id: str, form: FormRow) -> Self:
        site = SITES.find(workspace_id, record_id=form.project_id) if form.project_id else None
        count = counters.read_value(workspace_id, noun=LEADS.noun, facet="form_id", value=form.id)
        is_active = site is None or site.status != SUSPENDED
        attributes: dict[str, Any] = dict(
            FormOut.from_record(form, is_active=is_active, submissions=count)
        )
        html = preview_html(form.title, form.specs, form.language)
        return cls(**attributes, version=form.revision, preview_html=html)


class FormDetailResult(Wire):
    """One form."""

    form: FormDetail = Field(description="The form.")


class FormPatch(Patch, FormRef):
    """Changes to a form."""

    title: Title = optional("Shown to visitors.")
    fields: Annotated[
        list[FormDraftField],
        Field(min_length=1, max_length=MAX_FIELDS),
        AfterValidator(_add_names),
    ] = optional("All fields, in order. A field that is left out is removed.")
    success_message: SuccessMessage | None = optional("null: the default one.")
    redirect_url: RedirectUrl | None = optional("null: no redirect.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA
    if_version: IfVersion = IF_VERSION


@operation(
    rest="GET /api/forms/{id}",
    scope=Scope.CRM_READ,
    role=Role.MEMBER,
    example={"id": "FORM_ID"},
)
def get_form(ctx: Context, args: FormRef) -> FormDetailResult:
    """Return one form with its version and the HTML to embed."""
    form = FORMS.require(ctx.workspace_id, record_id=args.id)
    return FormDetailResult(form=FormDetail.read(ctx.workspace_id, form))


@operation(
    rest="POST /api/forms/update",
    scope=Scope.CRM_WRITE,
    role=Role.MANAGER,
    idempotent=True,
    example={"id": "FORM_ID", "successMessage": "Thank you, we will call you."},
    errors=(ExternalIdTakenError, VersionConflictError),
)
def update_form(ctx: Context, args: FormPatch) -> FormDetailResult:
    """Change a form; omitted values stay unchanged. Leads keep the values of removed fields."""
    form = FORMS.require(ctx.workspace_id, record_id=args.id)
    form.require_version(args.if_version)
    changes = args.changes
    merge_metadata(changes, form.metadata)
    for name, value in changes.items():
        stored_value = [field.stored_values for field in args.fields] if name == "fields" else value
        setattr(form, name, stored_value)
    ctx.unit.save(form)
    return FormDetailResult(form=FormDetail.read(ctx.workspace_id, form))

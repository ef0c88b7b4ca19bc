"""Operations that list, create and delete capture forms."""

from collections import Counter
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import ExternalIdTakenError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.wire.external_data import (
    BY_EXTERNAL_ID,
    EXTERNAL_ID,
    EXTERNAL_ID_OUT,
    METADATA,
    METADATA_OUT,
    Metadata,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.lists import ListResult, SortedListQuery
from chalicelib.core.wire.schema import (
    RECEIVED,
    DeletedResult,
    Id,
    MailedTitle,
    PageNumber,
    Pattern,
    SearchText,
    Timestamp,
    Unique,
    Wire,
    optional,
    printable,
)
from chalicelib.domains.leads.flows.form_html import embed_html
from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.sites.store.sites import SITES, SUSPENDED
from chalicelib.engine.listing import counters

KEPT_AFTER_DELETION = timedelta(days=30)
MAX_FIELDS = 30
MAX_OPTIONS = 100
MAX_URL = 2048

FieldType = Literal[
    "text",
    "textarea",
    "email",
    "phone",
    "number",
    "select",
    "checkbox",
    "date",
    "hidden",
    "consent",
]
Label = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(printable),
]


def _check_reserved(name: str) -> str:
    if name == CART:
        msg = "expected a name that is not reserved for the products of an order"
        raise PydanticCustomError("reserved", msg)
    return name


def _check_https(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme != "https" or any(c.isspace() for c in url):
        raise PydanticCustomError("url", "expected an https URL")
    return printable(url)


FieldName = Annotated[
    str,
    Pattern(r"[A-Za-z][A-Za-z0-9_]{0,39}", "1 to 40 Latin letters, digits and _, a letter first"),
    AfterValidator(_check_reserved),
]
SuccessMessage = Annotated[str, StringConstraints(max_length=1000)]
RedirectUrl = Annotated[str, StringConstraints(max_length=MAX_URL), AfterValidator(_check_https)]


class FormFieldIn(Wire):
    """A field of a form."""

    name: FieldName = Field(description="Name in the submitted data.")
    label: Label | None = optional("Default: name.")
    type: FieldType = Field(
        default="text",
        description="consent: a checkbox for a consent.",
    )
    required: bool = Field(default=False, description="Must be filled in.")
    options: (
        Annotated[list[Label], Field(max_length=MAX_OPTIONS), Unique("different options")] | None
    ) = optional("Choices of a select.")

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.type == "select" and not self.options:
            raise PydanticCustomError(
                "no_options",
                "expected options for a field of type select, received none",
                {RECEIVED: True},
            )
        if self.type != "select" and self.options:
            message = "expected no options, which only a select can have, received some"
            raise PydanticCustomError("options_not_allowed", message, {RECEIVED: True})
        return self

    @property
    def stored_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "name": self.name,
            "label": self.label or self.name,
            "type": self.type,
            "required": self.required,
        }
        return values | ({"options": self.options} if self.options else {})


def check_unique(names: list[str]) -> None:
    """Refuse two fields with one name."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise PydanticCustomError(
            "not_unique",
            "expected different field names, received several fields named {names}",
            {"names": ", ".join(twice), RECEIVED: True},
        )


def _check_unique_names(fields: list[FormFieldIn]) -> list[FormFieldIn]:
    check_unique([field.name for field in fields])
    return fields


class FormFieldOut(Wire):
    """A field of a form."""

    name: str = Field(description="Name in the submitted data.")
    label: str = Field(description="Label that visitors see.")
    type: str = Field(description="Type of its values.")
    required: bool = Field(description="Whether it must be filled in.")
    options: list[str] | None = Field(description="Options of a select, or null.")


class FormRef(Wire):
    """Reference to a form."""

    id: Id = Field(description="Form id.")


class FormOut(FormRef):
    """A form."""

    title: str = Field(description="Title.")
    project_id: Id | None = Field(description="Site id, or null.")
    fields: list[FormFieldOut] = Field(description="Fields, in order.")
    success_message: str | None = Field(description="Message afterwards; null: the default one.")
    redirect_url: str | None = Field(description="URL of the next page, or null.")
    is_active: bool = Field(
        description="Whether it accepts submissions; false on a suspended site."
    )
    submit_url: str = Field(description="URL to POST the values to, from any page, without a key.")
    page_url: str = Field(description="URL of a page with the form, to share as a link.")
    embed_html: str = Field(description="HTML to paste into any page.")
    submissions: int = Field(description="Number of leads from the form.")
    external_id: str | None = EXTERNAL_ID_OUT
    metadata: Metadata = METADATA_OUT
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def from_record(cls, form: FormRow, *, is_active: bool, submissions: int) -> Self:
        url = f"{settings().public_url}/api/public/forms/{form.id}/submit"
        html = embed_html(form.title, form.specs, url, language=form.language)
        return cls.from_row(
            form.values,
            fields=[FormFieldOut.from_row(field) for field in form.fields],
            is_active=is_active,
            submit_url=url,
            page_url=f"{settings().public_url}/form/{form.id}",
            embed_html=html,
            submissions=submissions,
        )


class FormResult(Wire):
    """One form."""

    form: FormOut = Field(description="The form.")


class FormListQuery(SortedListQuery):
    """Filters for listing forms."""

    q: SearchText | None = optional("Part of the title.")
    project_id: Id | None = optional("Site id.")
    external_id: NewExternalId = BY_EXTERNAL_ID
    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=20, ge=1, le=100, description="Forms per page.")


class FormList(ListResult):
    """One page of forms."""

    forms: list[FormOut] = Field(description="The forms of this page.")


class FormCreate(Wire):
    """A new form."""

    title: MailedTitle = Field(description="Title, shown to visitors.")
    fields: Annotated[
        list[FormFieldIn],
        Field(min_length=1, max_length=MAX_FIELDS),
        AfterValidator(_check_unique_names),
    ] = Field(
        description="In order. Contacts: the first email and phone field. Name: the field called "
        "name, else the first text."
    )
    project_id: Id | None = optional("Site id.")
    success_message: SuccessMessage | None = optional("Shown after sending; default: a thank-you.")
    redirect_url: RedirectUrl | None = optional("https URL of the next page.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class FormDelete(FormRef):
    """Arguments of a form's deletion."""

    dry_run: bool = Field(default=False, description="Only report.")


class FormDeleted(DeletedResult):
    """Result of a deletion, with the number of leads that are kept."""

    leads_kept: int = Field(description="Leads of the form, which stay.")


@operation(
    tool=True,
    rest="GET /api/forms/list",
    scope=Scope.CRM_READ,
    role=Role.MEMBER,
    example={"size": 5},
)
def list_forms(ctx: Context, args: FormListQuery) -> FormList:
    """List the forms, newest first, with the HTML to embed."""
    query = FORMS.query(args, search=args.q, charge=ctx.charge)
    page = FORMS.page(ctx.workspace_id, query)
    sites = dict.fromkeys(form.project_id for form in page.records if form.project_id)
    closed = {s.id for s in SITES.fetch(ctx.workspace_id, sites) if s.status == SUSPENDED}
    leads = (
        counters.read_facet(ctx.workspace_id, noun=LEADS.noun, facet="form_id")
        if page.records
        else {}
    )
    forms = [
        FormOut.from_record(
            form,
            is_active=form.project_id not in closed,
            submissions=leads.get(counters.name("form_id", value=form.id), 0),
        )
        for form in page.records
    ]
    return FormList(forms=forms, **args.counted(page.total))


@operation(
    tool=True,
    rest="POST /api/forms/create",
    scope=Scope.CRM_WRITE,
    example={
        "title": "Contact us",
        "fields": [
            {"name": "name", "label": "Name", "required": True},
            {"name": "email", "label": "E-mail", "type": "email"},
            {"name": "phone", "label": "Phone", "type": "phone"},
            {"name": "message", "label": "Message", "type": "textarea"},
        ],
        "projectId": "SITE_ID",
    },
    errors=(ExternalIdTakenError,),
    role=Role.MANAGER,
)
def create_form(ctx: Context, args: FormCreate) -> FormResult:
    """Create a form. Each submission becomes a lead.

    Paste embedHtml into any page, or post a JSON object by field names to submitUrl; for an order
    with items: [{productId, quantity}].
    """
    is_active = True
    if args.project_id is not None:
        site = SITES.require(ctx.workspace_id, record_id=args.project_id)
        ctx.unit.require(site, on_conflict=SITES.not_found())
        is_active = site.status != SUSPENDED
    values = args.provided() | {"fields": [field.stored_values for field in args.fields]}
    merge_metadata(values)
    form = FORMS.new(ctx.workspace_id, **values)
    ctx.unit.create(form)
    return FormResult(form=FormOut.from_record(form, is_active=is_active, submissions=0))


@operation(
    tool=True,
    rest="POST /api/forms/delete",
    scope=Scope.CRM_WRITE,
    example={"id": "FORM_ID"},
    role=Role.MANAGER,
)
def delete_form(ctx: Context, args: FormDelete) -> FormDeleted:
    """Delete a form. Its submitUrl stops working; its leads are kept."""
    with deadline.side_by_side() as start:
        count_task = start(
            lambda: counters.read_value(
                ctx.workspace_id, noun=LEADS.noun, facet="form_id", value=args.id
            )
        )
        form = FORMS.require(ctx.workspace_id, record_id=args.id)
        lead_count = count_task.result()
    ctx.unit.soft_delete(form, until=clock.now() + KEPT_AFTER_DELETION)
    return FormDeleted(id=form.id, deleted=not args.dry_run, leads_kept=lead_count)

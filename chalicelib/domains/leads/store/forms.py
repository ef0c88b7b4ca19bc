"""Capture forms: what visitors fill in on a page, and what becomes a lead."""

from typing import Any

from pynamodb.attributes import UnicodeAttribute

from chalicelib.domains.leads.rules.form_fields import FieldSpec, language
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.listing.listing import Listing, listed
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.tables import JsonAttribute, Record

ID_CLAIM = "form-id"
"""The platform-wide look-up from a form's id, with which visitors come, to its workspace."""


class FormRow(Record):
    """A form. ``fields`` are JSON objects, in the order in which visitors see them."""

    title = UnicodeAttribute()
    fields: JsonAttribute = JsonAttribute()
    project_id = UnicodeAttribute(null=True)
    success_message = UnicodeAttribute(null=True)
    redirect_url = UnicodeAttribute(null=True)

    @property
    def specs(self) -> tuple[FieldSpec, ...]:
        """The fields, as the rules read them."""
        fields: list[dict[str, Any]] = self.fields
        return tuple(
            FieldSpec(
                field["name"],
                field["label"],
                field["type"],
                field["required"],
                tuple(field.get("options") or ()),
            )
            for field in fields
        )

    @property
    def language(self) -> str:
        """The language that its visitors are spoken to in."""
        return language(self.title, [spec.label for spec in self.specs])


FORMS = listed(
    Listing(
        row=FormRow,
        noun="FORM",
        text=lambda form: (form.title,),
        sorts={"createdAt": "id"},
        facets=("project_id",),
        lookups=(Lookup(ID_CLAIM, lambda form: form.id, platform_wide=True),),
    )
)


def workspace_of(form_id: str) -> str | None:
    """Return the workspace that a live form is of, or None."""
    return ClaimRow.workspace_of(ID_CLAIM, form_id)

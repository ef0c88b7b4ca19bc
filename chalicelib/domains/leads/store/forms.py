"""Capture forms: what visitors fill in on a page, and what becomes a lead."""

from typing import Any

from pynamodb.attributes import UnicodeAttribute

from chalicelib.domains.leads.rules.form_fields import FieldSpec, language
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import listed
from chalicelib.engine.tables import JsonAttribute, Record


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
        listed_by="svc_list_forms",
        unavailable_message="There is no such form, or it takes no submissions any more.",
        text=lambda form: (form.title,),
        sorts={"createdAt": "id"},
        facets=("project_id",),
        lookups=(lookups.by_id("FORM"),),
    )
)

"""Manage capture forms, whose submissions by visitors become leads."""

from typing import Any

from pynamodb.attributes import UnicodeAttribute

from chalicelib.domains.leads.rules.form_fields import FieldSpec, language
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.event_rules import changes_others, is_new
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import JsonAttribute, ProgramRecord


class FormRow(ProgramRecord):
    """A form, with ``fields`` as JSON objects in display order."""

    title = UnicodeAttribute()
    fields: JsonAttribute = JsonAttribute()
    project_id = UnicodeAttribute(null=True)
    success_message = UnicodeAttribute(null=True)
    redirect_url = UnicodeAttribute(null=True)

    @property
    def specs(self) -> tuple[FieldSpec, ...]:
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
        # The form addresses visitors in it.
        return language(self.title, [spec.label for spec in self.specs])


FORMS = register_listing(
    Listing(
        row=FormRow,
        noun="FORM",
        listed_by="svc_list_forms",
        unavailable_message="This form does not exist, or it no longer accepts submissions.",
        text=lambda form: (form.title,),
        uncounted=True,
        events={"form.created": is_new, "form.updated": changes_others()},
        deletion_event="form.deleted",
        sorts={"createdAt": "id"},
        facets=("project_id",),
        lookups=(lookups.id_lookup("FORM"),),
    )
)

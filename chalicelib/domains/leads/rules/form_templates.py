"""Forms to begin with, and the labels of their fields in the language of the form."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chalicelib.domains.leads.rules.form_texts import form_text

_RATINGS = ("rating_5", "rating_4", "rating_3", "rating_2", "rating_1")


class TemplateField(NamedTuple):
    """A field of a template. The keys of its label and options are in the catalogue of forms."""

    name: str
    type: str = "text"
    required: bool = False
    options: tuple[str, ...] = ()


_NAME = TemplateField("name", required=True)

_PHONE_FIELD = TemplateField("phone", "phone", required=True)

_CONSENT = TemplateField("consent", "consent", required=True)

# The fields of each template, in order.
TEMPLATES: Mapping[str, Sequence[TemplateField]] = {
    "contact": (
        _NAME,
        _PHONE_FIELD,
        TemplateField("email", "email"),
        TemplateField("message", "textarea"),
        _CONSENT,
    ),
    "booking": (
        _NAME,
        _PHONE_FIELD,
        TemplateField("service"),
        TemplateField("day", "date", required=True),
        TemplateField("hour", "select", options=("any_hour", "morning", "afternoon", "evening")),
        TemplateField("comment", "textarea"),
        _CONSENT,
    ),
    "order": (
        _NAME,
        _PHONE_FIELD,
        TemplateField("wish", "textarea", required=True),
        TemplateField("address"),
        TemplateField("day", "date"),
        _CONSENT,
    ),
    "feedback": (
        TemplateField("rating", "select", required=True, options=_RATINGS),
        TemplateField("review", "textarea", required=True),
        TemplateField("name"),
        TemplateField("email", "email"),
        _CONSENT,
    ),
}


def title(template: str, *, language: str) -> str:
    """Return the title of a template's form."""
    return form_text(language, f"template_{template}")


def fields(template: str, *, language: str) -> list[dict[str, Any]]:
    """Return the fields of a template, as ``create_form`` takes them."""
    return [
        {
            "name": field.name,
            "label": form_text(language, f"label_{field.name}"),
            "type": field.type,
            "required": field.required,
            "options": [form_text(language, option) for option in field.options],
        }
        for field in TEMPLATES[template]
    ]

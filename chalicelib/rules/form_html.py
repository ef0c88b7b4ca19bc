"""The HTML of capture forms: the code to paste into a page."""

from collections.abc import Sequence
from html import escape

from chalicelib.rules.form_fields import FieldSpec


def embed_html(
    form_id: str, title: str, fields: Sequence[FieldSpec], submit_url: str, language: str
) -> str:
    """Return a form to paste into any page; it works without script."""
    button = "Отправить" if language == "ru" else "Send"
    inputs = "\n".join(_input(form_id, field) for field in fields)
    return (
        f'<form action="{escape(submit_url)}" method="post" lang="{language}"'
        f' aria-label="{escape(title)}">\n{inputs}\n<button>{button}</button>\n</form>'
    )


def _input(form_id: str, field: FieldSpec) -> str:
    name, place = escape(field.name), escape(f"{form_id}-{field.name}")
    required = " required" if field.required else ""
    kinds = {"phone": "tel", "consent": "checkbox"}
    match field.type:
        case "textarea":
            control = f'<textarea id="{place}" name="{name}"{required}></textarea>'
        case "select":
            options = "".join(f"<option>{escape(each)}</option>" for each in field.options)
            control = f'<select id="{place}" name="{name}"{required}>{options}</select>'
        case kind:
            control = f'<input id="{place}" type="{kinds.get(kind, kind)}" name="{name}"{required}>'
    return f'<p><label for="{place}">{escape(field.label)}</label> {control}</p>'

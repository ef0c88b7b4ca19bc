"""Forms to begin with."""

import pytest

from chalicelib.domains.leads.rules import form_templates
from tests.conftest import Owner, call_console


@pytest.mark.parametrize("template", form_templates.TEMPLATES)
@pytest.mark.parametrize("language", ["ru", "en"])
def test_every_template_is_a_valid_form(template: str, language: str, owner: Owner) -> None:
    fields = form_templates.fields(template, language=language)
    title = form_templates.title(template, language=language)
    created = call_console(owner.workspace.id, "create_form", title=title, fields=fields)["form"]
    assert f'lang="{language}"' in created["embedHtml"]
    assert created["fields"] == [{**field, "options": field["options"] or None} for field in fields]
    required = [field.name for field in form_templates.TEMPLATES[template] if field.required]
    assert required == [field["name"] for field in created["fields"] if field["required"]]
    assert not {field["name"] for field in fields} & {field["label"] for field in created["fields"]}
    assert created["fields"][-1]["type"] == "consent"

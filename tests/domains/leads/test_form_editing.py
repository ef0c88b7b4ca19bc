"""Changes of forms in the console. Fields keep their names, and leads keep their values."""

from typing import Any

import pytest

from chalicelib.core.errors import ValidationError, VersionConflictError
from chalicelib.domains.leads.rules import form_templates
from chalicelib.domains.leads.rules.form_fields import name_for
from tests.conftest import Api, Owner, call_console
from tests.factories.examples import FORM, submit


@pytest.fixture
def form(api: Api) -> str:
    form_id: str = api.post("/api/forms/create", FORM)["form"]["id"]
    return form_id


def read(owner: Owner, form: str) -> Any:
    return call_console(owner.workspace.id, "get_form", id=form)["form"]


def update(owner: Owner, form: str, **changes: Any) -> Any:
    return call_console(owner.workspace.id, "update_form", id=form, **changes)["form"]


class TestUpdateForm:
    def test_omitted_fields_are_kept(self, owner: Owner, form: str) -> None:
        form_before = read(owner, form)
        updated = update(owner, form, title="Write to us", redirectUrl="https://bakery.example")
        assert updated["title"] == "Write to us"
        assert updated["redirectUrl"] == "https://bakery.example"
        assert updated["fields"] == form_before["fields"]
        assert updated["version"] == form_before["version"] + 1
        assert update(owner, form, redirectUrl=None)["redirectUrl"] is None

    def test_a_new_field_gets_a_name_from_its_label(self, owner: Owner, form: str) -> None:
        fields = [*read(owner, form)["fields"], {"label": "Дата торта", "type": "date"}]
        updated = update(owner, form, fields=[*fields, {"label": "Дата торта"}])
        assert [field["name"] for field in updated["fields"][-2:]] == ["data_torta", "data_torta_2"]

    def test_leads_keep_the_values_of_a_field_that_is_removed(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        lead = submit(form, name="Ada", email="ada@example.com")
        fields = [field for field in read(owner, form)["fields"] if field["name"] != "name"]
        update(owner, form, fields=[{**field, "label": "New label"} for field in fields])
        data = api.get(f"/api/forms/collection/{lead}")["lead"]["data"]
        assert data == {"name": "Ada", "email": "ada@example.com"}
        assert submit(form, email="eve@example.com") != lead

    def test_another_version_is_refused(self, owner: Owner, form: str) -> None:
        version = read(owner, form)["version"]
        update(owner, form, title="First", ifVersion=version)
        with pytest.raises(VersionConflictError):
            update(owner, form, title="Second", ifVersion=version)
        assert read(owner, form)["title"] == "First"

    @pytest.mark.parametrize(
        "fields",
        [
            [],
            [{"name": "a"}, {"name": "a"}],
            [{"name": "items"}],
            [{"label": "Size", "type": "select"}],
            [{"label": "x", "type": "file"}],
            [{"label": f"Field {n}"} for n in range(31)],
        ],
    )
    def test_wrong_fields_are_refused(
        self, fields: list[dict[str, str]], owner: Owner, form: str
    ) -> None:
        with pytest.raises(ValidationError):
            update(owner, form, fields=fields)


def test_a_preview_has_neither_script_nor_url(owner: Owner, form: str) -> None:
    html = read(owner, form)["previewHtml"]
    assert "<script></script>" in html
    assert 'action=""' in html
    assert 'name="email"' in html


@pytest.mark.parametrize("template", form_templates.TEMPLATES)
@pytest.mark.parametrize("language", ["ru", "en"])
def test_every_template_is_a_valid_form(template: str, language: str, owner: Owner) -> None:
    fields = form_templates.fields(template, language)
    title = form_templates.title(template, language)
    created = call_console(owner.workspace.id, "create_form", title=title, fields=fields)["form"]
    assert f'lang="{language}"' in created["embedHtml"]
    assert created["fields"] == [{**field, "options": field["options"] or None} for field in fields]
    required = [field.name for field in form_templates.TEMPLATES[template] if field.required]
    assert required == [field["name"] for field in created["fields"] if field["required"]]
    assert not {field["name"] for field in fields} & {field["label"] for field in created["fields"]}
    assert created["fields"][-1]["type"] == "consent"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("E-mail", "e_mail"),
        ("5 звёзд", "field_5_zvezd"),
        ("…", "field"),
        ("Items", "items_2"),
        ("Имя", "imya_2"),
        ("x" * 300, "x" * 36),
        ("x" * 35 + " y", "x" * 35),
    ],
)
def test_the_name_of_a_new_field(label: str, name: str) -> None:
    assert name_for(label, {"imya"}) == name

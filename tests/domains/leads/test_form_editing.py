"""Changes of forms in the console. Fields keep their names, and leads keep their values."""

from typing import Any

import pytest

from chalicelib.core.errors import ValidationError, VersionConflictError
from tests.conftest import Api, Owner, call_console
from tests.factories.examples import submit


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

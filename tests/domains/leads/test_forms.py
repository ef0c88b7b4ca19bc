"""Tests of how forms are created, listed and deleted."""

from typing import Any

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.domains.leads.flows.submissions import public_form
from tests.conftest import Api, call_operator
from tests.factories.examples import FORM, submit
from tests.factories.forms import new_form


@pytest.fixture
def site(api: Api) -> str:
    site_id: str = api.post("/api/projects/create", {"title": "Bakery", "slug": "bakery"})[
        "project"
    ]["id"]
    return site_id


def lead(api: Api, lead_id: str) -> Any:
    return api.get(f"/api/forms/collection/{lead_id}")["lead"]


class TestCreateForm:
    def test_create_returns_the_submit_url_and_the_code_to_embed(self, api: Api, site: str) -> None:
        form = api.post("/api/forms/create", FORM | {"projectId": site})["form"]
        assert form["submitUrl"].endswith(f"/api/public/forms/{form['id']}/submit")
        assert form["submitUrl"] in form["embedHtml"]
        assert (form["projectId"], form["isActive"], form["submissions"]) == (site, True, 0)
        assert [field["name"] for field in form["fields"]] == ["name", "email", "phone", "message"]
        assert form["fields"][0] == {
            "name": "name",
            "label": "Name",
            "type": "text",
            "required": True,
            "options": None,
        }

    def test_form_larger_than_a_database_row_is_413(self, api: Api) -> None:
        options = [f"{n} {'ж' * 190}" for n in range(100)]
        fields = [{"name": f"f{n}", "type": "select", "options": options} for n in range(30)]
        count_before = len(api.get("/api/forms/list")["forms"])
        answer = api.call_refused("POST", "/api/forms/create", {"title": "T", "fields": fields})
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == ("fields", "too_large")
        assert "400,000" in error["message"]
        failed, result = api.tool("svc_create_form", title="T", fields=fields)
        assert failed
        assert "payload_too_large" in str(result)
        assert len(api.get("/api/forms/list")["forms"]) == count_before

    def test_a_form_just_below_the_size_of_a_row_is_stored(self, api: Api) -> None:
        options = [f"{n:02} {'x' * 125}" for n in range(100)]
        fields = [{"name": f"f{n}", "type": "select", "options": options} for n in range(30)]
        assert new_form(api, fields=fields)

    def test_a_label_is_the_name_unless_given(self, api: Api) -> None:
        form = api.post("/api/forms/create", {"title": "T", "fields": [{"name": "city"}]})["form"]
        assert (form["fields"][0]["label"], form["fields"][0]["type"]) == ("city", "text")

    @pytest.mark.parametrize(
        ("change", "field", "key"),
        [
            ({"fields": []}, "fields", "too_few_items"),
            ({"fields": [{"name": f"f{n}"} for n in range(31)]}, "fields", "too_many_items"),
            ({"fields": [{"name": "a"}, {"name": "a"}]}, "fields", "not_unique"),
            ({"fields": [{"name": "items"}]}, "fields.0.name", "reserved"),
            ({"fields": [{"name": "_page"}]}, "fields.0.name", "pattern"),
            ({"fields": [{"name": "1st"}]}, "fields.0.name", "pattern"),
            ({"fields": [{"name": "a", "type": "file"}]}, "fields.0.type", "unknown_value"),
            ({"fields": [{"name": "a", "type": "select"}]}, "fields.0", "no_options"),
            ({"fields": [{"name": "a", "options": ["x"]}]}, "fields.0", "options_not_allowed"),
            ({"redirectUrl": "http://example.com/"}, "redirectUrl", "url"),
            ({"redirectUrl": "javascript:alert(1)"}, "redirectUrl", "url"),
            ({"redirectUrl": "https:///x"}, "redirectUrl", "url"),
            ({"title": " "}, "title", "too_short"),
        ],
    )
    def test_an_invalid_form_is_refused(
        self, change: dict[str, Any], field: str, key: str, api: Api
    ) -> None:
        answer = api.call_refused("POST", "/api/forms/create", FORM | change)
        assert answer.status == 400
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == (field, key)


class TestListForms:
    def test_forms_are_listed_newest_first_with_counts_and_filtered_by_site(
        self, api: Api, site: str
    ) -> None:
        first, second = new_form(api, projectId=site), new_form(api)
        submit(first, name="Ada", email="ada@example.com")
        submit(first, name="Bob", email="bob@example.com")
        page = api.get("/api/forms/list")
        assert [f["id"] for f in page["forms"]] == [second, first]
        assert [f["submissions"] for f in page["forms"]] == [0, 2]
        assert page["total"] == 2
        assert [f["id"] for f in api.get(f"/api/forms/list?projectId={site}")["forms"]] == [first]
        assert api.get(f"/api/forms/list?projectId={new_id()}")["total"] == 0

    def test_a_form_of_a_suspended_site_is_not_active(self, api: Api, site: str) -> None:
        form = new_form(api, projectId=site)
        call_operator("suspend_site", id=site)
        assert api.get("/api/forms/list")["forms"][0]["isActive"] is False
        with pytest.raises(NotFoundError):
            submit(form, name="Ada")
        call_operator("resume_site", id=site)
        submit(form, name="Ada")


class TestDeleteForm:
    def test_deleted_form_keeps_its_leads_and_refuses_submissions(
        self, api: Api, form: str
    ) -> None:
        lead_id = submit(form, name="Ada", email="ada@example.com")
        dry = api.post("/api/forms/delete", {"id": form, "dryRun": True})
        assert (dry["deleted"], dry["leadsKept"]) == (False, 1)
        response = api.post("/api/forms/delete", {"id": form})
        assert (response["deleted"], response["leadsKept"]) == (True, 1)
        assert lead(api, lead_id)["formId"] == form
        assert api.get(f"/api/forms/collection-list?formId={form}")["total"] == 1
        assert api.get(f"/api/crm/stats?formId={form}")["created"] == 1
        with pytest.raises(NotFoundError):
            submit(form, name="Ada")
        with pytest.raises(NotFoundError):
            public_form(form)
        assert api.get("/api/forms/list")["total"] == 0

    def test_site_deletion_deletes_forms_and_keeps_leads(self, api: Api, site: str) -> None:
        forms = [new_form(api, projectId=site) for _ in range(27)]
        other = new_form(api)
        lead_id = submit(forms[0], name="Ada")
        dry = api.post("/api/projects/delete", {"id": site, "dryRun": True})
        assert dry["cascade"]["forms"] == 27
        assert api.get("/api/forms/list")["total"] == 28
        assert api.post("/api/projects/delete", {"id": site})["cascade"]["forms"] == 27
        assert [f["id"] for f in api.get("/api/forms/list")["forms"]] == [other]
        assert lead(api, lead_id)["projectId"] == site
        with pytest.raises(NotFoundError):
            submit(forms[26], name="Ada")

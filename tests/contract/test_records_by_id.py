"""Sites, categories and forms are read by id, with the fields of their lists."""

import pytest

from tests.conftest import Api
from tests.factories.examples import Things


@pytest.mark.parametrize(
    ("path", "records", "record"),
    [
        ("/api/projects", "projects", "project"),
        ("/api/categories", "categories", "category"),
        ("/api/forms", "forms", "form"),
    ],
)
def test_a_record_by_id_has_the_fields_of_the_list(
    path: str, records: str, record: str, api: Api, things: Things
) -> None:
    (listed, *_) = api.get(f"{path}/list")[records]
    read = api.get(f"{path}/{listed['id']}")[record]
    assert {name: read[name] for name in listed} == listed
    assert api.call_refused("GET", f"{path}/nobody").status == 404


def test_a_form_is_changed_if_nobody_has_changed_it_since(api: Api, things: Things) -> None:
    form = api.get(f"/api/forms/{things.form}")["form"]
    body = {"id": things.form, "title": "Order", "ifVersion": form["version"]}
    changed = api.post("/api/forms/update", body)["form"]
    assert (changed["title"], changed["fields"]) == ("Order", form["fields"])
    refused = api.call_refused("POST", "/api/forms/update", body | {"title": "Again"})
    assert (refused.status, refused.data["code"]) == (409, "version_conflict")

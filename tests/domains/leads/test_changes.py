"""Changes of the status, contacts, data, notes and tags of leads."""

from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.domains.leads.operations.changes import merge
from tests.conftest import Api, Time, all_rows
from tests.domains.leads.helpers import FIND, GET, LIST, STATUS, UPDATE
from tests.factories.examples import submit
from tests.factories.forms import new_form


def list_lead_ids(api: Api, **query: Any) -> list[str]:
    page = api.get(f"{LIST}?{urlencode(query)}")
    assert page["total"] == len(page["collections"])
    return [lead["id"] for lead in page["collections"]]


def lead(api: Api, lead_id: str) -> Any:
    return api.get(f"{GET}/{lead_id}")["lead"]


class TestSetStatus:
    def test_every_status_change_is_allowed_and_recorded(
        self, api: Api, form: str, time: Time
    ) -> None:
        lead_id = submit(form, name="Ada")
        for status in ("archived", "new", "completed"):
            time.pass_by(minutes=1)
            assert api.post(STATUS, {"id": lead_id, "status": status})["lead"]["status"] == status
        history = api.get(f"{GET}/{lead_id}")["history"]
        assert [event["change"] for event in history] == [
            "created",
            "status: new -> archived",
            "status: archived -> new",
            "status: new -> completed",
        ]
        assert [event["at"] for event in history] == sorted(event["at"] for event in history)

    def test_the_same_status_changes_nothing(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada")
        rows_before = _drop_keys(all_rows())
        assert api.post(STATUS, {"id": lead_id, "status": "new"})["lead"]["id"] == lead_id
        assert _drop_keys(all_rows()) == rows_before


def _drop_keys(rows: dict[str, Any]) -> dict[str, Any]:
    return {key: row for key, row in rows.items() if not key.startswith("identity/")}


class TestUpdateLead:
    def test_a_lead_is_listed_by_any_of_its_tags(self, api: Api, form: str) -> None:
        lead_id, other = submit(form, name="Ada"), submit(form, name="Eve")
        api.post(UPDATE, {"id": lead_id, "tags": ["VIP", "b2b"]})
        api.post(UPDATE, {"id": other, "tags": ["vip guest"]})
        for tag, expected_ids in (
            ("vip", [lead_id]),
            ("b2b", [lead_id]),
            ("vi", []),
            ("vip guest", [other]),
        ):
            leads = api.get(f"{LIST}?{urlencode({'tag': tag})}")
            assert [lead["id"] for lead in leads["collections"]] == expected_ids
            assert leads["total"] == len(expected_ids)
        api.post(UPDATE, {"id": lead_id, "tags": []})
        assert api.get(f"{LIST}?tag=b2b")["total"] == 0

    def test_update_of_notes_and_tags_is_recorded_in_the_history(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada")
        body = {"id": lead_id, "notes": "Call", "tags": ["vip", "vip", " b2b "]}
        updated = api.post(UPDATE, body)["lead"]
        assert (updated["notes"], updated["tags"]) == ("Call", ["vip", "b2b"])
        api.post(UPDATE, body)
        history = api.get(f"{GET}/{lead_id}")["history"]
        assert [event["change"] for event in history] == ["created", "changed: notes, tags"]
        assert api.post(UPDATE, {"id": lead_id, "notes": None})["lead"]["notes"] is None

    @pytest.mark.parametrize(
        "change",
        [
            {},
            {"status": "new"},
            {"email": "nobody"},
            {"name": ""},
            {"data": {"items": []}},
            {"data": {"email": "nobody"}},
            {"data": {"name": None}},
        ],
    )
    def test_invalid_values_are_refused(self, change: dict[str, Any], api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada", message="Hi")
        lead_before = lead(api, lead_id)
        assert api.call_refused("POST", UPDATE, {"id": lead_id, **change}).status == 400
        assert lead(api, lead_id) == lead_before

    def test_writing_a_listed_lead_back_loses_no_data(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada", message="m" * 9000)
        rows = [{"place": "p" * 2000, "size": 1}, *({"n": n} for n in range(300))]
        api.post(
            UPDATE,
            {"id": lead_id, "notes": "n" * 5000, "data": {"rows": rows, "a": {"b": "c" * 5000}}},
        )
        lead_before = lead(api, lead_id)
        (listed_lead,) = api.get(LIST)["collections"]
        assert listed_lead["truncated"]
        for change, field in (
            ({"notes": listed_lead["notes"]}, "notes"),
            ({"data": {"message": listed_lead["data"]["message"]}}, "data.message"),
            ({"data": {"rows": listed_lead["data"]["rows"]}}, "data.rows"),
            ({"data": {"a": listed_lead["data"]["a"]}}, "data.a.b"),
        ):
            refusal = api.call_refused("POST", UPDATE, {"id": lead_id, **change})
            (error,) = refusal.data["errors"]
            assert (refusal.status, error["field"], error["key"]) == (400, field, "shortened")
        assert lead(api, lead_id) == lead_before
        untruncated = {"id": lead_id, "notes": lead_before["notes"], "data": lead_before["data"]}
        assert api.post(UPDATE, untruncated)["lead"] == lead_before

    def test_an_update_patches_the_data_and_the_search_follows(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada", message="Hi", phone="84951234567")
        patch = {"message": None, "phone": "8 495 123-45-68", "extra": {"a": 1}}
        updated = api.post(UPDATE, {"id": lead_id, "data": patch})["lead"]
        assert updated["data"] == {"name": "Ada", "phone": "8 495 123-45-68", "extra": {"a": 1}}
        assert updated["phone"] == "+74951234568"
        assert api.get(f"{FIND}?phone=84951234567")["total"] == 0
        assert api.get(f"{FIND}?phone=84951234568")["total"] == 1
        patched = api.post(UPDATE, {"id": lead_id, "data": {"extra": {"b": 2}}})["lead"]
        assert patched["data"]["extra"] == {"a": 1, "b": 2}

    def test_the_total_size_of_the_data_is_limited(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada")
        for name in ("one", "two"):
            api.post(UPDATE, {"id": lead_id, "data": {name: "x" * 15_000}})
        body = {"id": lead_id, "data": {"three": "x" * 3_000}}
        assert api.call_refused("POST", UPDATE, body).status == 413
        assert set(lead(api, lead_id)["data"]) == {"name", "one", "two"}
        short = api.post(UPDATE, {"id": lead_id, "data": {"one": None, "two": None}})["lead"]
        assert short["data"] == {"name": "Ada"}
        assert "#LEAD#DATA" not in str(list(all_rows()))

    def test_a_consent_can_be_withdrawn_but_not_given(self, api: Api) -> None:
        form = new_form(api, fields=[{"name": "ok", "type": "consent"}, {"name": "name"}])
        lead_id = submit(form, name="Ada", ok="on")
        assert "ok" in lead(api, lead_id)["data"]
        gone = api.post(UPDATE, {"id": lead_id, "data": {"ok": None}})["lead"]
        assert "ok" not in gone["data"]
        body = {"id": lead_id, "data": {"ok": True}}
        (error,) = api.call_refused("POST", UPDATE, body).data["errors"]
        assert (error["field"], error["key"]) == ("data.ok", "consent_of_visitor")

    def test_data_of_a_deleted_form_can_be_patched(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada")
        api.post("/api/forms/delete", {"id": form})
        updated = api.post(UPDATE, {"id": lead_id, "data": {"city": "Paris"}})["lead"]
        assert updated["data"] == {"name": "Ada", "city": "Paris"}

    def test_new_contacts_find_or_create_another_client(self, api: Api, form: str) -> None:
        ada = submit(form, name="Ada", email="ada@example.com")
        bob = submit(form, name="Bob", email="bob@example.com")
        bobs, adas = (lead(api, lead_id)["clientId"] for lead_id in (bob, ada))
        updated = api.post(UPDATE, {"id": bob, "email": "ADA@example.com"})["lead"]
        assert updated["clientId"] == adas
        clients = [api.get(f"/api/clients/{client_id}")["client"] for client_id in (adas, bobs)]
        counts = [client["leadsCount"] for client in clients]
        assert counts == [2, 0]
        alone = api.post(UPDATE, {"id": bob, "email": "eve@example.com"})["lead"]
        assert alone["clientId"] not in {adas, bobs}
        nobody = api.post(UPDATE, {"id": bob, "email": None})["lead"]
        assert nobody["clientId"] is None
        assert api.get("/api/crm/stats")["clients"] == {"total": 3, "new": 3}

    def test_an_invalid_phone_is_stored_but_matches_no_client(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada", phone="84951234567")
        updated = api.post(UPDATE, {"id": lead_id, "phone": "only evenings"})["lead"]
        assert (updated["phone"], updated["clientId"]) == (None, None)
        assert updated["phoneEntered"] == "only evenings"
        assert list_lead_ids(api, search="evenings") == [lead_id]


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_patches_merge_as_rfc_7396_shows(target: object, patch: object, merged: object) -> None:
    assert merge(target, patch=patch) == merged

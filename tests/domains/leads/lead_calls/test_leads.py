"""Operations on leads and on the orders of a client."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.ids import new_id
from tests.conftest import Api, Owner, Time, all_rows, call_console
from tests.domains.leads.lead_calls.helpers import FIND, GET, LIST, ORDERS, STATUS, UPDATE, new_form
from tests.factories.examples import submit


def list_lead_ids(api: Api, **query: Any) -> list[str]:
    page = api.get(f"{LIST}?{urlencode(query)}")
    assert page["total"] == len(page["collections"])
    return [lead["id"] for lead in page["collections"]]


def lead(api: Api, lead_id: str) -> Any:
    return api.get(f"{GET}/{lead_id}")["lead"]


class TestListLeads:
    def test_leads_are_listed_newest_first_and_filtered_by_status_form_and_site(
        self, api: Api, form: str
    ) -> None:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        other = new_form(api, projectId=site)
        first, second = submit(form, name="Ada"), submit(other, name="Bob")
        third = submit(form, name="Eve")
        api.post(STATUS, {"id": third, "status": "rejected"})
        assert list_lead_ids(api) == [third, second, first]
        assert list_lead_ids(api, status="new") == [second, first]
        assert list_lead_ids(api, formId=form) == [third, first]
        assert list_lead_ids(api, formId=form, status="rejected") == [third]
        assert list_lead_ids(api, projectId=site) == [second]
        assert list_lead_ids(api, formId=form, projectId=site) == []
        assert list_lead_ids(api, formId=new_id()) == []

    @pytest.mark.parametrize(
        "search",
        [
            "8 921 765 43 21",
            "+7 (921) 765-43-21",
            "\u202a8 921 765\u20114321\u202c",
            "921 7654321",
            "8 921 765",
            "8(921)76",
            "+7 921 76",
            "765-43-21",
            "43 21",
        ],
    )
    def test_a_phone_is_found_in_any_spelling(
        self, search: str, api: Api, owner: Owner, form: str
    ) -> None:
        ids = [
            submit(form, name="Ёж", phone=f"{spelling}21")
            for spelling in ("+792176543", "8(921)765-43-")
        ]
        submit(form, name="Ada", phone="8 903 111-22-33")
        assert list_lead_ids(api, search=search) == ids[::-1]
        exported = call_console(owner.workspace.id, "export_leads", search=search)
        assert len(exported["rows"]) == 2

    @pytest.mark.parametrize("search", ["2027-01-15", "15.01.2027", "195.5"])
    def test_dates_and_amounts_are_searched_literally(
        self, search: str, api: Api, form: str
    ) -> None:
        lead_id = submit(form, name="Ada", message=f"on {search}")
        submit(form, name="Bob", message="20270115 15012027 1955")
        assert list_lead_ids(api, search=search) == [lead_id]

    @pytest.mark.parametrize(
        "search", ["ёжик", "ЕЖИК", "колючий", "ADA@", "1234567", "street", "перезвон", "日本"]
    )
    def test_the_search_covers_all_submitted_values_and_the_notes(
        self, search: str, api: Api, form: str
    ) -> None:
        lead_id = submit(
            form,
            name="Ёжик",
            email="Ada@Example.com",
            phone="8 (495) 123-45-67",
            message="Колючий, 5th Street, 日本語",
        )
        submit(form, name="Nobody")
        api.post(UPDATE, {"id": lead_id, "notes": "Перезвонить"})
        assert list_lead_ids(api, search=search) == [lead_id]

    def test_dates_are_in_the_workspaces_zone_and_times_may_have_an_offset(
        self, api: Api, form: str, time: Time
    ) -> None:
        moments = ["2027-03-09T20:59:59.999Z", "2027-03-09T21:00:00Z", "2027-03-10T20:59:59.999Z"]
        ids = []
        for moment in moments:
            time.now = datetime.fromisoformat(moment)
            ids.append(submit(form, name="Ada"))
        assert list_lead_ids(api, **{"from": "2027-03-10", "to": "2027-03-10"}) == ids[:0:-1]
        assert list_lead_ids(api, to="2027-03-09") == ids[:1]
        assert list_lead_ids(api, **{"from": "2027-03-10T00:00:00"}) == ids[:0:-1]
        assert list_lead_ids(api, **{"from": "2027-03-09T21:00:00.001Z"}) == ids[2:]
        assert list_lead_ids(api, to="2027-03-10T02:00:00+05:00") == ids[1::-1]

    @pytest.mark.parametrize("when", ["yesterday", "0001-01-01", "9999-12-31", "2027-02-30", "1"])
    def test_an_invalid_date_is_refused(self, when: str, api: Api) -> None:
        answer = api.call_refused("GET", f"{LIST}?{urlencode({'from': when})}")
        assert answer.status == 400
        assert "from" in answer.data["message"]

    def test_pages_of_up_to_500_are_allowed(self, api: Api, form: str) -> None:
        for number in range(3):
            submit(form, name=f"Ada {number}")
        page = api.get(f"{LIST}?size=2&page=2")
        assert (len(page["collections"]), page["total"]) == (1, 3)
        assert api.get(f"{LIST}?size=500")["total"] == 3
        assert api.call_refused("GET", f"{LIST}?size=501").status == 400


class TestFindLead:
    @pytest.mark.parametrize("phone", ["8 (495) 123-45-67", "+74951234567", "4951234567"])
    def test_a_phone_is_found_in_any_spelling(self, phone: str, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada", phone="+7 495 123 45 67")
        submit(form, name="Bob", phone="+7 495 123 45 68")
        answer = api.get(f"{FIND}?{urlencode({'phone': phone})}")
        assert [found_lead["id"] for found_lead in answer["leads"]] == [lead_id]
        assert (answer["total"], answer["client"]["phone"]) == (1, "+74951234567")

    def test_an_extension_is_another_phone(self, api: Api, form: str) -> None:
        plain = submit(form, name="Ada", phone="8 495 123-45-67")
        inner = submit(form, name="Bob", phone="8 495 123-45-67 доб. 5")
        for phone, lead_id in (("84951234567", plain), ("84951234567 ext 5", inner)):
            answer = api.get(f"{FIND}?{urlencode({'phone': phone})}")
            assert [found_lead["id"] for found_lead in answer["leads"]] == [lead_id]
        assert lead(api, plain)["clientId"] != lead(api, inner)["clientId"]

    def test_phone_or_email_matches_and_the_email_selects_the_client(
        self, api: Api, form: str
    ) -> None:
        ada = submit(form, name="Ada", email="ada@example.com")
        bob = submit(form, name="Bob", phone="84951234567")
        answer = api.get(f"{FIND}?email=ADA@example.com&phone=84951234567")
        assert [found_lead["id"] for found_lead in answer["leads"]] == [bob, ada]
        assert answer["client"]["id"] == lead(api, ada)["clientId"]

    @pytest.mark.parametrize("query", ["email=nobody@example.com", "phone=call me", "email=x"])
    def test_no_match_is_an_empty_list(self, query: str, api: Api) -> None:
        answer = api.get(f"{FIND}?{query.replace(' ', '+')}")
        assert (answer["leads"], answer["total"], answer["client"]) == ([], 0, None)

    def test_a_phone_or_email_is_required(self, api: Api) -> None:
        assert "email, phone or both" in api.call_refused("GET", FIND).data["message"]

    def test_search_by_name_is_refused_with_the_supporting_call(self, api: Api) -> None:
        failed, answer = api.tool("svc_find_lead", name="Ada")
        assert failed
        assert "use search of svc_list_leads" in answer["data"]["message"]
        message = api.call_refused("GET", f"{FIND}?name=Ada").data["message"]
        assert "use search of GET /api/forms/collection-list" in message

    def test_the_newest_fifty_leads_are_returned(self, api: Api, form: str) -> None:
        ids = [submit(form, name="Ada", email="ada@example.com") for _ in range(52)]
        answer = api.get(f"{FIND}?email=ada@example.com")
        assert [found_lead["id"] for found_lead in answer["leads"]] == ids[:1:-1]
        assert answer["total"] == 52

    def test_phones_are_read_by_the_workspaces_country(self, new_owner: Any) -> None:
        owner = new_owner()
        owner.workspace.country = "US"
        owner.workspace.save()
        api = owner.api()
        lead_id = submit(new_form(api), name="Ada", phone="(212) 555-0123")
        assert lead(api, lead_id)["phone"] == "+12125550123"
        assert api.get(f"{FIND}?phone=1-212-555-0123")["total"] == 1


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
            assert (refusal.status, refusal.data["errors"][0]["field"]) == (400, field)
            assert "omit the field" in refusal.data["message"]
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
        assert "only the visitor can give" in api.call_refused("POST", UPDATE, body).data["message"]

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
        assert (updated["phone"], updated["clientId"]) == ("only evenings", None)
        assert list_lead_ids(api, search="evenings") == [lead_id]


class TestOrders:
    def test_all_orders_of_the_client_are_listed(self, api: Api, form: str) -> None:
        rye, bun = (
            api.post("/api/products/create", {"name": name, "price": price})["product"]["id"]
            for name, price in (("Rye", 9900), ("Bun", 4500))
        )
        ada = {"name": "Ada", "email": "ada@example.com"}
        first = submit(form, **ada, items=[{"productId": rye, "quantity": 2}, {"productId": bun}])
        plain = submit(form, **ada)
        submit(form, name="Bob", email="bob@example.com", items=[{"productId": bun}])
        second = submit(form, **ada, items=[{"productId": bun}])
        response = api.get(f"{ORDERS}?id={plain}")
        assert [(o["id"], o["kind"], o["status"]) for o in response["orders"]] == [
            (second, "order", "new"),
            (first, "order", "new"),
        ]
        assert [order["total"] for order in response["orders"]] == [4500, 24300]
        assert response["orders"][1]["items"][0] == {
            "productId": rye,
            "serviceId": None,
            "name": "Rye",
            "quantity": 2,
            "price": 9900,
        }
        page = api.get(f"{ORDERS}?id={plain}&size=1&page=2")
        assert ([o["id"] for o in page["orders"]], page["total"]) == ([first], 2)

    def test_a_lead_without_a_client_has_only_its_own_order(self, api: Api, form: str) -> None:
        rye = api.post("/api/products/create", {"name": "R" * 200, "price": 1})["product"]["id"]
        order = submit(form, name="Ada", items=[{"productId": rye}] * 50)
        plain = submit(form, name="Ada")
        assert api.get(f"{ORDERS}?id={plain}")["total"] == 0
        (found_order,) = api.get(f"{ORDERS}?id={order}")["orders"]
        assert (len(found_order["items"]), found_order["total"]) == (50, 50)
        assert api.get(f"{ORDERS}?id={order}&page=2")["orders"] == []

    def test_long_orders_of_a_client_are_returned_in_full(self, api: Api, form: str) -> None:
        rye = api.post("/api/products/create", {"name": "R" * 200, "price": 1})["product"]["id"]
        ada = {"name": "Ada", "email": "ada@example.com"}
        order = submit(form, **ada, items=[{"productId": rye}] * 50)
        (found_order,) = api.get(f"{ORDERS}?id={order}")["orders"]
        assert len(found_order["items"]) == 50

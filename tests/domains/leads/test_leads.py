"""Tests of how leads are listed, and found by contact."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.ids import new_id
from tests.conftest import Api, Owner, Time, call_console
from tests.domains.leads.helpers import FIND, GET, LIST, STATUS, UPDATE
from tests.factories.examples import submit
from tests.factories.forms import new_form


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
        answer = api.call_refused("GET", FIND)
        assert (answer.status, answer.data["key"]) == (400, "no_contact")

    def test_search_by_name_is_refused_with_the_supporting_call(self, api: Api) -> None:
        failed, answer = api.tool("svc_find_lead", name="Ada")
        assert failed
        assert "svc_list_leads" in answer["data"]["message"]
        message = api.call_refused("GET", f"{FIND}?name=Ada").data["message"]
        assert "GET /api/forms/collection-list" in message

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

"""Clients: one a person, and what the client calls promise (tools.md, rows 22, 23 and 27)."""

from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from tests.conftest import Api, Owner, Time, as_operator, everything
from tests.factories.examples import FORM, submit

LIST, UPDATE = "/api/clients/list", "/api/clients/update"


@pytest.fixture
def form(api: Api) -> str:
    made: str = api.post("/api/forms/create", FORM)["form"]["id"]
    return made


def client_of(api: Api, lead_id: str) -> Any:
    lead = api.get(f"/api/forms/collection/{lead_id}")["lead"]
    return api.get(f"/api/clients/{lead['clientId']}")["client"]


def names(api: Api, **query: str) -> list[str]:
    found = api.get(f"{LIST}?{urlencode(query)}")
    assert found["total"] == len(found["clients"])
    return [client["name"] for client in found["clients"]]


class TestOneClientAPerson:
    def test_known_by_address_or_number(self, api: Api, form: str) -> None:
        first = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        second = client_of(
            api, submit(form, name="A. L.", email="ADA@example.com", phone="84951234567")
        )
        third = client_of(api, submit(form, name="Countess", phone="+7 495 123-45-67"))
        assert first["id"] == second["id"] == third["id"]
        assert (third["name"], third["email"]) == ("Ada", "ada@example.com")
        assert (third["phone"], third["leadsCount"]) == ("+74951234567", 3)
        assert api.get(LIST)["total"] == 1

    def test_the_address_wins_over_the_number_and_nothing_is_merged(
        self, api: Api, form: str
    ) -> None:
        by_email = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        by_phone = client_of(api, submit(form, name="Bob", phone="84951234567"))
        both = submit(form, name="Eve", email="ada@example.com", phone="84951234567")
        assert client_of(api, both)["id"] == by_email["id"]
        assert client_of(api, both)["phone"] is None
        assert api.get(f"/api/forms/collection/{both}")["lead"]["phone"] == "+74951234567"
        assert api.get(f"/api/clients/{by_phone['id']}")["client"] == by_phone

    def test_a_visitor_fills_what_is_empty_but_overwrites_nothing(
        self, api: Api, form: str
    ) -> None:
        submit(form, name="Ada", email="ada@example.com", phone="84951234567")
        other = submit(form, name="Mallory", email="ada@example.com", phone="84951234568")
        kept = client_of(api, other)
        assert (kept["name"], kept["phone"], kept["leadsCount"]) == ("Ada", "+74951234567", 2)
        assert api.get(f"/api/forms/collection/{other}")["lead"]["phone"] == "+74951234568"
        late = client_of(api, submit(form, name="Bob", phone="84951234568"))
        assert late["id"] != kept["id"]

    def test_the_number_of_who_also_gives_a_new_address_gets_the_address(
        self, api: Api, form: str
    ) -> None:
        client = client_of(api, submit(form, name="Ada", phone="84951234567"))
        again = submit(form, name="Ada", phone="84951234567", email="ada@example.com")
        assert client_of(api, again)["id"] == client["id"]
        assert client_of(api, again)["email"] == "ada@example.com"


class TestListClients:
    def test_sorts_by_name_as_people_do(self, api: Api, form: str) -> None:
        for number, name in enumerate(("Жуков", "ёлкина", "Ева", "Ежов")):
            submit(form, name=name, email=f"{number}@example.com")
        assert names(api, sort="nameAsc") == ["Ева", "Ежов", "ёлкина", "Жуков"]

    def test_the_newest_lead_is_the_last_activity(self, api: Api, form: str, time: Time) -> None:
        for name in ("Ada", "Bob", "Eve", "Ada"):
            time.pass_by(minutes=1)
            submit(form, name=name, email=f"{name}@example.com")
        assert names(api, sort="lastActivityDesc") == ["Ada", "Eve", "Bob"]
        assert names(api, sort="createdAtDesc") == ["Eve", "Bob", "Ada"]

    @pytest.mark.parametrize("search", ["ёлк", "ADA@", "4951234567"])
    def test_searches_name_address_and_number(self, search: str, api: Api, form: str) -> None:
        submit(form, name="Ёлкина", email="ada@example.com", phone="84951234567")
        submit(form, name="Bob", email="bob@example.com")
        assert names(api, search=search) == ["Ёлкина"]

    def test_filters_by_a_whole_tag(self, api: Api, form: str) -> None:
        ada = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        bob = client_of(api, submit(form, name="Bob", email="bob@example.com"))
        api.post(UPDATE, {"id": ada["id"], "tags": ["VIP", "new"]})
        api.post(UPDATE, {"id": bob["id"], "tags": ["vip-2"]})
        assert names(api, tag="vip") == ["Ada"]
        assert names(api, tag="ne") == []


class TestUpdateClient:
    def test_sets_tags_notes_and_contacts(self, api: Api, form: str) -> None:
        client = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        change = {
            "name": "Countess",
            "email": "Countess@example.com",
            "phone": "8 (495) 123-45-67",
            "tags": ["vip"],
            "notes": "Rye",
        }
        changed = api.post(UPDATE, {"id": client["id"], **change})["client"]
        assert changed["email"] == "countess@example.com"
        assert changed["phone"] == "+74951234567"
        assert (changed["name"], changed["tags"], changed["notes"]) == ("Countess", ["vip"], "Rye")
        assert client_of(api, submit(form, name="A", phone="84951234567"))["id"] == client["id"]
        assert client_of(api, submit(form, name="A", email="ada@example.com"))["id"] != client["id"]

    @pytest.mark.parametrize("field", ["email", "phone"])
    def test_refuses_a_contact_of_another_and_names_it(
        self, field: str, api: Api, form: str
    ) -> None:
        theirs = {"email": "bob@example.com", "phone": "84951234567"}
        bob = client_of(api, submit(form, name="Bob", **theirs))
        ada = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        body = {"id": ada["id"], field: theirs[field]}
        answer = api.refused("POST", UPDATE, body)
        assert (answer.status, answer.data["code"]) == (409, "duplicate_client")
        assert answer.data["clientId"] == bob["id"]
        api.post(UPDATE, {"id": bob["id"], field: None})
        api.post(UPDATE, body)
        api.post(UPDATE, body)

    def test_refuses_a_phone_that_is_no_number(self, api: Api, form: str) -> None:
        client = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        body = {"id": client["id"], "phone": "only evenings"}
        assert api.refused("POST", UPDATE, body).status == 400


ADA = {"name": "Ада", "email": "ada@example.com", "phone": "84951234567"}
SECRETS = ("Ада", "ада", "ada@", "4951234567", "Ржаной", "ржаной", "Secret", "secret")


class TestEraseClient:
    def erase(self, owner: Owner, **whom: str) -> Any:
        return as_operator("erase_client", workspaceId=owner.workspace.id, **whom)

    @pytest.mark.parametrize("by", ["clientId", "email", "phone"])
    def test_removes_what_is_known_and_keeps_what_was_counted(
        self, by: str, api: Api, owner: Owner, form: str
    ) -> None:
        first = submit(form, **ADA, message="Ржаной " * 500)
        second = submit(
            form, name="Ада", email="ada@example.com", message="Secret", idempotency_key="k"
        )
        bob = submit(form, name="Bob", email="bob@example.com")
        client = client_of(api, first)
        api.post("/api/forms/collection-update", {"id": second, "notes": "Secret"})
        api.post(UPDATE, {"id": client["id"], "notes": "Secret", "tags": ["secret"]})
        api.post("/api/forms/collection-status", {"id": first, "status": "completed"})
        before = api.get("/api/crm/stats")
        whom = {"clientId": client["id"], "email": "ADA@example.com", "phone": "8 495 123 45 67"}
        gone = self.erase(owner, **{by: whom[by]})
        assert gone == {
            "clientId": client["id"],
            "leads": 2,
            "bookings": 0,
            "dialogs": 0,
            "storedAnswers": 1,
        }
        rows = str(everything())
        assert [secret for secret in SECRETS if secret in rows] == []
        assert api.get("/api/crm/stats") == before
        left = api.get(f"/api/clients/{client['id']}")["client"]
        assert (left["name"], left["email"], left["phone"], left["tags"]) == (None, None, None, [])
        assert left["leadsCount"] == 2
        lead = api.get(f"/api/forms/collection/{first}")["lead"]
        assert (lead["status"], lead["data"], lead["source"]) == ("completed", {}, None)
        assert api.get("/api/forms/collection-find?email=ada@example.com")["total"] == 0
        assert api.get(f"/api/forms/collection/{bob}")["lead"]["name"] == "Bob"
        assert client_of(api, submit(form, **ADA))["id"] != client["id"]

    def test_stored_answers_of_others_stay(self, api: Api, owner: Owner, form: str) -> None:
        submit(form, **ADA)
        api.post("/api/products/create", {"name": "Rye", "price": 1}, key="k")
        (stored,) = [key for key in everything() if "IDEMPOTENCY" in key]
        assert self.erase(owner, email="ada@example.com")["storedAnswers"] == 0
        assert stored in everything()

    def test_takes_leads_of_others_that_have_the_number(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        submit(form, name="Eve", email="eve@example.com")
        bob = submit(form, name="Bob", phone="84951234567")
        eve = submit(form, name="Eve", phone="84951234567", email="eve@example.com")
        assert self.erase(owner, clientId=client_of(api, bob)["id"])["leads"] == 2
        assert api.get(f"/api/forms/collection/{eve}")["lead"]["phone"] is None
        assert client_of(api, eve)["name"] == "Eve"

    def test_works_through_any_number_of_leads(self, api: Api, owner: Owner, form: str) -> None:
        for _ in range(23):
            submit(form, **ADA)
        assert self.erase(owner, email="ada@example.com")["leads"] == 23
        assert self.erase(owner, clientId=api.get(LIST)["clients"][0]["id"])["leads"] == 23

    def test_nobody_is_not_found(self, owner: Owner) -> None:
        for whom in ({"email": "nobody@example.com"}, {"clientId": new_id()}):
            with pytest.raises(NotFoundError):
                self.erase(owner, **whom)

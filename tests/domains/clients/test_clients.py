"""Tests of how clients are listed and updated."""

from urllib.parse import urlencode

import pytest

from chalicelib.domains.clients.flows.client_models import ClientPatch
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from tests.conftest import Api, Time
from tests.factories.examples import submit
from tests.factories.forms import client_of

LIST, UPDATE = "/api/clients/list", "/api/clients/update"


def names(api: Api, **query: str) -> list[str]:
    page = api.get(f"{LIST}?{urlencode(query)}")
    assert page["total"] == len(page["clients"])
    return [client["name"] for client in page["clients"]]


class TestListClients:
    def test_names_sort_in_russian_alphabetical_order_in_any_case(
        self, api: Api, form: str
    ) -> None:
        for number, name in enumerate(("Жуков", "ёлкина", "Ева", "Ежов")):
            submit(form, name=name, email=f"{number}@example.com")
        assert names(api, sort="nameAsc") == ["Ева", "Ежов", "ёлкина", "Жуков"]

    def test_the_newest_lead_is_the_last_activity(self, api: Api, form: str, time: Time) -> None:
        for name in ("Ada", "Bob", "Eve", "Ada"):
            time.pass_by(minutes=1)
            submit(form, name=name, email=f"{name}@example.com")
        assert names(api, sort="lastActivityDesc") == ["Ada", "Eve", "Bob"]
        assert names(api, sort="createdAtDesc") == ["Eve", "Bob", "Ada"]

    @pytest.mark.parametrize(
        "search", ["ёлк", "ADA@", "4951234567", "8 (495) 123-45-67", "123-45-67", "8 495 12"]
    )
    def test_the_search_covers_name_email_and_phone(self, search: str, api: Api, form: str) -> None:
        submit(form, name="Ёлкина", email="ada@example.com", phone="84951234567")
        submit(form, name="Bob", email="bob@example.com")
        assert names(api, search=search) == ["Ёлкина"]

    def test_the_tag_filter_matches_whole_tags(self, api: Api, form: str) -> None:
        ada = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        bob = client_of(api, submit(form, name="Bob", email="bob@example.com"))
        api.post(UPDATE, {"id": ada["id"], "tags": ["VIP", "new"]})
        api.post(UPDATE, {"id": bob["id"], "tags": ["vip-2"]})
        assert names(api, tag="vip") == ["Ada"]
        assert names(api, tag="ne") == []


class TestUpdateClient:
    def test_an_update_sets_tags_notes_and_contacts(self, api: Api, form: str) -> None:
        client = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        change = {
            "name": "Countess",
            "email": "Countess@example.com",
            "phone": "8 (495) 123-45-67",
            "tags": ["vip"],
            "notes": "Rye",
        }
        current = api.post(UPDATE, {"id": client["id"], **change})["client"]
        assert current["email"] == "Countess@example.com"
        assert current["phone"] == "+74951234567"
        assert (current["name"], current["tags"], current["notes"]) == ("Countess", ["vip"], "Rye")
        assert client_of(api, submit(form, name="A", phone="84951234567"))["id"] == client["id"]
        assert client_of(api, submit(form, name="A", email="ada@example.com"))["id"] != client["id"]

    @pytest.mark.parametrize("field", ["email", "phone"])
    def test_a_contact_of_another_client_is_refused_and_named(
        self, field: str, api: Api, form: str
    ) -> None:
        theirs = {"email": "bob@example.com", "phone": "84951234567"}
        bob = client_of(api, submit(form, name="Bob", **theirs))
        ada = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        body = {"id": ada["id"], field: theirs[field]}
        answer = api.call_refused("POST", UPDATE, body)
        assert (answer.status, answer.data["code"]) == (409, "duplicate_client")
        assert answer.data["clientId"] == bob["id"]
        api.post(UPDATE, {"id": bob["id"], field: None})
        api.post(UPDATE, body)
        api.post(UPDATE, body)

    @pytest.mark.parametrize("day", ["1899-12-31", "2999-01-01", "24.12.1985", "1985-02-30", ""])
    def test_a_birthday_is_a_date_from_1900_until_today(
        self, day: str, api: Api, form: str
    ) -> None:
        client = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        body = {"id": client["id"], "birthday": "1985-12-24"}
        assert api.post(UPDATE, body)["client"]["birthday"] == "1985-12-24"
        refusal = api.call_refused("POST", UPDATE, {"id": client["id"], "birthday": day})
        assert (refusal.status, refusal.data["errors"][0]["field"]) == (400, "birthday")
        assert (
            api.post(UPDATE, {"id": client["id"], "birthday": None})["client"]["birthday"] is None
        )

    def test_an_invalid_phone_is_refused(self, api: Api, form: str) -> None:
        client = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        body = {"id": client["id"], "phone": "only evenings"}
        assert api.call_refused("POST", UPDATE, body).status == 400


class TestUpdatedEvent:
    @staticmethod
    def is_sent(**changes: object) -> bool:
        old, new = (
            ClientRow("W#1#CLIENT", "1", **others)
            for others in ({"name": "Ada"}, {"name": "Ada"} | changes)
        )
        return CLIENTS.events["client.updated"](old, new)

    @pytest.mark.parametrize(
        "field", sorted(ClientPatch.model_fields.keys() - ClientPatch.CONDITIONS)
    )
    def test_a_change_of_each_field_of_an_update_is_an_event(self, field: str) -> None:
        assert self.is_sent(**{field: "other"})

    @pytest.mark.parametrize("field", ["leads_count", "bookings_count", "last_activity"])
    def test_a_new_lead_or_booking_is_none(self, field: str) -> None:
        assert not self.is_sent(**{field: 7})

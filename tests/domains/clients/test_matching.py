"""Tests of how a visitor is recognised as one client."""

import pytest

from tests.conftest import Api
from tests.factories.examples import submit
from tests.factories.forms import client_of


class TestOneClientAPerson:
    def test_a_person_is_recognised_by_email_or_phone(self, api: Api, form: str) -> None:
        first = client_of(
            api, submit(form, name="Ada", email="ada@example.com", phone="84951234567")
        )
        second = client_of(api, submit(form, name="A. L.", email="ADA@example.com"))
        third = client_of(api, submit(form, name="Countess", phone="+7 495 123-45-67"))
        assert first["id"] == second["id"] == third["id"]
        assert (third["name"], third["email"]) == ("Ada", "ada@example.com")
        assert (third["phone"], third["leadsCount"]) == ("+74951234567", 3)
        assert api.get("/api/clients/list")["total"] == 1

    def test_the_email_takes_precedence_over_the_phone_and_nothing_is_merged(
        self, api: Api, form: str
    ) -> None:
        by_email = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        by_phone = client_of(api, submit(form, name="Bob", phone="84951234567"))
        both = submit(form, name="Eve", email="ada@example.com", phone="84951234567")
        assert client_of(api, both)["id"] == by_email["id"]
        assert client_of(api, both)["phone"] is None
        assert api.get(f"/api/forms/collection/{both}")["lead"]["phone"] == "+74951234567"
        assert api.get(f"/api/clients/{by_phone['id']}")["client"] == by_phone

    @pytest.mark.parametrize(
        ("has", "gives"),
        [
            ({"email": "ada@example.com"}, {"phone": "+74951234568"}),
            ({"phone": "+74951234567"}, {"email": "mallory@example.com"}),
            ({"email": "ada@example.com", "phone": "+74951234567"}, {"phone": "+74951234568"}),
        ],
    )
    def test_a_visitors_contacts_stay_on_the_lead_and_change_no_client(
        self, has: dict[str, str], gives: dict[str, str], api: Api, form: str
    ) -> None:
        client_before = client_of(api, submit(form, name="Ada", **has))
        other = submit(form, name="Mallory", **{**has, **gives})
        client_after = client_of(api, other)
        same = ("id", "name", "email", "phone")
        assert [client_after[name] for name in same] == [client_before[name] for name in same]
        assert client_after["leadsCount"] == 2
        lead = api.get(f"/api/forms/collection/{other}")["lead"]
        assert {name: lead[name] for name in gives} == gives
        assert client_of(api, submit(form, name="Mallory", **gives))["id"] != client_after["id"]

    def test_a_key_fills_in_only_the_clients_empty_fields(self, api: Api, form: str) -> None:
        ada = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        theirs = submit(form, name="Mallory", email="m@example.com", phone="84951234567")
        change = {"id": theirs, "email": "ada@example.com"}
        assert api.post("/api/forms/collection-update", change)["lead"]["clientId"] == ada["id"]
        assert client_of(api, theirs)["phone"] is None
        api.post("/api/forms/collection-update", {"id": theirs, "phone": "84951234568"})
        client = client_of(api, theirs)
        assert (client["id"], client["name"], client["phone"]) == (ada["id"], "Ada", "+74951234568")

"""Tests of clients, of how a visitor is recognised as one client, and of erasures."""

from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.domains.client_profiles.operations import erasure
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.factories.examples import FORM, submit

LIST, UPDATE = "/api/clients/list", "/api/clients/update"


@pytest.fixture
def form(api: Api) -> str:
    form_id: str = api.post("/api/forms/create", FORM)["form"]["id"]
    return form_id


def client_of(api: Api, lead_id: str) -> Any:
    lead = api.get(f"/api/forms/collection/{lead_id}")["lead"]
    return api.get(f"/api/clients/{lead['clientId']}")["client"]


def names(api: Api, **query: str) -> list[str]:
    page = api.get(f"{LIST}?{urlencode(query)}")
    assert page["total"] == len(page["clients"])
    return [client["name"] for client in page["clients"]]


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
        assert api.get(LIST)["total"] == 1

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

    def test_an_invalid_phone_is_refused(self, api: Api, form: str) -> None:
        client = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        body = {"id": client["id"], "phone": "only evenings"}
        assert api.call_refused("POST", UPDATE, body).status == 400


ADA = {"name": "Ада", "email": "ada@example.com", "phone": "84951234567"}
SECRETS = ("Ада", "ада", "ada@", "4951234567", "Ржаной", "ржаной", "Secret", "secret")


class TestEraseClient:
    def erase(self, owner: Owner, **whom: str) -> Any:
        return call_operator("erase_client", workspaceId=owner.workspace.id, **whom)

    @pytest.mark.parametrize("by", ["clientId", "email", "phone"])
    def test_erasure_removes_personal_data_and_keeps_counts(
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
        stats_before = api.get("/api/crm/stats")
        whom = {"clientId": client["id"], "email": "ADA@example.com", "phone": "8 495 123 45 67"}
        gone = self.erase(owner, **{by: whom[by]})
        assert gone.pop("clientIds") == [client["id"]]
        found_records = [{record["kind"], record["id"]} for record in gone.pop("found")]
        assert found_records == [{"client", client["id"]}, {"lead", first}, {"lead", second}]
        assert gone == {
            "erased": True,
            "clientId": client["id"],
            "leads": 2,
            "bookings": 0,
            "cancelledBookings": [],
            "dialogs": 0,
            "storedAnswers": 1,
            "linkedClients": [],
        }
        rows = str(all_rows())
        assert [secret for secret in SECRETS if secret in rows] == []
        assert api.get("/api/crm/stats") == stats_before
        row = api.get(f"/api/clients/{client['id']}")["client"]
        assert (row["name"], row["email"], row["phone"], row["tags"]) == (None, None, None, [])
        assert row["leadsCount"] == 2
        lead = api.get(f"/api/forms/collection/{first}")["lead"]
        assert (lead["status"], lead["data"], lead["source"]) == ("completed", {}, None)
        assert api.get("/api/forms/collection-find?email=ada@example.com")["total"] == 0
        assert api.get(f"/api/forms/collection/{bob}")["lead"]["name"] == "Bob"
        assert client_of(api, submit(form, **ADA))["id"] != client["id"]

    def test_stored_responses_of_other_clients_are_kept(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        submit(form, **ADA)
        api.post("/api/products/create", {"name": "Rye", "price": 1}, key="k")
        stored_keys = {key for key in all_rows() if "IDEMPOTENCY" in key}
        assert self.erase(owner, email="ada@example.com")["storedAnswers"] == 0
        assert len(stored_keys) == 2
        assert stored_keys <= all_rows().keys()

    def test_erasure_includes_other_visitors_leads_with_the_phone(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        submit(form, name="Eve", email="eve@example.com")
        bob = submit(form, name="Bob", phone="84951234567")
        eve = submit(form, name="Eve", phone="84951234567", email="eve@example.com")
        assert self.erase(owner, clientId=client_of(api, bob)["id"])["leads"] == 2
        assert api.get(f"/api/forms/collection/{eve}")["lead"]["phone"] is None
        assert client_of(api, eve)["name"] == "Eve"

    def test_erasure_processes_any_number_of_leads(self, api: Api, owner: Owner, form: str) -> None:
        for _ in range(23):
            submit(form, **ADA)
        assert self.erase(owner, email="ada@example.com")["leads"] == 23
        assert self.erase(owner, clientId=api.get(LIST)["clients"][0]["id"])["leads"] == 23

    def test_erasing_a_lead_with_a_clients_email_keeps_the_client(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        ada = client_of(api, submit(form, name="Ada", email="ada@example.com"))
        theirs = submit(form, name="Mallory", email="ada@example.com", phone="84951234567")
        erased = self.erase(owner, phone="84951234567")
        assert (erased["clientId"], erased["leads"]) == (None, 1)
        linked = {"id": ada["id"], "name": "Ada", "email": "ada@example.com", "phone": None}
        assert erased["linkedClients"] == [linked]
        assert api.get(f"/api/forms/collection/{theirs}")["lead"]["email"] is None
        client = api.get(f"/api/clients/{ada['id']}")["client"]
        assert (client["name"], client["email"]) == ("Ada", "ada@example.com")
        assert "Mallory" not in str(all_rows())

    def test_a_dry_run_lists_records_with_contacts_and_removes_nothing(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        lead = submit(form, **ADA, message="or ada@work.example.com")
        client = client_of(api, lead)
        rows_before = all_rows()
        report = call_operator(
            "erase_client", workspaceId=owner.workspace.id, email=ADA["email"], dryRun=True
        )
        assert all_rows() == rows_before
        assert (report["erased"], report["leads"], report["storedAnswers"]) == (False, 1, 0)
        who = {"name": "Ада", "email": "ada@example.com", "phone": "+74951234567"}
        by = {"foundBy": "contact"}
        other = {"namedContacts": ["ada@work.example.com"]}
        assert report["found"] == [
            {"kind": "client", "id": client["id"], **by, **who, "namedContacts": []},
            {"kind": "lead", "id": lead, **by, **who, **other},
        ]

    @pytest.mark.parametrize("former", ["ada@example.com", "84951234567"])
    def test_a_former_contact_of_the_client_is_found(
        self, former: str, api: Api, owner: Owner, form: str
    ) -> None:
        client = client_of(api, submit(form, **ADA))
        now = {"email": "ada@new.example.com", "phone": "84951234568"}
        api.post(UPDATE, {"id": client["id"], **now})
        submit(form, name="Ада", email=now["email"], message="Secret")
        name = "email" if "@" in former else "phone"
        erased = self.erase(owner, **{name: former})
        assert (erased["clientId"], erased["leads"]) == (client["id"], 2)
        rows = str(all_rows())
        secrets = (*SECRETS, "ada@new", "4951234568")
        assert [secret for secret in secrets if secret in rows] == []

    def test_a_former_contact_from_before_the_index_existed_is_found(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        client = client_of(api, submit(form, name="Ада", email="ada@example.com"))
        api.post(UPDATE, {"id": client["id"], "email": "ada@new.example.com"})
        row = CLIENTS.find(owner.workspace.id, client["id"])
        assert row is not None

        def stage(unit: UnitOfWork) -> None:
            row.named_contacts = None
            unit.save(row)

        run_unit(owner.workspace.id, None, stage)
        assert self.erase(owner, email="ada@example.com")["clientId"] == client["id"]
        assert "ada@new" not in str(all_rows())

    @pytest.mark.parametrize("where", ["changed by a key", "in the text"])
    def test_another_contact_of_a_lead_is_found(
        self, where: str, api: Api, owner: Owner, form: str
    ) -> None:
        text = "Ржаной, or 8 916 123-45-67, ada@work.example.com" if where == "in the text" else ""
        lead = submit(form, **ADA, message=text)
        if not text:
            api.post("/api/forms/collection-update", {"id": lead, "email": "ada@work.example.com"})
        for contact in ({"phone": "89161234567"}, {"email": "ada@work.example.com"})[not text :]:
            report = call_operator(
                "erase_client", workspaceId=owner.workspace.id, dryRun=True, **contact
            )
            assert report["leads"] == 1
        assert self.erase(owner, email="ada@example.com")["leads"] == 1
        assert [secret for secret in SECRETS if secret in str(all_rows())] == []

    @pytest.mark.parametrize("stop", range(1, 6))
    def test_a_second_call_finishes_an_erasure_interrupted_at_any_step(
        self, stop: int, api: Api, owner: Owner, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = client_of(api, submit(form, name="Ада", email="ada@example.com"))
        api.post(UPDATE, {"id": client["id"], "email": "ada@new.example.com"})
        for number in range(3):
            submit(form, name="Ада", email="ada@new.example.com", message=f"Secret {number}")
        commit, commit_count = UnitOfWork.commit_batch, 0

        def breaking(unit: UnitOfWork, *args: Any, **options: Any) -> bytes:
            nonlocal commit_count
            commit_count += 1
            if commit_count == stop:
                raise RuntimeError
            return commit(unit, *args, **options)

        monkeypatch.setattr(erasure, "ITEMS_PER_UNIT", 1)  # one transaction per lead
        monkeypatch.setattr(UnitOfWork, "commit_batch", breaking)
        with pytest.raises(RuntimeError):
            self.erase(owner, email="ada@example.com")
        assert self.erase(owner, email="ada@example.com")["erased"]
        rows = str(all_rows())
        assert [secret for secret in (*SECRETS, "ada@new") if secret in rows] == []

    def test_an_unknown_contact_is_not_found(self, owner: Owner) -> None:
        for whom in ({"email": "nobody@example.com"}, {"clientId": new_id()}):
            with pytest.raises(NotFoundError):
                self.erase(owner, **whom)

"""Tests of the erasure of clients with their leads and bookings."""

from typing import Any

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.domains.client_profiles.operations import erasure
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Api, Owner, all_rows, call_operator
from tests.factories.examples import submit
from tests.factories.forms import client_of
from tests.factories.salon import CREATE, LIST, Salon, check_calendars

ADA = {"name": "Ада", "email": "ada@example.com", "phone": "84951234567"}
SECRETS = ("Ада", "ада", "ada@", "4951234567", "Ржаной", "ржаной", "Secret", "secret")


class TestErasure:
    def test_erasure_removes_personal_data_and_keeps_the_booked_time(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        who = {"name": "Zebedee", "phone": "8 495 123-45-67", "email": "zebedee@example.com"}
        body = salon.order("2027-01-18T10:00", notes="Zebedee's") | {"client": who}
        original = api.post(CREATE, body, key="k")["booking"]
        salon.set_status(original["id"], "completed", reason="Zebedee arrived")
        salon.book("2027-01-18T11:00", "Bob")
        erased = call_operator("erase_client", workspaceId=owner.workspace.id, email=who["email"])
        assert erased["bookings"] == 1
        stored_rows = str(all_rows())
        assert "ebedee" not in stored_rows
        assert "4951234567" not in stored_rows
        booking = api.get(f"/api/bookings/{original['id']}")["booking"]
        assert booking["client"] == {
            "id": original["client"]["id"],
            "name": None,
            "phone": None,
            "phoneEntered": None,
            "email": None,
        }
        assert (booking["notes"], booking["statusHistory"][-1]["reason"]) == (None, None)
        check_calendars(owner.workspace.id, salon.resources)
        assert api.get(f"{LIST}?q=bob")["pagination"]["total"] == 1

    def test_erasure_cancels_a_future_booking_and_frees_its_time(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        original = salon.book("2027-01-18T10:00", "Zebedee", notes="or zebedee@work.example.com")
        erased = call_operator(
            "erase_client", workspaceId=owner.workspace.id, email="zebedee@work.example.com"
        )
        assert (erased["bookings"], erased["cancelledBookings"]) == (1, [original["id"]])
        booking = api.get(f"/api/bookings/{original['id']}")["booking"]
        assert (booking["status"], booking["client"]["name"]) == ("cancelled", None)
        assert booking["statusHistory"][-1]["by"] == "operator"
        assert booking["statusHistory"][-1]["reason"] == "The client was erased."
        assert "ebedee" not in str(all_rows())
        salon.book("2027-01-18T10:00", "Bob")
        check_calendars(owner.workspace.id, salon.resources)


class TestEraseClient:
    def erase(self, owner: Owner, **whom: str) -> Any:
        return call_operator("erase_client", workspaceId=owner.workspace.id, **whom)

    @pytest.mark.parametrize("by", ["id", "email", "phone"])
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
        api.post("/api/clients/update", {"id": client["id"], "notes": "Secret", "tags": ["secret"]})
        api.post("/api/forms/collection-status", {"id": first, "status": "completed"})
        stats_before = api.get("/api/crm/stats")
        whom = {"id": client["id"], "email": "ADA@example.com", "phone": "8 495 123 45 67"}
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
        assert len(stored_keys) == 1
        assert stored_keys <= all_rows().keys()

    def test_erasure_includes_other_visitors_leads_with_the_phone(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        submit(form, name="Eve", email="eve@example.com")
        bob = submit(form, name="Bob", phone="84951234567")
        eve = submit(form, name="Eve", phone="84951234567", email="eve@example.com")
        assert self.erase(owner, id=client_of(api, bob)["id"])["leads"] == 2
        assert api.get(f"/api/forms/collection/{eve}")["lead"]["phone"] is None
        assert client_of(api, eve)["name"] == "Eve"

    def test_erasure_processes_any_number_of_leads(self, api: Api, owner: Owner, form: str) -> None:
        for _ in range(23):
            submit(form, **ADA)
        assert self.erase(owner, email="ada@example.com")["leads"] == 23
        assert self.erase(owner, id=api.get("/api/clients/list")["clients"][0]["id"])["leads"] == 23

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
        api.post("/api/clients/update", {"id": client["id"], **now})
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
        api.post("/api/clients/update", {"id": client["id"], "email": "ada@new.example.com"})
        row = CLIENTS.find(owner.workspace.id, record_id=client["id"])
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
        api.post("/api/clients/update", {"id": client["id"], "email": "ada@new.example.com"})
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
        for whom in ({"email": "nobody@example.com"}, {"id": new_id()}):
            with pytest.raises(NotFoundError):
                self.erase(owner, **whom)

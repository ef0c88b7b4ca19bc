"""Clients that programs create and delete with an API key."""

from typing import Any

import pytest

from tests.conftest import Api, Owner, run_concurrently
from tests.factories.examples import Things, submit

pytestmark = pytest.mark.usefixtures("database")
GRACE = {"name": "Grace", "email": "Grace@Example.com", "phone": "8 916 123-45-67"}


def create(api: Api, **values: Any) -> Any:
    return api.post("/api/clients/create", values)["client"]


class TestCreation:
    def test_a_client_is_created_and_found_by_later_leads(self, api: Api, things: Things) -> None:
        client = create(api, **GRACE, tags=["regular"], notes="Likes rye")
        assert (client["email"], client["phone"]) == ("Grace@example.com", "+79161234567")
        assert (client["tags"], client["notes"], client["leadsCount"]) == (
            ["regular"],
            "Likes rye",
            0,
        )
        lead = submit(things.form, name="G.", email="grace@example.com")
        found = api.get(f"/api/forms/collection/{lead}")["lead"]["clientId"]
        assert found == client["id"]
        assert api.get("/api/clients/list?search=916 123")["clients"][0]["id"] == client["id"]

    @pytest.mark.parametrize("contact", ["email", "phone"])
    def test_a_contact_of_another_client_is_refused_with_its_id(
        self, contact: str, api: Api
    ) -> None:
        first = create(api, **GRACE)
        refused = api.call_refused("POST", "/api/clients/create", {contact: GRACE[contact]})
        assert (refused.status, refused.data["code"]) == (409, "duplicate_client")
        assert refused.data["clientId"] == first["id"]

    @pytest.mark.parametrize("body", [{}, {"tags": ["vip"]}, {"name": "", "notes": "x"}])
    def test_a_client_without_a_name_and_a_contact_is_refused(
        self, body: dict[str, Any], api: Api
    ) -> None:
        refused = api.call_refused("POST", "/api/clients/create", body)
        assert refused.status == 400
        assert [error["key"] for error in refused.data["errors"]] == ["no_contact"]

    def test_a_phone_that_is_no_number_is_refused(self, api: Api) -> None:
        refused = api.call_refused("POST", "/api/clients/create", {"phone": "soon"})
        assert [error["field"] for error in refused.data["errors"]] == ["phone"]

    def test_of_many_at_the_same_time_one_is_created(self, api: Api) -> None:
        def add(_: int) -> int:
            return api.call("POST", "/api/clients/create", GRACE).status

        assert sorted(run_concurrently(5, add)) == [200, 409, 409, 409, 409]

    def test_a_repeated_call_creates_one_client(self, api: Api) -> None:
        headers = {"Idempotency-Key": "one"}
        first, again = (
            api.call("POST", "/api/clients/create", GRACE, headers).data["client"] for _ in "12"
        )
        assert first["id"] == again["id"]


class TestDeletion:
    def test_a_dry_run_says_what_would_go_and_removes_nothing(
        self, api: Api, things: Things
    ) -> None:
        body = {"id": things.client, "dryRun": True}
        plan = api.post("/api/clients/delete", body)
        assert (plan["erased"], plan["clientIds"]) == (False, [things.client])
        assert plan["leads"] == 1
        assert all(found["email"] for found in plan["found"])
        gone = api.post("/api/clients/delete", {"id": things.client})
        assert (gone["erased"], gone["leads"]) == (True, 1)
        assert api.get(f"/api/clients/{things.client}")["client"]["email"] is None

    def test_a_key_that_only_writes_reads_no_contacts(self, owner: Owner, things: Things) -> None:
        body = {"id": things.client, "dryRun": True}
        plan = owner.api("crm:write").post("/api/clients/delete", body)
        assert [found["kind"] for found in plan["found"]] == ["client", "lead"]
        assert not any(found[name] for found in plan["found"] for name in ("name", "email"))

    def test_a_client_of_another_workspace_is_not_found(self, new_owner: Any, api: Api) -> None:
        client = create(api, **GRACE)
        answer = (
            new_owner()
            .api("crm:write")
            .call_refused("POST", "/api/clients/delete", {"id": client["id"]})
        )
        assert answer.status == 404

"""Settings of a workspace that programs read and change with an API key."""

from typing import Any

import pytest

from tests.conftest import Owner, call_operator
from tests.factories.examples import Things

pytestmark = pytest.mark.usefixtures("database")
BOTH = ("settings:read", "settings:write")


def test_a_key_reads_and_changes_the_workspace(owner: Owner) -> None:
    api = owner.api(*BOTH)
    body = {"name": "Dr. Weiss", "address": "1 Main Street", "phone": "+7 495 123-45-67"}
    changed = api.post("/api/workspace/update", body)["workspace"]
    read = api.get("/api/workspace")["workspace"]
    assert read["id"] == owner.workspace.id
    assert {name: read[name] for name in changed} == changed
    assert (read["name"], read["address"]) == ("Dr. Weiss", "1 Main Street")
    assert read["includes"]["hasApi"] is True
    cleared = api.post("/api/workspace/update", {"address": None})["workspace"]
    assert cleared["address"] is None


@pytest.mark.parametrize("field", ["plan", "slug", "ownerId", "workspaceId"])
def test_a_key_cannot_change_what_only_the_operator_may(field: str, owner: Owner) -> None:
    body = {field: "enterprise", "accent": None}
    answer = owner.api(*BOTH).post("/api/workspace/update", body)
    assert f'"{field}"' in str(answer["warnings"])
    workspace = owner.api(*BOTH).get("/api/workspace")["workspace"]
    assert (workspace["plan"], workspace["slug"]) == ("business", owner.workspace.slug)


def test_a_key_switches_the_booking_page_on_and_chooses_services(
    owner: Owner, things: Things
) -> None:
    api = owner.api(*BOTH)
    body = {"isOn": True, "offer": [things.service]}
    page = api.post("/api/booking-page/update", body)["bookingPage"]
    assert (page["isOn"], page["offered"]) == (True, 1)
    read = api.get("/api/booking-page")
    assert read["bookingPage"] == page
    assert page["url"].endswith(f"/book/{owner.workspace.slug}")
    offered = {service["id"]: service["isOffered"] for service in read["services"]}
    assert [service_id for service_id in offered if offered[service_id]] == [things.service]
    refused = api.call_refused("POST", "/api/booking-page/update", {"offer": ["nobody"]})
    assert refused.status == 404


def test_a_key_sets_the_deposit_of_a_service(owner: Owner, things: Things) -> None:
    api = owner.api(*BOTH)
    body = {"id": things.service, "depositPercent": 30, "refundUntilMin": 1440}
    terms = api.post("/api/services/payment-terms", body)["paymentTerms"]
    assert terms == {
        "serviceId": things.service,
        "depositPercent": 30,
        "refundUntilMin": 1440,
        "takesPayments": False,
    }
    read = api.get(f"/api/services/payment-terms?id={things.service}")["paymentTerms"]
    assert read == terms
    for path in ("depositPercent", "refundUntilMin"):
        wrong = api.call_refused("POST", "/api/services/payment-terms", {**body, path: -1})
        assert [error["field"] for error in wrong.data["errors"]] == [path]


class TestAuditLog:
    def names(self, owner: Owner, *scopes: str) -> dict[str, Any]:
        """Return the names of the changed resources by kind, as a key with these scopes reads."""
        entries = owner.api("settings:read", *scopes).get("/api/audit-log/list")["entries"]
        touched = [resource for entry in entries for resource in entry["resources"]]
        return {resource["type"]: resource["name"] for resource in reversed(touched)}

    def test_a_key_reads_who_changed_what(self, owner: Owner, things: Things) -> None:
        owner.api("crm:write").post(
            "/api/clients/update", {"id": things.client, "name": "Grace", "tags": ["regular"]}
        )
        answer = owner.api("settings:read").get("/api/audit-log/list?area=clients")
        entry = answer["entries"][0]
        assert (entry["operation"], entry["fields"]) == ("update_client", ["name", "tags"])
        assert entry["key"]["name"] == "test"
        assert answer["next"] is None

    def test_a_key_reads_only_names_of_records_that_it_may_read(
        self, owner: Owner, things: Things
    ) -> None:
        owner.api("crm:write").post("/api/clients/update", {"id": things.client, "name": "Grace"})
        owner.api("projects:write").post(
            "/api/projects/update", {"id": things.site, "title": "Bread"}
        )
        assert self.names(owner)["client"] is None
        assert self.names(owner)["site"] is None
        assert self.names(owner)["key"] == "test"
        by_crm = self.names(owner, "crm:read")
        assert (by_crm["client"], by_crm["site"]) == ("Grace", None)
        both = self.names(owner, "*:read")
        assert (both["client"], both["site"]) == ("Grace", "Bread")


def test_the_operator_names_the_workspace(owner: Owner) -> None:
    place = {"workspaceId": owner.workspace.id}
    changed = call_operator("set_workspace", **place, name="Salon")["workspace"]
    assert (changed["id"], changed["name"]) == (owner.workspace.id, "Salon")
    entry = call_operator("list_audit_log", **place, limit=1)["entries"][0]
    assert (entry["operation"], entry["actor"]["kind"]) == ("set_workspace", "operator")

"""What a webhook receives of an event."""

from typing import Any

import pytest

from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.webhooks.conftest import AddWebhook
from tests.factories.chat import Bot, ask
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import OK, Receiver, status

pytestmark = pytest.mark.usefixtures("database")


class TestEvents:
    def test_an_event_has_an_id_a_type_a_time_and_its_record(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api
    ) -> None:
        lead = submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        (request,) = receiver.requests
        assert request.event_id.startswith("evt_")
        assert request.headers["Content-Type"] == "application/json"
        stored_lead = api.get(f"/api/forms/collection/{lead}")["lead"]
        event = request.event
        assert event["type"] == "lead.created"
        assert event["timestamp"] == "2027-01-15T12:00:00.000Z"
        assert event["data"]["object"] == stored_lead
        assert event["data"]["id"] == stored_lead["id"]
        assert event["data"]["revision"] >= 1

    def test_two_events_of_one_change_have_different_ids_and_are_both_received(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things
    ) -> None:
        item = {"productId": things.product, "quantity": 1}
        lead = submit(things.form, name="Ada", email="ada@example.com", items=[item])
        run_until_idle()
        assert sorted(receiver.types) == ["lead.created", "order.created"]
        assert [event["data"]["id"] for event in receiver.events] == [lead, lead]
        assert len({request.event_id for request in receiver.requests}) == 2

    def test_a_chat_is_an_event_with_its_dialog(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner
    ) -> None:
        ask(Bot(owner.workspace.id, things.agent), "Hello")
        run_until_idle()
        (event,) = receiver.events
        assert event["type"] == "dialog.started"
        assert event["data"]["object"]["agentId"] == things.agent

    def test_a_status_change_names_the_former_status(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api
    ) -> None:
        api.post("/api/forms/collection-status", {"id": things.lead, "status": "in_progress"})
        run_until_idle()
        (event,) = receiver.events
        assert event["type"] == "lead.status_changed"
        assert event["data"]["previousStatus"] == "new"
        assert event["data"]["object"]["status"] == "in_progress"

    def test_the_record_is_read_at_each_attempt(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api, time: Time
    ) -> None:
        receiver.answer = lambda _: status(500)
        api.post("/api/forms/collection-update", {"id": things.lead, "notes": "First"})
        run_until_idle()
        receiver.answer = lambda _: OK
        api.post("/api/forms/collection-update", {"id": things.lead, "notes": "Second"})
        time.pass_by(minutes=1)
        run_until_idle()
        notes = [event["data"]["object"]["notes"] for event in receiver.events]
        assert notes[0] == "First"
        assert set(notes[1:]) == {"Second"}

    def test_event_of_a_deleted_record_has_only_its_id(
        self, add_webhook: AddWebhook, receiver: Receiver, api: Api, time: Time
    ) -> None:
        add_webhook("product.low_stock")
        product = api.post("/api/products/create", {"name": "Rye", "price": 1, "stock": 9})
        place = {"id": product["product"]["id"]}
        api.post("/api/products/update", place | {"stock": 2})
        api.post("/api/products/delete", place)
        run_until_idle()
        (event,) = receiver.events
        assert (event["data"]["id"], event["data"]["object"]) == (place["id"], None)

    def test_a_large_record_is_a_url(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, api: Api
    ) -> None:
        lead = submit(things.form, name="Ada", email="ada@example.com", message="ж" * 4_900)
        api.post("/api/forms/collection-update", {"id": lead, "notes": "ж" * 5_000})
        run_until_idle()
        data = receiver.events[-1]["data"]
        assert "object" not in data
        assert data["url"].endswith(f"/api/forms/collection/{lead}")
        assert len(receiver.requests[-1].body) < 1_000

    def test_an_erased_client_is_an_event_without_personal_data(
        self, webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner
    ) -> None:
        submit(things.form, name="Ada", email="ada@example.com")
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        run_until_idle()
        assert "client.erased" in receiver.types
        assert all("ada@example.com" not in request.body.decode() for request in receiver.requests)

    def test_events_of_another_workspace_are_not_received(
        self, webhook: dict[str, Any], receiver: Receiver, new_owner: Any
    ) -> None:
        stranger = new_owner().api()
        product = stranger.post("/api/products/create", {"name": "Rye", "price": 1, "stock": 9})
        stranger.post("/api/products/update", {"id": product["product"]["id"], "stock": 1})
        run_until_idle()
        assert receiver.requests == []


def test_event_of_any_visitor_has_the_actor_visitor(
    webhook: dict[str, Any], receiver: Receiver, things: Things
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    run_until_idle()
    assert receiver.events[0]["data"]["actor"] == "visitor"

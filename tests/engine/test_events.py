"""Events follow from changes of records, and ride in the transaction of the change."""

from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.core.events import EVENT_TYPES, INTERNAL_TYPES, MESSAGE_KINDS
from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.engine.events import outbox, subscriptions
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Api, Owner, Time, all_rows, run_concurrently
from tests.factories.examples import Things, submit
from tests.factories.salon import DAILY, Salon
from tests.fakes.dynamodb_faults import ALWAYS, TRANSACTION, closed, faulty

pytestmark = pytest.mark.usefixtures("database")
load_all()


def want(owner: Owner, *types: str) -> None:
    def stage(unit: UnitOfWork) -> None:
        unit.update(*subscriptions.change_of_webhooks(unit.tenant, types))
        unit.after_commit(subscriptions.forget)

    run_unit(owner.workspace.id, None, stage)


def emitting_jobs() -> list[JobRow]:
    kind = {"S": WEBHOOK_EVENTS}
    jobs = (JobRow.from_raw_data(row) for row in all_rows().values() if row.get("kind") == kind)
    return sorted(jobs, key=lambda job: str(job.sk))


def emitted() -> list[dict[str, Any]]:
    return [
        dict(zip(outbox.Event._fields, event, strict=True))
        for job in emitting_jobs()
        for event in job.payload["events"]
    ]


def types() -> list[str]:
    return [event["type"] for event in emitted()]


def product_with(api: Api, stock: int) -> str:
    product_id: str = api.post("/api/products/create", {"name": "Rye", "price": 1, "stock": stock})[
        "product"
    ]["id"]
    return product_id


def names_of(listing: Listing[Any]) -> list[str]:
    """Return the names of the events that follow from changes of a listing's records."""
    return [*listing.events, *filter(None, [listing.deletion_event])]


class TestDeclarations:
    def test_every_event_of_a_listing_is_a_declared_type(self) -> None:
        names = [name for listing in LISTINGS.values() for name in names_of(listing)]
        assert len(names) == len({*names})
        assert {*names} <= EVENT_TYPES.keys() | INTERNAL_TYPES.keys()

    def test_every_declared_type_is_emitted_somewhere(self) -> None:
        by_name = (EVENT_TYPES | INTERNAL_TYPES).keys() - {
            name for listing in LISTINGS.values() for name in names_of(listing)
        }
        sources = "".join(path.read_text() for path in Path("chalicelib/domains").rglob("*.py"))
        assert by_name == {name for name in by_name if f'"{name}"' in sources}

    def test_every_internal_type_has_a_kind_of_messages(self) -> None:
        assert INTERNAL_TYPES.keys() <= {kind.type for kind in MESSAGE_KINDS.values()}
        assert not INTERNAL_TYPES.keys() & EVENT_TYPES.keys()

    @pytest.mark.parametrize("name", EVENT_TYPES)
    def test_every_type_names_an_operation_that_reads_its_record(self, name: str) -> None:
        declared = EVENT_TYPES[name]
        operation = REGISTRY[declared.read_by]
        assert operation.read_only
        assert "id" in operation.input.model_fields
        assert declared.record in operation.output.model_fields


class TestEvents:
    def test_a_workspace_without_subscriptions_stores_no_events(self, things: Things) -> None:
        submit(things.form, name="Ada", email="ada@example.com")
        assert emitted() == []

    def test_the_job_of_events_names_who_acted(self, owner: Owner, things: Things) -> None:
        want(owner, "lead.created")
        submit(things.form, name="Ada", email="ada@example.com")
        (job,) = emitting_jobs()
        assert job.payload["actor"] == "visitor"

    def test_only_wanted_types_are_stored(self, owner: Owner, things: Things) -> None:
        want(owner, "lead.created")
        submit(things.form, name="Ada", email="ada@example.com")
        assert types() == ["lead.created"]

    def test_a_status_change_has_the_former_status_and_the_revision(
        self, owner: Owner, things: Things, api: Api
    ) -> None:
        want(owner, "lead.status_changed")
        api.post("/api/forms/collection-status", {"id": things.lead, "status": "in_progress"})
        (event,) = emitted()
        assert event.pop("revision") > 1
        assert event == {
            "type": "lead.status_changed",
            "id": things.lead,
            "previous_status": "new",
        }

    def test_a_booking_emits_its_changes(self, owner: Owner, api: Api, time: Time) -> None:
        want(owner, "booking.created", "client.updated", "booking.moved", "booking.status_changed")
        salon = Salon.opened(api, [{}], DAILY)
        booking = salon.book("2027-03-02T12:00:00Z", client="Ada")
        salon.set_status(booking["id"], "cancelled")
        assert types() == ["booking.created", "booking.status_changed"]

    def test_a_chat_emits_its_start_once(self, owner: Owner, things: Things) -> None:
        from tests.factories.chat import Bot, ask

        want(owner, "dialog.started", "dialog.handover_requested")
        first = ask(Bot(owner.workspace.id, things.agent), "Hello")
        ask(Bot(owner.workspace.id, things.agent), "And now?", sessionId=first.session)
        assert types() == ["dialog.started"]

    @pytest.mark.parametrize(
        ("stock_before", "change", "count"),
        [
            (6, {"stockDelta": -1}, 1),
            (9, {"stockDelta": -9}, 1),
            (6, {"stock": 0}, 1),
            (7, {"stockDelta": -1}, 0),
            (5, {"stockDelta": -1}, 0),
            (5, {"stockDelta": 9}, 0),
            (6, {"stock": None}, 0),
        ],
    )
    def test_a_stock_that_falls_to_five_is_low_once(
        self, stock_before: int, change: dict[str, Any], count: int, owner: Owner, api: Api
    ) -> None:
        want(owner, "product.low_stock")
        product = product_with(api, stock_before)
        api.post("/api/products/update", {"id": product, **change})
        assert types() == ["product.low_stock"] * count

    def test_concurrent_sales_make_a_stock_low_once(self, owner: Owner, api: Api) -> None:
        want(owner, "product.low_stock")
        body = {"id": product_with(api, 9), "stockDelta": -1}
        run_concurrently(8, lambda _: api.post("/api/products/update", body))
        assert types() == ["product.low_stock"]


class TestFaults:
    def test_a_change_that_does_not_commit_emits_nothing(
        self, owner: Owner, things: Things, api: Api
    ) -> None:
        want(owner, "lead.status_changed")
        body = {"id": things.lead, "status": "in_progress"}
        with faulty(TRANSACTION, closed, "before", ALWAYS):
            api.call_refused("POST", "/api/forms/collection-status", body)
        assert emitted() == []

    def test_a_change_whose_answer_is_lost_emits_once(
        self, owner: Owner, things: Things, api: Api
    ) -> None:
        want(owner, "lead.status_changed")
        body = {"id": things.lead, "status": "in_progress"}
        with faulty(TRANSACTION, closed, "after", 1):
            api.post("/api/forms/collection-status", body)
        assert types() == ["lead.status_changed"]

    def test_events_are_stored_if_it_is_not_known_what_the_workspace_wants(
        self, things: Things, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: str) -> None:
            raise UnavailableError

        subscriptions.forget()
        monkeypatch.setattr(subscriptions.SubscriptionsRow, "find", fail)
        body = {"id": things.lead, "status": "in_progress"}
        api.post("/api/forms/collection-status", body)
        assert types() == ["lead.status_changed"]


class TestSubscriptions:
    def test_another_process_learns_of_a_subscription_within_ten_seconds(
        self, owner: Owner, things: Things, api: Api, time: Time
    ) -> None:
        body = {"id": things.lead, "status": "in_progress"}
        api.post("/api/forms/collection-status", body)

        def stage(unit: UnitOfWork) -> None:  # without telling this process
            unit.update(*subscriptions.change_of_webhooks(unit.tenant, ["lead.status_changed"]))

        run_unit(owner.workspace.id, None, stage)
        api.post("/api/forms/collection-status", body | {"status": "new"})
        assert emitted() == []
        time.pass_by(seconds=10)
        api.post("/api/forms/collection-status", body)
        assert types() == ["lead.status_changed"]

"""Events of products, services, forms, pages and clients."""

import pytest

from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.engine import jobs
from tests.conftest import Api, Owner
from tests.domains.webhooks.conftest import AddWebhook
from tests.factories.event_runs import recorded_events, run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import Receiver

pytestmark = pytest.mark.usefixtures("database")


def test_an_event_has_the_record_as_the_api_returns_it(
    add_webhook: AddWebhook, receiver: Receiver, api: Api, things: Things
) -> None:
    add_webhook("product.updated")
    body = {"id": things.product, "price": 12_300}
    product = api.post("/api/products/update", body)["product"]
    run_until_idle()
    (event,) = receiver.events
    assert event["data"]["object"] == api.get(f"/api/products/{things.product}")["product"]
    assert event["data"]["object"]["price"] == product["price"]


def test_a_batch_of_products_is_one_job_with_an_event_each(
    add_webhook: AddWebhook, receiver: Receiver, api: Api, owner: Owner
) -> None:
    add_webhook("product.created", "product.updated")
    items = [{"sku": f"A-{number}", "name": "Rye", "price": 1} for number in range(30)]
    for _ in "12":  # The second time changes nothing.
        api.post("/api/products/upsert", {"items": items})
    rows = jobs.read_workspace_jobs(owner.workspace.id)
    sizes = [len(job.payload["events"]) for job in rows if job.kind == WEBHOOK_EVENTS]
    assert sum(sizes) == 30
    assert len(sizes) < 5
    run_until_idle()
    assert receiver.types == ["product.created"] * 30


def test_nothing_is_stored_if_no_webhook_wants_the_type(
    add_webhook: AddWebhook, receiver: Receiver, api: Api, things: Things, owner: Owner
) -> None:
    add_webhook("lead.created")
    with recorded_events() as recorded:
        api.post("/api/services/update", {"id": things.service, "price": 100})
        api.post("/api/pages/save-html", {"id": things.page, "html": "<h1>New</h1>"})
    assert [name for name, _ in recorded] == ["service.updated", "page.updated"]
    kinds = {job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)}
    assert WEBHOOK_EVENTS not in kinds


def test_a_deleted_site_reports_its_pages_and_forms_and_a_restored_one_its_pages(
    add_webhook: AddWebhook, receiver: Receiver, api: Api, things: Things
) -> None:
    add_webhook("page.deleted", "form.deleted", "page.created")
    api.post("/api/projects/delete", {"id": things.site})
    run_until_idle()
    assert sorted(receiver.types) == ["form.deleted", "page.deleted", "page.deleted"]
    assert {event["data"]["object"] for event in receiver.events} == {None}


def test_a_first_lead_reports_its_new_client_once(
    add_webhook: AddWebhook, receiver: Receiver, things: Things
) -> None:
    add_webhook("client.created")
    for _ in "12":
        submit(things.form, name="Zoe", email="zoe@example.com")
    run_until_idle()
    assert receiver.types == ["client.created"]
    assert receiver.events[0]["data"]["object"]["email"] == "zoe@example.com"

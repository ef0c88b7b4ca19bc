"""Stored replies of receivers, and their removal with an erased client."""

from typing import Any

import pytest

from chalicelib.domains.webhooks.store import deliveries as store
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.webhooks.conftest import AddWebhook, deliveries
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import Receiver, Request, status

EMAIL = "zoe@home.example"


@pytest.fixture
def webhook(add_webhook: AddWebhook, receiver: Receiver, things: Things) -> dict[str, Any]:
    """A webhook whose receiver fails, and repeats the request's body."""
    receiver.answer = echo
    return add_webhook("lead.created")


def echo(request: Request) -> Any:
    return status(500, request.body)


def replies(webhook: dict[str, Any]) -> str:
    return str([delivery["reply"] for delivery in deliveries(webhook)])


def erase(owner: Owner) -> None:
    call_operator("erase_client", workspaceId=owner.workspace.id, email=EMAIL)


def test_erasure_removes_only_replies_about_the_client(
    webhook: dict[str, Any], owner: Owner, things: Things
) -> None:
    submit(things.form, name="Zoe", email=EMAIL)
    submit(things.form, name="Bob", email="bob@home.example")
    run_until_idle()
    assert EMAIL in replies(webhook)
    erase(owner)
    assert EMAIL not in replies(webhook)
    assert "bob@home.example" in replies(webhook)
    assert {delivery["status"] for delivery in deliveries(webhook)} == {500}


def test_a_reply_that_arrives_during_the_erasure_is_removed_soon(
    webhook: dict[str, Any], owner: Owner, things: Things, receiver: Receiver, time: Time
) -> None:
    submit(things.form, name="Zoe", email=EMAIL)

    def slow(request: Request) -> Any:
        receiver.answer = echo
        erase(owner)
        return echo(request)

    receiver.answer = slow
    run_until_idle()
    assert EMAIL in replies(webhook)
    time.pass_by(minutes=1)
    run_jobs()
    assert EMAIL not in replies(webhook)


def test_replies_to_a_webhook_that_is_deleted_are_removed_soon(
    webhook: dict[str, Any], owner: Owner, things: Things, time: Time
) -> None:
    submit(things.form, name="Zoe", email=EMAIL)
    run_until_idle()
    call_operator("delete_webhook", id=webhook["id"])
    time.pass_by(minutes=1)
    run_jobs()
    stored_deliveries = store.latest(owner.workspace.id, webhook_id=webhook["id"], limit=9)
    assert [delivery.reply for delivery in stored_deliveries] == [None]


def test_a_reply_of_a_success_replaces_that_of_a_failure_and_is_not_kept(
    webhook: dict[str, Any], things: Things, receiver: Receiver, time: Time
) -> None:
    submit(things.form, name="Zoe", email=EMAIL)
    run_until_idle()
    assert EMAIL in replies(webhook)
    receiver.answer = lambda request: status(200, request.body)
    time.pass_by(minutes=1)
    run_until_idle()
    assert replies(webhook) == "[None]"


def test_an_erasure_succeeds_if_replies_cannot_be_removed_now(
    webhook: dict[str, Any],
    owner: Owner,
    api: Api,
    things: Things,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit(things.form, name="Zoe", email=EMAIL)
    run_until_idle()
    with monkeypatch.context() as broken:
        broken.setattr(store, "forget_replies", lambda *_, **__: 1 / 0)
        erase(owner)
    assert EMAIL in replies(webhook)
    assert api.get(f"/api/forms/collection-find?email={EMAIL}")["total"] == 0
    time.pass_by(minutes=1)
    run_jobs()
    assert EMAIL not in replies(webhook)

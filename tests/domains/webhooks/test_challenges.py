"""Webhooks of a test workspace: only to a receiver that answers, and with ``isTest``."""

import json
from typing import Any

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.domains.webhooks.flows import challenges
from chalicelib.gateways.post import PostReply
from chalicelib.gateways.public_http import UpstreamError
from tests.conftest import Owner, call_operator
from tests.domains.webhooks.conftest import URL, AddWebhook
from tests.factories.event_runs import run_until_idle
from tests.fakes.receiver import OK, Receiver, Request, status

pytestmark = pytest.mark.usefixtures("database")


def plain(request: Request) -> PostReply:
    return status(200, request.event["data"]["challenge"].encode() + b"\n")


def as_json(request: Request) -> PostReply:
    challenge = request.event["data"]["challenge"]
    return status(200, json.dumps({"challenge": challenge}).encode())


def echo(request: Request) -> PostReply:
    return status(200, request.body)


def late(request: Request) -> PostReply:
    return status(202, request.event["data"]["challenge"].encode())


def down(_: Request) -> PostReply:
    raise UpstreamError("the server does not respond", key="no_response")


def create(owner: Owner, **fields: Any) -> Any:
    body = {"workspaceId": owner.workspace.id, "url": URL, "events": ["lead.created"], **fields}
    return call_operator("create_webhook", **body)["webhook"]


@pytest.mark.parametrize("answer", [plain, as_json])
def test_a_receiver_that_answers_gets_events_marked_as_a_test(
    answer: Any, tester: Owner, receiver: Receiver
) -> None:
    receiver.answer = answer
    webhook = create(tester)
    (challenge,) = receiver.events
    assert (challenge["type"], challenge["isTest"]) == ("webhook.challenge", True)
    receiver.answer = lambda _: OK
    call_operator("send_test_event", id=webhook["id"])
    run_until_idle()
    assert receiver.events[1]["isTest"] is True


@pytest.mark.parametrize("answer", [lambda _: OK, echo, late, down, lambda _: status(404)])
def test_an_address_that_does_not_answer_is_refused(
    answer: Any, tester: Owner, receiver: Receiver
) -> None:
    receiver.answer = answer
    with pytest.raises(ValidationError) as refusal:
        create(tester)
    assert [(error.field, error.key) for error in refusal.value.errors] == [("url", "challenge")]
    assert call_operator("list_webhooks", workspaceId=tester.workspace.id)["webhooks"] == []


def test_another_address_is_asked_and_the_same_one_is_not(
    tester: Owner, receiver: Receiver
) -> None:
    receiver.answer = plain
    webhook = create(tester)
    receiver.answer = down
    call_operator("update_webhook", id=webhook["id"], url=URL, events=["booking.created"])
    with pytest.raises(ValidationError):
        call_operator("update_webhook", id=webhook["id"], url=f"{URL}/2")
    receiver.answer = as_json
    call_operator("update_webhook", id=webhook["id"], url=f"{URL}/2")
    assert len(receiver.requests) == 3


def test_other_workspaces_ask_nobody_and_mark_nothing(
    add_webhook: AddWebhook, receiver: Receiver
) -> None:
    webhook = add_webhook("lead.created")
    assert receiver.requests == []
    call_operator("send_test_event", id=webhook["id"])
    run_until_idle()
    assert "isTest" not in receiver.events[0]


def test_a_workspace_sends_a_limited_number_of_challenges(
    tester: Owner, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(challenges.limits, "take", lambda _, subject: taken.append(subject))
    receiver.answer = plain
    create(tester)
    assert taken == [tester.workspace.id]

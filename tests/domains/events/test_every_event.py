"""Tests that every type of event is emitted and reaches its recipients."""

import re

import pytest

from chalicelib.core.events import EVENT_TYPES, INTERNAL_TYPES, MESSAGE_KINDS
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.domains.webhooks.conftest import AddWebhook
from tests.factories.console import person
from tests.factories.event_runs import recorded_events, run_until_idle, unanswered
from tests.factories.event_triggers import TRIGGERS, World
from tests.fakes.receiver import Receiver
from tests.support.registers import check_register

pytestmark = pytest.mark.usefixtures("database")


def test_every_type_has_a_trigger() -> None:
    check_register(
        TRIGGERS,
        declared=EVENT_TYPES.keys() | INTERNAL_TYPES.keys(),
        place="TRIGGERS of tests/factories/event_triggers.py",
        line="a function that causes the event",
    )


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_a_webhook_receives_every_type_with_its_record(
    name: str, add_webhook: AddWebhook, receiver: Receiver, world: World
) -> None:
    add_webhook(name)
    with recorded_events() as recorded:
        TRIGGERS[name](world)
    assert unanswered(recorded) == set()
    run_until_idle()
    assert receiver.types == [name]
    data = receiver.events[0]["data"]
    if name.endswith(".deleted"):
        assert data["object"] is None
    else:
        assert data["object"]["id"] == data["id"]


@pytest.mark.parametrize("kind", MESSAGE_KINDS)
def test_the_owner_gets_every_kind_of_messages_with_a_link_to_its_page(
    kind: str, inbox: Inbox, world: World
) -> None:
    choose(world.owner, world.owner.workspace.owner_id, "owner", "ru", **{kind: ["mail"]})
    TRIGGERS[MESSAGE_KINDS[kind].type](world)
    run_until_idle()
    (message,) = (mail for mail in inbox.mails if f".{kind}." in str(mail["List-Unsubscribe"]))
    (link,) = re.findall(r'class="button" href="[^"/]+//[^"/]+([^"]+)"', text_of(message, "html"))
    assert person(world.owner).get(link).status == 200


@pytest.mark.parametrize("name", INTERNAL_TYPES)
def test_no_webhook_receives_an_internal_type(
    name: str, inbox: Inbox, add_webhook: AddWebhook, receiver: Receiver, world: World
) -> None:
    add_webhook()
    TRIGGERS[name](world)
    run_until_idle()
    assert name not in receiver.types

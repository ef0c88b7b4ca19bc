"""Webhooks in the console, over HTTP."""

import json
import re
from typing import Any

import pytest

from chalicelib.core.events import EVENT_TYPES
from chalicelib.domains.webhooks.flows.due_deliveries import switch_off
from chalicelib.domains.webhooks.store.webhooks import FAILING, GONE
from chalicelib.gateways import post
from tests.conftest import Answer, Time, all_rows, call_console
from tests.factories.console import EVENT, HOSTILE, World
from tests.factories.event_runs import run_until_idle
from tests.fakes.receiver import Receiver, status
from tests.transports.conftest import Records
from tests.transports.console.forms.helpers import error_beside, text, value_of

URL = "https://bakery.example/events"
FORM = {"url": URL, "which": "all", "once": "form-1"}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """A receiver of all webhooks."""
    fake = Receiver()
    monkeypatch.setattr(post, "post", fake.post)
    return fake


def path_of(world: World) -> str:
    return f"{world.here.path}/webhooks"


def page_of(world: World) -> str:
    """Return the path of the webhook that is there from the start."""
    return f"{path_of(world)}/{world.here.webhook}"


def list_webhooks(world: World) -> list[dict[str, Any]]:
    webhooks: list[dict[str, Any]] = call_console(world.here.workspace_id, "list_webhooks")[
        "webhooks"
    ]
    return webhooks


def the_webhook(world: World) -> dict[str, Any]:
    (webhook,) = (
        webhook for webhook in list_webhooks(world) if webhook["id"] == world.here.webhook
    )
    return webhook


def deliveries(world: World) -> list[dict[str, Any]]:
    arguments = {"id": world.here.webhook}
    deliveries: list[dict[str, Any]] = call_console(
        world.here.workspace_id, "list_webhook_deliveries", **arguments
    )["deliveries"]
    return deliveries


def secret_of(answer: Answer) -> str:
    secret = re.search(r'id="secret"><code>(whsec_[^<]+)</code>', answer.body.decode())
    assert secret
    return secret[1]


def ticked(answer: Answer) -> set[str]:
    """Return the types of events whose boxes are ticked."""
    return set(re.findall(r'name="events" value="([^"]*)" checked', answer.body.decode()))


class TestAdding:
    def test_a_secret_is_shown_once_and_never_again(
        self, world: World, log_records: Records
    ) -> None:
        console_owner, path = world.person("boss"), path_of(world)
        response = console_owner.post(path, FORM)
        assert response.status == 200
        secret = secret_of(response)
        repeated = console_owner.post(path, FORM)
        assert repeated.status == 409
        assert "The form was sent twice" in text(repeated)
        (webhook,) = (webhook for webhook in list_webhooks(world) if webhook["url"] == URL)
        hook = f"{path}/{webhook['id']}"
        assert f'href="{hook}/secret"' in text(repeated)
        pages = [repeated, *map(console_owner.get, (
            path, hook, f"{hook}/secret", f"{hook}/delete", f"{world.here.path}/audit",
        ))]  # fmt: skip
        outputs = [*(page.body.decode() for page in pages), *log_records.lines]
        outputs.append(json.dumps(all_rows(), default=str))
        assert not [output for output in outputs if secret.removeprefix("whsec_") in output]

    def test_all_events_are_chosen_unless_some_are_ticked(self, world: World) -> None:
        console_owner, path = world.person("boss"), path_of(world)
        page = console_owner.get(f"{path}/new")
        assert set(re.findall(r'name="events" value="([^"]*)"', text(page))) == set(EVENT_TYPES)
        assert 'value="all" aria-describedby="all-about" checked' in text(page)
        types = [("events", "lead.created"), ("events", "booking.moved")]
        console_owner.post(path, [("url", URL), ("which", "all"), *types])
        console_owner.post(path, [("url", URL), ("which", "chosen"), *types])
        with_chosen, everything, _ = list_webhooks(world)
        assert everything["events"] == []
        assert with_chosen["events"] == ["booking.moved", "lead.created"]
        page = console_owner.get(path)
        assert "2 event types" in text(page)
        assert "3 of 10 webhooks" in text(page)

    def test_choosing_no_event_is_refused_and_the_url_is_kept(self, world: World) -> None:
        console_owner = world.person("boss")
        answer = console_owner.post(path_of(world), {"url": URL, "which": "chosen"})
        assert answer.status == 400
        assert '<a href="#events">Tick at least one event' in text(answer)
        assert value_of(answer, "url") == URL
        assert 'value="chosen" checked' in text(answer)
        assert len(list_webhooks(world)) == 1

    @pytest.mark.parametrize(
        "url", ["", "bakery", "http://bakery.example", "https://127.0.0.1/", HOSTILE]
    )
    def test_a_wrong_url_is_reported_beside_it_and_the_choice_is_kept(
        self, url: str, world: World
    ) -> None:
        form = {"url": url, "which": "chosen", "events": "lead.created"}
        for path in (path_of(world), page_of(world)):
            answer = world.person("boss").post(path, form)
            assert answer.status == 400
            assert "public https URL" in error_beside(answer, "url")
            assert value_of(answer, "url") == url
            assert ticked(answer) == {"lead.created"}

    def test_an_unknown_type_is_refused(self, world: World) -> None:
        form = {"url": URL, "which": "chosen", "events": HOSTILE}
        for path in (path_of(world), page_of(world)):
            answer = world.person("boss").post(path, form)
            assert answer.status == 400
            assert b"<img" not in answer.body


class TestSettings:
    def test_the_url_and_the_events_are_changed(self, world: World) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        assert ticked(console_owner.get(path)) == {"client.erased"}
        form = {"url": URL, "which": "chosen", "events": "lead.created"}
        answer = console_owner.post(path, form)
        assert answer.headers["Location"] == f"{path}?done=webhook_saved"
        page = console_owner.get(answer.headers["Location"])
        assert "Webhook saved." in text(page)
        assert ticked(page) == {"lead.created"}
        assert value_of(page, "url") == URL
        console_owner.post(path, {"url": URL, "which": "all"})
        assert the_webhook(world)["events"] == []

    @pytest.mark.parametrize("sends", [True, False])
    def test_what_waited_is_sent_by_choice_when_it_is_switched_on(
        self, sends: bool, world: World, receiver: Receiver
    ) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        console_owner.post(f"{path}/deliveries", {"eventId": EVENT})
        console_owner.post(f"{path}/status", {"status": "off"})
        page = text(console_owner.get(path))
        assert "This webhook was switched off by hand." in page
        assert "Send a test event" not in page
        run_until_idle()
        assert receiver.requests == []
        form = {"status": "active"} | ({"sendWaiting": "yes"} if sends else {})
        answer = console_owner.post(f"{path}/status", form)
        assert "The webhook is on." in text(console_owner.get(answer.headers["Location"]))
        run_until_idle()
        assert receiver.types == (["lead.created"] if sends else [])

    @pytest.mark.parametrize(
        ("reason", "words"), [(GONE, "The receiver answered 410 Gone"), (FAILING, "72 hours")]
    )
    def test_a_webhook_that_the_service_switched_off_says_why(
        self, reason: str, words: str, world: World
    ) -> None:
        switch_off(world.here.workspace_id, webhook_id=world.here.webhook, reason=reason)
        console_owner = world.person("boss")
        for path in (path_of(world), page_of(world)):
            assert words in text(console_owner.get(path))

    @pytest.mark.usefixtures("real_clock")  # with which the verifying library compares
    def test_a_replaced_secret_is_shown_once(self, world: World, receiver: Receiver) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        assert "For 24 hours" in text(console_owner.get(f"{path}/secret"))
        answer = console_owner.post(f"{path}/secret", {"once": "1"})
        secret = secret_of(answer)
        repeated = console_owner.post(f"{path}/secret", {"once": "1"})
        assert repeated.status == 409
        assert secret not in text(repeated)
        console_owner.post(f"{path}/test")
        run_until_idle()
        (request,) = receiver.requests
        request.verify(secret)

    def test_a_webhook_is_deleted_after_a_confirmation(self, world: World) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        page = text(console_owner.get(f"{path}/delete"))
        assert "Delete this webhook?" in page
        assert the_webhook(world)["url"] in page
        deleted_path = f"{path_of(world)}?done=webhook_deleted"
        assert console_owner.post(f"{path}/delete").headers["Location"] == deleted_path
        assert list_webhooks(world) == []
        assert "Webhook deleted." in text(console_owner.get(deleted_path))


class TestDeliveries:
    def test_a_failed_delivery_shows_its_last_attempt(self, world: World) -> None:
        page = world.person("boss").get(page_of(world))
        page_text = text(page)
        for words in ("lead.created", "2 attempts", "HTTP 500", "1,234 ms", "Beginning of the"):
            assert words in page_text
        assert HOSTILE in page_text
        assert b"&lt;img src=x" in page.body
        russian = text(world.person("boss").get(page_of(world), accept_language="ru"))
        for words in ("2 попытки", "1\xa0234 мс", "Начало ответа"):
            assert words in russian

    def test_an_event_is_sent_again(self, world: World, receiver: Receiver) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        for _ in "12":
            answer = console_owner.post(f"{path}/deliveries", {"eventId": EVENT, "once": "1"})
            assert answer.headers["Location"] == f"{path}?done=sent_again"
        assert "sent again within seconds" in text(console_owner.get(answer.headers["Location"]))
        run_until_idle()
        (delivery,) = deliveries(world)
        assert (delivery["state"], len(receiver.requests)) == ("delivered", 1)
        assert ">delivered</span>" in text(console_owner.get(path))

    def test_a_test_event_is_sent_once(self, world: World, receiver: Receiver) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        for _ in "12":
            answer = console_owner.post(f"{path}/test", {"once": "1"})
            assert answer.headers["Location"] == f"{path}?done=test_sent"
        assert ">waiting</span>" in text(console_owner.get(path))
        run_until_idle()
        assert receiver.types.count("webhook.test") == 1

    def test_a_failed_attempt_shows_the_next_one_and_its_reason(
        self, world: World, receiver: Receiver, time: Time
    ) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        receiver.answer = lambda _: status(503)
        console_owner.post(f"{path}/test")
        run_until_idle()
        page = text(console_owner.get(path))
        for words in ("1 attempt", "HTTP 503", "failed, will be retried", "Next attempt:"):
            assert words in page

    @pytest.mark.parametrize("page", ["test", "deliveries"])
    def test_a_webhook_that_is_off_sends_nothing(self, page: str, world: World) -> None:
        console_owner, path = world.person("boss"), page_of(world)
        console_owner.post(f"{path}/status", {"status": "off"})
        answer = console_owner.post(f"{path}/{page}", {"eventId": EVENT})
        assert answer.status == 409
        assert "Switch it on first" in text(answer)

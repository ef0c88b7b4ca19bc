"""Webhooks never reach this service, because an event would cause the next one."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib import USER_AGENT
from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.gateways.post import PostReply
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.domains.sites.test_site_domains import Records, bind, prove
from tests.domains.webhooks.conftest import AddWebhook, deliveries
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, example, submit
from tests.fakes.receiver import Receiver, Request
from tests.support.sweep import sweep

pytestmark = pytest.mark.usefixtures("database")
SENDER = {"User-Agent": f"{USER_AGENT} (+https://app.example)"}
PUBLIC = [operation for operation in REGISTRY.select(Audience.PUBLIC) if operation.path]


def test_an_event_that_reaches_a_form_of_this_service_makes_no_lead(
    add_webhook: AddWebhook, receiver: Receiver, things: Things, api: Api, time: Time
) -> None:
    """The webhook leads to the form by a host that this service does not know."""
    form = f"/api/public/forms/{things.form}/submit"

    def arrive(request: Request) -> PostReply:
        answer = Api(None).call("POST", form, request.body, {**request.headers, **SENDER})
        return PostReply(answer.status, answer.body, None, 5)

    receiver.answer = arrive
    total_before = api.get("/api/forms/collection-list")["total"]
    webhook = add_webhook("lead.created")
    submit(things.form, name="Ada", email="ada@example.com")
    for _ in range(5):
        run_until_idle()
        time.pass_by(minutes=1)
    assert api.get("/api/forms/collection-list")["total"] == total_before + 1
    (delivery,) = deliveries(webhook)
    assert (delivery["status"], "User-Agent" in delivery["reply"]) == (400, True)


@sweep("operation", PUBLIC)
def test_no_public_operation_accepts_a_request_of_this_service(
    operation: Any, api: Api, things: Things
) -> None:
    arguments = example(operation, things) if operation.example else {}
    path = operation.path.format_map(dict.fromkeys(operation.path_parameters, things.form))
    rows_before = all_rows()
    body = None if operation.reads_query else arguments
    answer = Api(None).call(operation.method, path, body, SENDER)
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    assert answer.data["message"].startswith("User-Agent: ")
    assert all_rows() == rows_before


@pytest.mark.parametrize("path", ["/console/sign-in", "/book/workspace/service"])
def test_pages_accept_no_form_of_this_service(path: str, owner: Owner, things: Things) -> None:
    answer = Api(None).call("POST", path, b"a=b", {**SENDER, "Content-Type": "text/plain"})
    assert answer.status >= 400


@pytest.mark.parametrize(
    "url",
    [
        "https://app.example/api/public/forms/1/submit",
        "https://APP.example./x",
        "https://app.example:443/",
        "https://chat.app.example/",
        "https://bakery.sites.example/",
        "https://sites.example/",
        "https://a.b.sites.example/",
    ],
)
def test_a_url_of_this_service_is_refused(
    url: str,
    add_webhook: AddWebhook,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    webhook = add_webhook()
    monkeypatch.setenv("PUBLIC_URL", "https://app.example")
    monkeypatch.setenv("CHAT_URL", "https://chat.app.example")
    monkeypatch.setenv("SITES_DOMAIN", "sites.example")
    reload_settings()
    with pytest.raises(ValidationError) as created:
        add_webhook(url=url)
    with pytest.raises(ValidationError) as changed:
        call_operator("update_webhook", id=webhook["id"], url=url)
    for refused in (created, changed):
        assert [(error.field, error.key) for error in refused.value.errors] == [("url", "own_url")]
    assert add_webhook(url="https://notapp.example/")["id"]
    assert add_webhook(url="https://othersites.example/")["id"]


def test_a_url_on_the_domain_of_a_site_is_refused(
    add_webhook: AddWebhook, things: Things, api: Api, txt_records: Records, time: Time
) -> None:
    webhook = add_webhook(url="https://www.example.com/")
    prove(txt_records, bind(api, things.site))
    time.pass_by(minutes=5)
    assert bind(api, things.site)["status"] == "verified"
    for url in ("https://www.example.com/", "https://WWW.example.com/a"):
        with pytest.raises(ValidationError) as creation:
            add_webhook(url=url)
        with pytest.raises(ValidationError) as change:
            call_operator("update_webhook", id=webhook["id"], url=url)
        for refusal in (creation.value, change.value):
            assert [(error.field, error.key) for error in refusal.errors] == [("url", "own_url")]
    assert add_webhook(url="https://shop.example.com/")["id"]

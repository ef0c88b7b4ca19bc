"""Webhooks that programs manage with an API key."""

from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core.areas import SCOPED
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.scopes import Scope
from chalicelib.domains.webhooks.rules import readable_types
from chalicelib.domains.webhooks.store import deliveries
from chalicelib.domains.webhooks.store.webhooks import WebhookRow
from chalicelib.engine.unit import run_unit
from tests.conftest import Api, Owner, call_console, call_operator
from tests.domains.notifications.inbox import Inbox, text_of
from tests.domains.webhooks.conftest import URL, AddWebhook
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.factories.oauth import connect
from tests.fakes.receiver import Receiver, status

pytestmark = pytest.mark.usefixtures("database")
BOTH = ("webhooks:read", "webhooks:write")
OTHER_URL = "https://attacker.example/"


def add(api: Api, *events: str, url: str = URL) -> Any:
    body = {"url": url} | ({"events": list(events)} if events else {})
    return api.post("/api/webhooks/create", body)


def listed(api: Api) -> dict[str, Any]:
    return {webhook["id"]: webhook for webhook in api.get("/api/webhooks/list")["webhooks"]}


def refused(api: Api, path: str, body: Any = None) -> Any:
    answer = api.call_refused("GET" if body is None else "POST", path, body)
    assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")
    return answer.data


def delivered(workspace_id: str, webhook_id: str, event_type: str) -> str:
    """Store a delivery, and return its id."""
    row = deliveries.row(
        workspace_id,
        webhook_id=webhook_id,
        event_id=f"evt_{event_type}",
        type=event_type,
        record_id="r",
        occurred_at=deliveries.clock.now(),
    )
    row.state, row.o1 = deliveries.FAILED, None
    run_unit(workspace_id, None, lambda unit: unit.create(row))
    return row.id


class TestRoutes:
    def test_a_key_adds_changes_and_deletes_a_webhook(
        self, owner: Owner, receiver: Receiver, things: Things
    ) -> None:
        api = owner.api(*BOTH, "crm:read")
        made = add(api, "lead.created", "client.erased")
        webhook = made["webhook"]
        assert made["secret"].startswith("whsec_")
        assert webhook["events"] == ["client.erased", "lead.created"]
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        assert receiver.types == ["lead.created"]
        path = f"/api/webhooks/{webhook['id']}/deliveries"
        (delivery,) = api.get(path)["deliveries"]
        assert delivery["state"] == "delivered"
        assert "secret" not in str(api.get(path)) + str(listed(api))
        api.post("/api/webhooks/resend", {"deliveryId": delivery["id"]})
        run_until_idle()
        assert [request.event_id for request in receiver.requests] == [delivery["eventId"]] * 2
        body = {"id": webhook["id"], "status": "off"}
        assert api.post("/api/webhooks/update", body)["webhook"]["status"] == "off"
        rotated = api.post("/api/webhooks/rotate-secret", {"id": webhook["id"]})
        assert rotated["secret"] not in {None, made["secret"]}
        deleted = api.post("/api/webhooks/delete", {"id": webhook["id"]})
        assert deleted["deleted"]
        assert webhook["id"] not in listed(api)

    @pytest.mark.parametrize("path", ["create", "rotate-secret"])
    def test_a_repeated_call_is_refused_instead_of_showing_the_secret_again(
        self, path: str, owner: Owner, receiver: Receiver
    ) -> None:
        api = owner.api(*BOTH, "crm:read")
        webhook = add(api, "lead.created")["webhook"]
        body = {"id": webhook["id"]} if path == "rotate-secret" else {"url": URL}
        headers = {"Idempotency-Key": "one"}
        first = api.call("POST", f"/api/webhooks/{path}", body, headers)
        assert first.data["secret"]
        assert first.headers["Cache-Control"] == "no-store"
        repeated = api.call("POST", f"/api/webhooks/{path}", body, headers)
        assert (repeated.status, repeated.data["code"]) == (409, "already_created")
        assert repeated.data["webhook"]["id"] == first.data["webhook"]["id"]
        assert first.data["secret"] not in repeated.body.decode()

    def test_another_workspaces_webhook_is_not_found(
        self, owner: Owner, new_owner: Any, receiver: Receiver
    ) -> None:
        webhook = add(owner.api(*BOTH, "crm:read"), "lead.created")["webhook"]
        stranger = new_owner().api(*BOTH, "*:read")
        for path in ("update", "delete", "rotate-secret"):
            body = {"id": webhook["id"], "status": "off"}
            assert stranger.call_refused("POST", f"/api/webhooks/{path}", body).status == 404
        body = {"deliveryId": f"{webhook['id']}.evt_1"}
        assert stranger.call_refused("POST", "/api/webhooks/resend", body).status == 404


class TestScopes:
    def test_patterns_and_presets_do_not_include_the_scopes(self, owner: Owner) -> None:
        api = owner.api("*:read", "*:write")
        for area in ("webhooks", "settings"):
            refused(api, SCOPED[area].example)

    def test_an_app_cannot_get_the_scopes(self, owner: Owner) -> None:
        asked = ["crm:read", *(str(scope) for scope in Scope if scope.by_name)]
        app = connect(owner.workspace, scopes=asked)
        (connection,) = call_console(owner.workspace.id, "list_connections")["connections"]
        assert connection["scopes"] == ["crm:read"]
        widened = call_console(
            owner.workspace.id,
            "widen_connection",
            account_id=owner.workspace.owner_id,
            id=app.id,
            scopes=["webhooks:write", "pages:read"],
        )
        assert widened["scopes"] == ["crm:read", "pages:read"]

    def test_each_type_has_the_scope_that_reads_its_records(self) -> None:
        scopes = {readable_types.scope_of(name) for name in EVENT_TYPES}
        assert None not in scopes
        assert readable_types.scope_of("booking.paid") is Scope.BOOKINGS_READ
        assert readable_types.scope_of("dialog.started") is Scope.AGENTS_READ

    def test_a_key_names_only_types_that_it_may_read(self, owner: Owner) -> None:
        api = owner.api(*BOTH, "crm:read")
        body = {"url": URL, "events": ["lead.created", "booking.created", "dialog.started"]}
        error = refused(api, "/api/webhooks/create", body)
        assert "booking.created, dialog.started" in error["message"]
        assert error["scopes"] == ["agents:read", "bookings:read"]
        assert listed(api).keys() == listed(owner.api("webhooks:read")).keys()
        webhook = add(api, "lead.created")["webhook"]
        body = {"id": webhook["id"], "events": ["booking.created"]}
        refused(api, "/api/webhooks/update", body)

    def test_a_key_that_names_no_types_gets_those_of_today_that_it_may_read(
        self, owner: Owner
    ) -> None:
        api = owner.api(*BOTH, "products:read")
        webhook = add(api)["webhook"]
        readable = [name for name in EVENT_TYPES if name.startswith("product.")]
        assert webhook["events"] == sorted(readable)
        body = {"id": webhook["id"], "events": []}
        assert api.post("/api/webhooks/update", body)["webhook"]["events"] == sorted(readable)
        refused(owner.api(*BOTH), "/api/webhooks/create", {"url": URL})

    @pytest.mark.parametrize("types", [(), ("lead.created", "booking.created")])
    def test_a_webhook_with_hidden_types_is_only_listed(
        self, types: tuple[str, ...], owner: Owner, add_webhook: AddWebhook
    ) -> None:
        webhook_id = add_webhook(*types)["id"]
        api = owner.api(*BOTH, "crm:read")
        shown = listed(api)[webhook_id]
        assert shown["hiddenEvents"] == len(types or EVENT_TYPES) - len(shown["events"]) > 0
        crm = {name for name in EVENT_TYPES if readable_types.scope_of(name) is Scope.CRM_READ}
        assert {*shown["events"]} == crm & {*(types or EVENT_TYPES)}
        refused(api, f"/api/webhooks/{webhook_id}/deliveries")
        for path, body in (
            ("update", {"url": OTHER_URL}),
            ("update", {"status": "off"}),
            ("update", {"events": ["lead.created"]}),
            ("rotate-secret", {}),
            ("delete", {}),
        ):
            refused(api, f"/api/webhooks/{path}", {"id": webhook_id, **body})
        delivery = delivered(owner.workspace.id, webhook_id, "lead.created")
        refused(api, "/api/webhooks/resend", {"deliveryId": delivery})
        everything = listed(owner.api("webhooks:read", "*:read"))[webhook_id]
        assert (everything["events"], everything["hiddenEvents"]) == (sorted(types), 0)

    def test_deliveries_of_types_that_a_webhook_had_before_stay_hidden(
        self, owner: Owner, add_webhook: AddWebhook
    ) -> None:
        webhook_id = add_webhook("booking.created")["id"]
        hidden, shown = (
            delivered(owner.workspace.id, webhook_id, name)
            for name in ("booking.created", "lead.created")
        )
        call_operator("update_webhook", id=webhook_id, events=["lead.created"])
        api = owner.api(*BOTH, "crm:read")
        (delivery,) = api.get(f"/api/webhooks/{webhook_id}/deliveries")["deliveries"]
        assert delivery["id"] == shown
        refused(api, "/api/webhooks/resend", {"deliveryId": hidden})

    def test_waiting_events_of_types_that_a_webhook_had_before_go_to_no_new_url(
        self, owner: Owner, add_webhook: AddWebhook, receiver: Receiver, things: Things, time: Any
    ) -> None:
        webhook_id = add_webhook("lead.created")["id"]
        receiver.answer = lambda _: status(500)
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        call_operator("update_webhook", id=webhook_id, events=["product.low_stock"])
        body = {"id": webhook_id, "url": OTHER_URL}
        owner.api(*BOTH, "products:read").post("/api/webhooks/update", body)
        time.pass_by(hours=1)
        run_until_idle()
        assert [request.url for request in receiver.requests] == [URL]


class TestRevokedKeys:
    def new_key(self, owner: Owner, *scopes: str) -> tuple[Api, str]:
        place = {"workspaceId": owner.workspace.id, "name": "Agency"}
        key = call_operator("create_key", **place, scopes=list(scopes))
        return Api(key["token"]), key["keyId"]

    def test_the_webhooks_that_a_revoked_key_made_or_changed_are_switched_off(
        self, owner: Owner, add_webhook: AddWebhook
    ) -> None:
        api, key_id = self.new_key(owner, *BOTH, "crm:read")
        made = add(api, "lead.created")["webhook"]["id"]
        changed, other = (add_webhook("lead.created")["id"] for _ in "12")
        api.post("/api/webhooks/update", {"id": changed, "url": OTHER_URL})
        call_operator("revoke_key", id=key_id)
        run_until_idle()
        after = listed(owner.api("webhooks:read", "crm:read"))
        assert {w: after[w]["offBecause"] for w in (made, changed, other)} == {
            made: "key_revoked",
            changed: "key_revoked",
            other: None,
        }
        assert after[other]["status"] == "active"

    @pytest.mark.parametrize("end", ["remove_member", "add_member", "disable_account"])
    def test_the_end_of_a_members_keys_switches_their_webhooks_off(
        self, end: str, owner: Owner, receiver: Receiver
    ) -> None:
        place, email = {"workspaceId": owner.workspace.id}, "bob@example.com"
        account = call_operator("create_account", email=email, password="correct horse")
        call_operator("add_member", **place, email=email, role="manager")
        key = call_console(
            owner.workspace.id,
            "create_key",
            account_id=account["accountId"],
            membership="manager",
            name="Agency",
            scopes=[*BOTH, "crm:read"],
        )
        webhook_id = add(Api(key["token"]), "lead.created")["webhook"]["id"]
        call_operator(end, **({} if end == "disable_account" else place), email=email)
        webhook = listed(owner.api("webhooks:read", "crm:read"))[webhook_id]
        assert webhook["offBecause"] == "key_revoked"

    def test_a_webhook_whose_url_a_person_has_set_since_stays_on(
        self, owner: Owner, receiver: Receiver
    ) -> None:
        api, key_id = self.new_key(owner, *BOTH, "crm:read")
        webhook_id = add(api, "lead.created")["webhook"]["id"]
        call_console(owner.workspace.id, "update_webhook", id=webhook_id, url=OTHER_URL)
        call_operator("revoke_key", id=key_id)
        run_until_idle()
        assert listed(owner.api("webhooks:read"))[webhook_id]["status"] == "active"

    def test_a_person_switches_it_on_again(self, owner: Owner, receiver: Receiver) -> None:
        api, key_id = self.new_key(owner, *BOTH, "crm:read")
        webhook_id = add(api, "lead.created")["webhook"]["id"]
        call_operator("revoke_key", id=key_id)
        run_until_idle()
        on = call_console(owner.workspace.id, "update_webhook", id=webhook_id, status="active")
        assert (on["webhook"]["status"], on["webhook"]["keyIds"]) == ("active", [])

    def test_the_webhooks_of_an_expired_key_stay_on(
        self, owner: Owner, receiver: Receiver, time: Any
    ) -> None:
        api = Api(owner.token([*BOTH, "crm:read"], expires_at=time.now.replace(year=2030)))
        webhook_id = add(api, "lead.created")["webhook"]["id"]
        time.now = time.now.replace(year=2031)
        run_until_idle()
        assert listed(owner.api("webhooks:read"))[webhook_id]["status"] == "active"


class TestMailToTheOwner:
    def test_the_owner_is_told_who_added_or_changed_a_webhook(
        self, inbox: Inbox, owner: Owner, receiver: Receiver
    ) -> None:
        api = owner.api(*BOTH, "crm:read")
        run_until_idle()
        inbox.clear()
        webhook = add(api, "lead.created")["webhook"]
        run_until_idle()
        mail = inbox.only()
        assert inbox.kinds == ["webhook_changed"]
        assert str(mail["Subject"]) == "Вебхук добавлен или изменён"
        text = text_of(mail)
        for words in (URL, "События: lead.created", "Ключ: test (svc_", "Аккаунт: "):
            assert words in text
        inbox.clear()
        call_operator("update_webhook", id=webhook["id"], url=OTHER_URL, events=[])
        run_until_idle()
        text = text_of(inbox.only())
        for words in (OTHER_URL, "События: все", "Аккаунт: оператор сервиса"):
            assert words in text
        assert "Ключ:" not in text
        inbox.clear()
        call_console(owner.workspace.id, "rotate_webhook_secret", id=webhook["id"])
        run_until_idle()
        assert inbox.kinds == ["webhook_changed"]

    def test_the_owner_is_told_which_key_deleted_a_webhook(
        self, inbox: Inbox, owner: Owner, receiver: Receiver
    ) -> None:
        api = owner.api(*BOTH, "crm:read")
        webhook = add(api, "lead.created")["webhook"]
        run_until_idle()
        inbox.clear()
        api.post("/api/webhooks/delete", {"id": webhook["id"]})
        run_until_idle()
        assert inbox.kinds == ["webhook_deleted"]
        mail = inbox.only()
        assert str(mail["Subject"]) == "Вебхук удалён"
        for words in (URL, "События: lead.created", "Ключ: test (svc_", "Аккаунт: "):
            assert words in text_of(mail)

    def test_the_row_of_a_deleted_webhook_stays_only_for_the_mail(
        self, owner: Owner, receiver: Receiver, time: Any
    ) -> None:
        api = owner.api(*BOTH, "crm:read")
        webhook = add(api, "lead.created")["webhook"]
        api.post("/api/webhooks/delete", {"id": webhook["id"]})
        assert listed(api) == {}
        (row,) = [row for row in WebhookRow.scan() if row.sk == webhook["id"] and "TRASH" in row.pk]
        assert row.expires - time.now <= timedelta(days=3)

    def test_the_owner_is_told_of_webhooks_that_a_revocation_switches_off(
        self, inbox: Inbox, owner: Owner, receiver: Receiver
    ) -> None:
        api = owner.api(*BOTH, "crm:read")
        key_id = add(api, "lead.created")["webhook"]["keyIds"][0]
        run_until_idle()
        inbox.clear()
        call_operator("revoke_key", id=key_id)
        run_until_idle()
        assert inbox.kinds == ["key_revoked", "webhook_off"]
        assert "Отозван ключ" in " ".join(map(text_of, inbox.mails))

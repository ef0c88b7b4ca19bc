"""Failed calls of keys and connected apps, as their owners and the keys themselves list them."""

import json
from collections import Counter
from typing import Any

import pytest

from chalicelib.core.errors import NotFoundError, UnavailableError
from chalicelib.domains.identity.operations import workspaces as workspace_operations
from chalicelib.domains.identity.store import key_errors
from chalicelib.domains.identity.store.key_errors import KeyErrorRow
from chalicelib.transports.http import MAX_BODY_BYTES
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console, call_operator, run_concurrently
from tests.factories.oauth import connect

LIST = "/api/key-errors"


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    """Return the failed calls of a key, newest first."""
    pairs = "&".join(f"{name}={value}" for name, value in query.items())
    return list(api.get(f"{LIST}?{pairs}")["errors"])


def key_id_of(api: Api) -> str:
    return str(api.get(LIST)["key"]["id"])


def shown(entry: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(entry[name] for name in ("route", "operation", "tool", "status", "code"))


class TestWhatIsListed:
    def test_a_failed_call_is_listed_by_its_route_code_and_request_id(
        self, api: Api, time: Time
    ) -> None:
        answer = api.call_refused("GET", "/api/products/01ARZ3NDEKTSV4RRFFQ69G5FAV")
        (entry,) = listed(api)
        assert shown(entry) == ("GET /api/products/{id}", "get_product", None, 404, "not_found")
        assert (entry["key"], entry["requestId"]) == (answer.data["key"], answer.data["requestId"])
        assert entry["at"] == time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def test_a_call_that_succeeds_is_not_listed_and_costs_no_request_more(self, api: Api) -> None:
        api.get("/api/workspaces/list")
        with metering() as usage:
            api.get("/api/workspaces/list")
        assert "PutItem" not in usage.calls
        assert listed(api) == []

    def test_a_failed_call_costs_one_write(self, api: Api) -> None:
        api.call_refused("POST", "/api/categories/create", {})
        with metering() as usage:
            api.call_refused("POST", "/api/categories/create", {})
        assert sorted(usage.calls) == ["GetItem", "PutItem"]  # the key, and the failed call
        assert usage.writes == 1

    @pytest.mark.parametrize(
        ("body", "headers", "expected"),
        [
            (b"{", {}, (400, "validation_error")),
            (b"<a/>", {"Content-Type": "text/xml"}, (415, "unsupported_media_type")),
            (b" " * (MAX_BODY_BYTES + 1), {}, (413, "payload_too_large")),
            ({"name": "Rye", "price": -1}, {}, (400, "validation_error")),
        ],
        ids=["json", "type", "size", "field"],
    )
    def test_a_body_that_is_not_read_is_listed_too(
        self, api: Api, body: Any, headers: dict[str, str], expected: tuple[int, str]
    ) -> None:
        api.call_refused("POST", "/api/products/create", body, **headers)
        assert shown(listed(api)[0])[3:] == expected

    def test_a_missing_scope_is_listed(self, owner: Owner) -> None:
        api = owner.api("crm:read")
        api.call_refused("GET", "/api/products/list")
        assert shown(listed(api)[0])[3:] == (403, "insufficient_scope")

    def test_a_crash_is_listed_as_an_internal_error(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(workspace_operations.workspaces, "get", lambda _: 1 // 0)
            answer = api.call_refused("GET", "/api/workspace")
        assert shown(listed(api)[0])[3:] == (500, "internal_error")
        assert listed(api)[0]["requestId"] == answer.data["requestId"]

    def test_nothing_that_the_caller_has_sent_is_stored(self, api: Api) -> None:
        secret = "hunter2-of-ada"
        api.call_refused("GET", f"/api/products/{secret}")
        api.call_refused("POST", "/api/products/create", {secret: secret, "name": secret})
        api.tool("svc_get_product", id=secret)
        rows = [str(row.attribute_values) for row in KeyErrorRow.scan()]
        stored = [row for row in rows if "KEY-ERRORS" in row]
        assert len(stored) == 3
        assert not any(secret in row or api.token in row for row in stored if api.token)


class TestTools:
    def test_a_tool_that_fails_is_listed_by_its_name_and_code(self, api: Api) -> None:
        api.tool("svc_get_product", id="unknown")
        (entry,) = listed(api)
        assert shown(entry) == (
            *("POST /api/mcp", "get_product", "svc_get_product"),
            *(404, "not_found"),
        )

    def test_each_failed_call_of_a_batch_is_listed(self, api: Api) -> None:
        calls = [
            {
                "jsonrpc": "2.0",
                "id": n,
                "method": "tools/call",
                "params": {"name": name, "arguments": {"id": "unknown"}},
            }
            for n, name in enumerate(("svc_get_product", "svc_get_page", "svc_list_sites"))
        ]
        api.call("POST", "/api/mcp", calls)
        assert {entry["tool"] for entry in listed(api)} == {"svc_get_product", "svc_get_page"}

    def test_the_calls_of_a_connected_app_are_listed_for_the_owner(self, owner: Owner) -> None:
        connection = connect(owner.workspace)
        Api(connection.access).tool("svc_get_lead", id="unknown")
        Api(connection.access).tool("svc_list_products")
        page = call_console(owner.workspace.id, "list_errors_of_key", id=connection.id)
        assert page["key"]["isApp"]
        assert {(entry["tool"], entry["code"]) for entry in page["errors"]} == {
            ("svc_get_lead", "not_found"),
            ("svc_list_products", "insufficient_scope"),
        }

    def test_a_plan_without_the_api_is_listed(self, owner: Owner, api: Api) -> None:
        key_id = key_id_of(api)
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        api.call("POST", "/api/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        api.call_refused("GET", "/api/products/list")
        page = call_console(owner.workspace.id, "list_errors_of_key", id=key_id)
        assert sorted(map(shown, page["errors"]), key=str) == [
            ("GET /api/products/list", "list_products", None, 403, "plan_required"),
            ("POST /api/mcp", None, None, 403, "plan_required"),
        ]


class TestKeysThatHaveEnded:
    def test_calls_with_a_revoked_key_are_listed(self, owner: Owner) -> None:
        api = owner.api("products:read")
        key_id = key_id_of(api)
        call_operator("revoke_key", id=key_id)
        assert api.call_refused("GET", "/api/products/list").status == 401
        api.call("POST", "/api/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        page = call_console(owner.workspace.id, "list_errors_of_key", id=key_id)
        assert Counter(map(shown, page["errors"])) == {
            ("GET /api/products/list", "list_products", None, 401, "unauthorized"): 1,
            ("POST /api/mcp", None, None, 401, "unauthorized"): 1,
        }

    def test_calls_with_an_expired_key_are_listed(self, owner: Owner, time: Time) -> None:
        api = Api(owner.token(["products:read"], expires_at=time.now.replace(year=2030)))
        key_id = key_id_of(api)
        time.now = time.now.replace(year=2031)
        api.call_refused("GET", "/api/products/list")
        page = call_console(owner.workspace.id, "list_errors_of_key", id=key_id)
        assert [entry["status"] for entry in page["errors"]] == [401]

    def test_a_call_without_a_known_key_writes_nothing(self, owner: Owner) -> None:
        for token in (None, "svc_unknown", f"{owner.token()[:-1]}x"):
            with metering() as usage:
                Api(token).call_refused("GET", "/api/products/list")
            assert "PutItem" not in usage.calls


class TestLimits:
    def fail(self, api: Api, count: int) -> None:
        for _ in range(count):
            api.call_refused("GET", "/api/products/unknown")

    def test_at_most_sixty_failures_of_an_hour_are_kept(self, api: Api, time: Time) -> None:
        time.now = time.now.replace(minute=0)
        self.fail(api, 60)
        assert len(listed(api, limit=100)) == 60
        self.fail(api, 2)
        with metering() as usage:  # This process knows by now that the hour is full.
            self.fail(api, 5)
        assert usage.calls == 5 * ["GetItem", "GetItem"]  # the key and the product
        assert len(listed(api, limit=100)) == 60
        time.pass_by(hours=1)
        self.fail(api, 1)
        assert len(listed(api, limit=100)) == 61

    def test_another_process_finds_out_by_one_write_that_an_hour_is_full(
        self, api: Api, time: Time
    ) -> None:
        time.now = time.now.replace(minute=0)
        self.fail(api, 60)
        key_errors.forget()
        with metering() as usage:
            self.fail(api, 3)
        assert Counter(usage.calls) == {"GetItem": 6, "PutItem": 1, "Query": 1}

    @pytest.mark.store
    def test_failures_at_once_are_all_kept_up_to_sixty(self, api: Api, time: Time) -> None:
        time.now = time.now.replace(minute=0)
        run_concurrently(50, lambda _: api.call_refused("GET", "/api/products/unknown"))
        assert len(listed(api, limit=100)) == 50
        run_concurrently(50, lambda _: api.call_refused("GET", "/api/products/unknown"))
        assert len(listed(api, limit=100)) == 60

    def test_failures_of_other_keys_have_slots_of_their_own(self, api: Api, owner: Owner) -> None:
        self.fail(api, 61)
        other = owner.api("products:read")
        self.fail(other, 1)
        assert len(listed(other)) == 1

    def test_failures_are_kept_for_seven_days(self, api: Api, time: Time) -> None:
        self.fail(api, 1)
        time.pass_by(days=6, hours=23)
        assert len(listed(api)) == 1
        time.pass_by(hours=2)
        assert listed(api) == []
        rows = [row for row in KeyErrorRow.scan() if "KEY-ERRORS" in row.pk]
        assert [row.expires - row.at for row in rows] == [key_errors.RETENTION]

    def test_pages_follow_each_other_newest_first(self, api: Api, time: Time) -> None:
        request_ids: list[str] = []
        for _ in range(25):
            answer = api.call_refused("GET", "/api/products/unknown")
            request_ids.insert(0, answer.data["requestId"])
            time.pass_by(minutes=7)
        found: list[str] = []
        position: dict[str, Any] = {}
        while True:
            page = call_console(
                owner_of(api), "list_errors_of_key", id=key_id_of(api), limit=4, **position
            )
            found += [entry["requestId"] for entry in page["errors"]]
            if page["next"] is None:
                break
            position = {"before": page["next"]}
        assert found == request_ids


def owner_of(api: Api) -> str:
    return str(api.get("/api/workspace")["workspace"]["id"])


class TestFaults:
    @pytest.mark.parametrize("error", [UnavailableError(), None])
    def test_a_database_that_cannot_store_it_does_not_change_the_answer(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception | None
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise error or KeyErrorRow.DoesNotExist

        monkeypatch.setattr(KeyErrorRow, "save", fail)
        answer = api.call_refused("GET", "/api/products/unknown")
        assert (answer.status, answer.data["code"]) == (404, "not_found")
        failed, data = api.tool("svc_get_product", id="unknown")
        assert failed
        assert data["httpStatus"] == 404


class TestWhoMayRead:
    def test_a_key_reads_its_own_failures_whatever_its_scopes(self, owner: Owner, api: Api) -> None:
        api.call_refused("GET", "/api/products/unknown")
        other = owner.api("crm:read")
        other.call_refused("GET", "/api/products/list")
        assert [entry["code"] for entry in listed(other)] == ["insufficient_scope"]
        assert other.get(LIST)["key"]["id"] != key_id_of(api)

    def test_a_key_of_another_workspace_is_unknown(self, owner: Owner, new_owner: Any) -> None:
        foreign = key_id_of(new_owner().api())
        for key_id in (foreign, "unknown", "svc_live_token"):
            with pytest.raises(NotFoundError):
                call_console(owner.workspace.id, "list_errors_of_key", id=key_id)

    def test_the_operator_reads_the_failures_of_a_key_and_of_an_app(
        self, owner: Owner, api: Api
    ) -> None:
        api.call_refused("GET", "/api/products/unknown")
        assert len(call_operator("list_errors_of_key", id=key_id_of(api))["errors"]) == 1
        connection = connect(owner.workspace)
        assert call_operator("list_errors_of_key", id=connection.id)["key"]["isApp"]

    @pytest.mark.parametrize("before", ["x", "Z" * 26, "7" + "Z" * 25, "0" * 26])
    def test_a_position_of_another_form_fails_with_a_reason(self, api: Api, before: str) -> None:
        answer = api.call("GET", f"{LIST}?before={before}")
        assert answer.status == (400 if before == "x" else 200), json.loads(answer.body)

"""An app that lacks a scope asks its user for it, and the user allows it."""

import json
from typing import Any

import pytest

from chalicelib.core.errors import ConflictError, ForbiddenError
from chalicelib.domains.identity.store import connections
from chalicelib.transports.step_up import HOSTS_WITHOUT_STEP_UP
from tests.conftest import Answer, Api, Owner, call_console, call_operator
from tests.factories.oauth import ConnectedApp, connect, grant

pytestmark = pytest.mark.store

READS = ["projects:read", "crm:read"]
WRITE = {"name": "svc_create_site", "arguments": {"title": "Bakery"}}
CHALLENGE = (
    'Bearer error="insufficient_scope", scope="projects:read projects:write crm:read", '
    'resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource/api/mcp"'
)


def app(owner: Owner, name: str = "Cursor", **changes: Any) -> ConnectedApp:
    return connect(owner.workspace, clientName=name, **{"scopes": READS, **changes})


def write(token: str, **params: Any) -> Answer:
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {**WRITE, **params}}
    return Api(token).call("POST", "/api/mcp", message)


def result(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["result"]


def manager(owner: Owner) -> str:
    call_operator("create_account", email="m@example.com", password="correct horse")
    where = {"workspaceId": owner.workspace.id, "email": "m@example.com"}
    added: str = call_operator("add_member", **where, role="manager")["accountId"]
    return added


def widen(owner: Owner, account_id: str = "", **arguments: Any) -> Any:
    who = account_id or str(owner.workspace.owner_id)
    return call_console(owner.workspace.id, "widen_connection", account_id=who, **arguments)


class TestChallenge:
    def test_a_call_without_its_scope_is_challenged_for_old_and_new_scopes(
        self, owner: Owner
    ) -> None:
        answer = write(app(owner).access)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (403, CHALLENGE)
        body = json.loads(answer.body)
        assert (body["id"], body["error"]["data"]["code"]) == (5, "insufficient_scope")
        assert answer.data["code"] == "insufficient_scope"

    @pytest.mark.parametrize("name", ["Claude", "Claude Code (bakery)", "ChatGPT", "claude"])
    def test_hosts_that_drop_the_challenge_get_a_result_with_a_link(
        self, owner: Owner, name: str
    ) -> None:
        connected = app(owner, name)
        failed = result(write(connected.access))
        assert (failed["isError"], failed["_meta"]) == (True, {"mcp/www_authenticate": [CHALLENGE]})
        failure = json.loads(failed["content"][0]["text"])
        assert (failure["httpStatus"], failure["data"]["code"]) == (403, "insufficient_scope")
        link = f"/console/w/{owner.workspace.slug}/apps/{connected.id}/allow?scope=projects:write"
        assert f"http://127.0.0.1:8000{link} " in failure["data"]["message"]

    def test_each_host_of_the_list_has_its_source(self) -> None:
        assert all(source.startswith("https://") for source in HOSTS_WITHOUT_STEP_UP.values())

    def test_a_scope_that_the_user_cannot_allow_is_not_asked_for(self, owner: Owner) -> None:
        connected = connect(owner.workspace, manager(owner), clientName="Cursor", scopes=READS)
        failed = result(write(connected.access, name="svc_delete_blog_post", arguments={"id": "x"}))
        assert (failed["isError"], "_meta" in failed) == (True, False)
        failure = json.loads(failed["content"][0]["text"])["data"]
        assert (failure["code"], failure["scope"]) == ("insufficient_scope", "blog:write")
        assert "ADMIN" in failure["message"]
        assert "/allow?" not in failure["message"]

    def test_keys_and_batches_get_results(self, owner: Owner) -> None:
        assert "_meta" not in result(write(owner.token(READS)))
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": WRITE}
        batch = [message, {**message, "id": 6, "method": "ping", "params": {}}]
        answer = Api(app(owner).access).call("POST", "/api/mcp", batch)
        refused, ping = json.loads(answer.body)
        assert (answer.status, refused["result"]["isError"], ping["result"]) == (200, True, {})

    def test_an_app_lists_the_tools_that_its_user_could_allow(self, owner: Owner) -> None:
        def names(token: str) -> list[str]:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            answer = Api(token).call("POST", "/api/mcp", message)
            return [tool["name"] for tool in result(answer)["tools"]]

        assert names(app(owner).access) == names(owner.token(["*:read", "*:write"]))
        assert "svc_create_site" not in names(owner.token(READS))


class TestReplacing:
    def test_a_new_authorization_of_a_hosted_app_replaces_the_former_one(
        self, owner: Owner
    ) -> None:
        former = app(owner)
        assert former.works
        wider = app(owner, scopes=[*READS, "projects:write"])
        assert (former.works, wider.works) == (False, True)
        assert result(write(wider.access))["isError"] is False
        assert len(connections.live(owner.workspace.id)) == 1

    def test_a_lost_code_another_client_and_another_device_replace_nothing(
        self, owner: Owner
    ) -> None:
        former = app(owner)
        grant(owner.workspace)
        app(owner, clientId="https://other.example/client.json")
        laptop, desktop = (app(owner, redirectUri="http://127.0.0.1:33418/") for _ in "ab")
        assert all(connected.works for connected in (former, laptop, desktop))


class TestAllowingMore:
    def test_a_connection_is_widened_at_once(self, owner: Owner) -> None:
        connected = app(owner, "Claude")
        narrow = connected.refreshed(scopes=["crm:read"])
        widened = widen(owner, id=connected.id, scopes=["projects:write", "crm:read"])
        assert widened["scopes"] == [*READS, "projects:write"]
        assert result(write(connected.access))["isError"] is False
        assert result(write(narrow.access, arguments={"title": "Second"}))["isError"] is False
        reading = {"name": "svc_list_sites", "arguments": {}}
        assert result(write(narrow.access, **reading))["isError"] is True, "it stays narrow"

    def test_only_the_account_that_connected_a_live_app_allows_it_more(self, owner: Owner) -> None:
        connected = app(owner)
        more = {"id": connected.id, "scopes": ["projects:write"]}
        with pytest.raises(ForbiddenError, match="Only the account"):
            widen(owner, manager(owner), **more)
        call_console(owner.workspace.id, "end_connection", id=connected.id)
        with pytest.raises(ConflictError, match="no longer connected"):
            widen(owner, **more)

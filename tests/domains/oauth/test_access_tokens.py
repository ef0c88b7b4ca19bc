"""Acceptance, cost and refusal of access tokens."""

from dataclasses import asdict
from typing import Any

import pytest

from chalicelib.application.invoke import authorize
from chalicelib.core.errors import ForbiddenError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import ApiKeyPrincipal, OAuthPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.rules import resources
from chalicelib.lib import tokens
from infra.bench.dynamodb.usage import DatabaseUsage, metering
from tests.conftest import Api, Owner, Time
from tests.factories.oauth import ConnectedApp, connect, forged, malformed, works
from tests.support.keyed import keyed

pytestmark = pytest.mark.store

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def app(owner: Owner) -> ConnectedApp:
    return connect(owner.workspace, scopes=["*:read", "*:write"])


def refusal(token: str, method: str = "POST", path: str = "/api/mcp") -> Any:
    """Call a route with a token, which must be refused. Return the status and the key."""
    answer = Api(token).call_refused(method, path, LIST_TOOLS if method == "POST" else None)
    return answer.status, answer.data["key"]


class TestWhereTheyWork:
    @pytest.mark.parametrize("path", ["/api/projects/list", "/api/workspaces/list"])
    def test_rest_refuses_tokens_and_says_so(self, app: ConnectedApp, path: str) -> None:
        for token in (app.access, app.refresh, app.code):
            assert refusal(token, "GET", path) == (401, "oauth_token")

    @pytest.mark.parametrize("path", ["/console", "/console/account"])
    def test_console_refuses_tokens_and_says_so(self, app: ConnectedApp, path: str) -> None:
        assert refusal(app.access, "GET", path) == (401, "oauth_token")

    def test_console_refuses_pages_with_a_token_in_the_address(self, app: ConnectedApp) -> None:
        for token in (app.access, app.refresh):
            answer = Api(None).call("GET", f"/console/sign-in?next={token}")
            assert answer.status == 403

    def test_tool_server_refuses_other_tokens_of_the_connection(self, app: ConnectedApp) -> None:
        for token in (app.refresh, app.code, forged(app.id, tokens.ACCESS_PREFIX)):
            assert refusal(token) == (401, "token_expired")
        assert app.works

    def test_principal_is_the_connection(self, app: ConnectedApp, owner: Owner) -> None:
        from chalicelib.transports.auth import authenticate_tool_call

        principal = authenticate_tool_call({"authorization": f"Bearer {app.access}"}, "192.0.2.1")
        expected = OAuthPrincipal(
            workspace_id=owner.workspace.id,
            account_id=owner.workspace.owner_id,
            role="admin",
            plan="business",
            scopes=frozenset(resources.REQUESTABLE),
            key_id=app.id,
            client_name="Claude",
            client_ip="192.0.2.1",
        )
        assert type(principal) is OAuthPrincipal
        assert asdict(principal) == asdict(expected)

    def test_callers_of_an_unknown_class_are_refused(self) -> None:
        class Stranger(ApiKeyPrincipal):
            pass

        stranger = Stranger(key_id="k", plan="business", scopes=frozenset(Scope))
        with pytest.raises(ForbiddenError, check=keyed("wrong_caller")):
            authorize(REGISTRY["list_sites"], stranger)

    def test_hidden_tools_are_explained_without_keys(self, owner: Owner) -> None:
        narrow = connect(owner.workspace, scopes=["crm:read"])
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        body = Api(narrow.access).call("POST", "/api/mcp", message).body.decode()
        assert "calling one asks the user for its scope" in body
        assert "a key with these scopes" not in body


class TestCost:
    def test_tool_call_with_a_token_costs_as_much_as_with_a_key(
        self, app: ConnectedApp, owner: Owner
    ) -> None:
        def usage(token: str, tool: str, **arguments: Any) -> DatabaseUsage:
            api = Api(token)
            assert not api.tool("svc_list_sites")[0]  # The first use is written to the row.
            with metering() as spent:
                assert not api.tool(tool, **arguments)[0]
            return spent

        for number, (tool, arguments) in enumerate(
            [("svc_list_sites", {}), ("svc_create_site", {"title": "Bakery"})]
        ):
            fields = {**arguments, "title": f"Bakery {number}"} if arguments else {}
            by_key = usage(owner.token(), tool, **fields)
            by_token = usage(app.access, tool, **{**fields, "title": "Other"} if fields else {})
            assert by_token.calls == by_key.calls
            assert (by_token.reads, by_token.waves) == (by_key.reads, by_key.waves)

    def test_malformed_tokens_are_refused_without_a_read(self, app: ConnectedApp) -> None:
        wrong = (malformed(app.access), "wsat_", "wsat_x", app.access.lower(), app.access + "0")
        for token in wrong:
            with metering() as usage:
                assert refusal(token)[0] == 401
            assert usage.calls == []

    def test_row_of_a_connection_is_one_read_unit_at_its_largest(
        self, owner: Owner, time: Time
    ) -> None:
        """Ten processes refresh in parallel, twice, with the longest names and all scopes."""
        longest = {"clientName": "😀" * 100, "clientHost": "h" * 253}
        app = connect(owner.workspace, scopes=["*:read", "*:write"], **longest)
        pairs = [app.refreshed() for _ in range(10)]
        assert pairs[0].works  # It writes the time of the last use.
        time.pass_by(minutes=2)
        pairs = [pair.refreshed(scopes=["blog:read", "blog:write"]) for pair in pairs]
        row = connections.require(app.id)
        assert len(row.token_pairs) == 20
        assert item_bytes(row.serialize()) < 4_000
        with metering() as usage:
            assert works(pairs[0].access)
        assert usage.calls[0] == "GetItem"

    def test_last_use_is_written_once_in_ten_minutes(self, app: ConnectedApp, time: Time) -> None:
        newer = app.refreshed()
        writes = []
        for _ in range(21):
            with metering() as usage:
                assert newer.works
            writes.append("UpdateItem" in usage.calls)
            time.pass_by(minutes=1)
        assert [n for n, is_written in enumerate(writes) if is_written] == [0, 10, 20]


def item_bytes(item: dict[str, dict[str, Any]]) -> int:
    """Return the bytes that DynamoDB counts for an item: names and values, numbers by digits."""
    return sum(len(name) + len(str(*value.values()).encode()) for name, value in item.items())

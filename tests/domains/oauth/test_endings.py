"""Ends and changes of connections, by members, accounts, passwords, plans and disconnecting."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import ForbiddenError, NotFoundError
from chalicelib.domains.identity.store import accounts, connections
from chalicelib.engine import audit
from tests.conftest import PASSWORD, Api, Owner, Time, all_rows, call_console, call_operator
from tests.factories.oauth import ConnectedApp, connect, exchange, grant, works

EMAIL = "manager@example.com"


@pytest.fixture
def manager(owner: Owner) -> str:
    """The account id of a manager of the owner's workspace."""
    account = call_operator("create_account", email=EMAIL, password=PASSWORD)
    call_operator("add_member", workspaceId=owner.workspace.id, email=EMAIL, role="manager")
    return str(account["accountId"])


@pytest.fixture
def other_app(new_owner: Callable[..., Owner], manager: str) -> ConnectedApp:
    """An app that the manager connected to another workspace."""
    other = new_owner().workspace
    call_operator("add_member", workspaceId=other.id, email=EMAIL, role="manager")
    return connect(other, manager)


def plan_refusal(app: ConnectedApp) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = Api(app.access).call_refused("POST", "/api/mcp", message)
    return answer.status, answer.data["code"]


class TestMembers:
    @pytest.mark.parametrize("loses", ["remove_member", "add_member"])
    def test_leaving_or_demotion_ends_the_connections_in_this_workspace_only(
        self, owner: Owner, manager: str, other_app: ConnectedApp, loses: str
    ) -> None:
        own_app, managers_app = connect(owner.workspace), connect(owner.workspace, manager)
        pending = grant(owner.workspace, manager)["connectionId"]
        where = {"workspaceId": owner.workspace.id, "email": EMAIL}
        response = call_operator(
            loses, **where, **({} if loses == "remove_member" else {"role": "member"})
        )
        assert response.get("endedConnections", 2) == 2
        assert not managers_app.works
        assert managers_app.refresh_refusal() == "invalid_grant"
        assert connections.require(pending).state == "ended"
        assert own_app.works
        assert other_app.works
        (entry, *_) = audit.latest(owner.workspace.id)
        assert {f"connection:{managers_app.id}", f"connection:{pending}"} <= set(entry.resources)

    def test_becoming_manager_again_does_not_revive_a_connection(
        self, owner: Owner, manager: str
    ) -> None:
        app = connect(owner.workspace, manager)
        for role in ("member", "manager"):
            call_operator("add_member", workspaceId=owner.workspace.id, email=EMAIL, role=role)
        assert not app.works

    def test_staying_a_manager_keeps_the_connections(self, owner: Owner, manager: str) -> None:
        app = connect(owner.workspace, manager)
        call_operator("add_member", workspaceId=owner.workspace.id, email=EMAIL, role="manager")
        assert app.works

    def test_all_keys_and_connections_of_a_workspace_fit_in_one_transaction(
        self, owner: Owner, manager: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both limits are reached. The owner has one key, and the manager all others."""
        monkeypatch.setattr(connections, "read_all", lambda _: [])
        for _ in range(49):
            key = {"name": "x", "scopes": ["crm:read"]}
            call_console(owner.workspace.id, "create_key", account_id=manager, **key)
        monkeypatch.setattr(connections, "live_of_account", lambda _: [])
        monkeypatch.setattr("chalicelib.domains.identity.store.api_keys.live", lambda *_: [])
        apps = [connect(owner.workspace, manager) for _ in range(40)]
        monkeypatch.undo()
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="enterprise")
        assert {c.plan for c in connections.live(owner.workspace.id)} == {"enterprise"}
        response = call_operator("remove_member", workspaceId=owner.workspace.id, email=EMAIL)
        assert (response["revokedKeys"], response["endedConnections"]) == (49, 40)
        assert not any(app.works for app in apps)


@pytest.mark.store
class TestAccounts:
    def test_disabling_an_account_ends_its_connections_everywhere(
        self, owner: Owner, manager: str, other_app: ConnectedApp
    ) -> None:
        own_app, managers_app = connect(owner.workspace), connect(owner.workspace, manager)
        assert call_operator("disable_account", email=EMAIL)["endedConnections"] == 2
        assert not managers_app.works
        assert not other_app.works
        assert own_app.works
        (entry, *_) = audit.latest(owner.workspace.id)
        assert entry.operation == "disable_account"
        assert f"connection:{managers_app.id}" in entry.resources

    def test_signing_out_everywhere_ends_the_connections_of_the_account(
        self, owner: Owner, manager: str, other_app: ConnectedApp
    ) -> None:
        own_app, managers_app = connect(owner.workspace), connect(owner.workspace, manager)
        call_console(owner.workspace.id, "sign_out_everywhere", account_id=manager)
        (entry, *_) = audit.latest(owner.workspace.id)
        assert (entry.operation, entry.resources) == ("sign_out_everywhere", [f"account:{manager}"])
        assert not managers_app.works
        assert not other_app.works
        assert own_app.works

    @pytest.mark.parametrize("ends", [False, True])
    def test_changing_the_password_ends_connections_only_if_asked(
        self, owner: Owner, manager: str, other_app: ConnectedApp, ends: bool
    ) -> None:
        managers_app = connect(owner.workspace, manager)
        words = {"current": PASSWORD, "password": "battery staple", "endConnections": ends}
        call_console(owner.workspace.id, "change_password", account_id=manager, **words)
        assert managers_app.works is not ends
        assert other_app.works is not ends

    def test_operator_who_sets_a_password_keeps_keys_and_connections(self, owner: Owner) -> None:
        app, key = connect(owner.workspace), owner.token()
        email = accounts.get(owner.workspace.owner_id).email
        call_operator("set_password", email=email, password="battery staple")
        assert app.works
        assert works(key)


class TestPlans:
    def test_plan_changes_apply_to_the_next_call(self, owner: Owner) -> None:
        app = connect(owner.workspace)
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="free")
        assert plan_refusal(app) == (403, "plan_required")
        newer = app.refreshed()
        assert plan_refusal(newer) == (403, "plan_required")
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="business")
        assert app.works
        assert newer.works

    def test_plan_changes_apply_to_codes_that_are_not_exchanged_yet(self, owner: Owner) -> None:
        pending = grant(owner.workspace)["connectionId"]
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="enterprise")
        assert connections.require(pending).plan == "enterprise"


class TestDisconnecting:
    def test_managers_disconnect_any_app_of_the_workspace(
        self, owner: Owner, manager: str, time: Time
    ) -> None:
        managers_app, own_app = connect(owner.workspace, manager), connect(owner.workspace)
        ended = call_console(
            owner.workspace.id,
            "end_connection",
            account_id=manager,
            id=own_app.id,
            membership="manager",
        )
        assert ended == {"connectionId": own_app.id, "endedAt": "2027-01-15T12:00:00.000Z"}
        assert not own_app.works
        assert managers_app.works
        time.pass_by(hours=1)
        assert call_operator("end_connection", id=own_app.id) == ended

    def test_plain_members_disconnect_nothing(self, owner: Owner) -> None:
        app = connect(owner.workspace)
        with pytest.raises(ForbiddenError):
            call_console(owner.workspace.id, "end_connection", id=app.id, membership="member")
        assert app.works

    def test_app_of_another_workspace_is_not_found(
        self, owner: Owner, other_app: ConnectedApp
    ) -> None:
        with pytest.raises(NotFoundError):
            call_console(owner.workspace.id, "end_connection", id=other_app.id)
        assert other_app.works

    def test_disconnecting_and_changes_by_the_app_are_audited(
        self, owner: Owner, time: Time
    ) -> None:
        app = connect(owner.workspace, scopes=["projects:write"])
        assert not Api(app.access).tool("svc_create_site", title="Bakery")[0]
        time.pass_by(seconds=1)
        call_operator("end_connection", id=app.id)
        entries = call_console(owner.workspace.id, "list_audit_log")["entries"]
        by_name = {entry["operation"]: entry for entry in entries}
        used = {"id": app.id, "name": "Claude", "masked": "wsat_…", "isApp": True}
        assert by_name["create_site"]["key"] == used
        (ended,) = by_name["end_connection"]["resources"]
        assert (ended["type"], ended["id"], ended["name"]) == ("connection", app.id, "Claude")
        assert {"grant_access", "exchange_code"} <= by_name.keys()


class TestList:
    def test_list_shows_the_account_app_and_time(self, owner: Owner, time: Time) -> None:
        connect(owner.workspace, clientId="https://claude.example/client.json")
        time.pass_by(minutes=1)
        app = connect(owner.workspace, clientName="ChatGPT", clientHost="chatgpt.example")
        time.pass_by(minutes=1)
        assert app.works
        grant(owner.workspace)
        response = call_console(owner.workspace.id, "list_connections")
        account = accounts.get(owner.workspace.owner_id)
        newest, oldest = response["connections"]
        assert newest == {
            "id": app.id,
            "clientName": "ChatGPT",
            "clientHost": "chatgpt.example",
            "scopes": ["projects:read", "crm:read", "crm:write"],
            "state": "live",
            "account": {"id": account.id, "name": account.name, "email": account.email},
            "createdAt": "2027-01-15T12:01:00.000Z",
            "lastUsedAt": "2027-01-15T12:02:00.000Z",
            "endsAt": "2027-07-14T12:01:00.000Z",
            "endedAt": None,
        }
        assert (oldest["clientName"], oldest["lastUsedAt"]) == ("Claude", None)
        assert (response["live"], response["most"]) == (3, 50)

    def test_managers_see_all_connections_and_plain_members_none(
        self, owner: Owner, manager: str
    ) -> None:
        own_app, managers_app = connect(owner.workspace), connect(owner.workspace, manager)

        def listed_ids(membership: str) -> set[str]:
            caller = {"account_id": manager, "membership": membership}
            page = call_console(owner.workspace.id, "list_connections", **caller)
            return {connection["id"] for connection in page["connections"]}

        with pytest.raises(ForbiddenError):
            listed_ids("member")
        assert listed_ids("manager") == listed_ids("owner") == {own_app.id, managers_app.id}

    def test_connection_without_use_for_60_days_is_listed_as_expired(
        self, owner: Owner, time: Time
    ) -> None:
        connect(owner.workspace)
        time.pass_by(days=60)
        response = call_console(owner.workspace.id, "list_connections")
        assert [connection["state"] for connection in response["connections"]] == ["expired"]
        assert response["live"] == 0

    def test_rows_of_a_connection_expire_after_its_life(self, owner: Owner, time: Time) -> None:
        def expiries() -> list[float]:
            rows = {k: v for k, v in all_rows().items() if "CONNECTION" in k and "LOCK" not in k}
            began = time.now.timestamp()
            return sorted((int(v["expires"]["N"]) - began) / 86_400 for v in rows.values())

        consent = grant(owner.workspace)
        minute = 60 / 86_400
        assert expiries() == [1 + minute, 31 + minute, 31 + minute]
        tokens = exchange(consent["code"])
        assert expiries() == [61, 91, 91]
        time.pass_by(days=50)
        app = ConnectedApp(
            consent["connectionId"], "", tokens["accessToken"], tokens["refreshToken"]
        )
        app.refreshed()
        assert expiries() == [61, 91, 91]
        call_operator("end_connection", id=app.id)
        assert expiries() == [30, 91, 91]

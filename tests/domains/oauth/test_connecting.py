"""Consent to an app, and the exchange of its code."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import (
    ConflictError,
    ForbiddenError,
    PlanRequiredError,
    UnauthorizedError,
    ValidationError,
)
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.domains.identity.flows import connection_changes
from chalicelib.domains.identity.store import accounts, connections, console_sessions
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.lib import tokens
from infra.bench.dynamodb.usage import metering
from tests.conftest import PASSWORD, Api, Owner, Time, call_console, call_operator
from tests.factories.oauth import (
    GRANT,
    connect,
    exchange,
    exchange_arguments,
    forged,
    grant,
    malformed,
    refusal,
    works,
)
from tests.support.keyed import keyed


def member(owner: Owner, role: str) -> str:
    """Add an account to the owner's workspace, and return its id."""
    email = f"{role}@example.com"
    account = call_operator("create_account", email=email, password=PASSWORD)
    call_operator("add_member", workspaceId=owner.workspace.id, email=email, role=role)
    return str(account["accountId"])


class TestConsent:
    def test_connected_app_calls_tools_with_its_scopes_only(self, owner: Owner) -> None:
        api = Api(connect(owner.workspace).access)
        failed, answer = api.tool("svc_list_sites")
        assert not failed, answer
        failed, answer = api.tool("svc_list_products")
        assert failed
        assert answer["data"]["code"] == "insufficient_scope"
        assert answer["data"]["scope"] == "products:read"
        message = answer["data"]["message"]
        assert "/apps/" in message
        assert "key" not in message

    def test_managers_connect_apps(self, owner: Owner) -> None:
        assert connect(owner.workspace, member(owner, "manager")).works

    def test_plain_members_connect_no_apps(self, owner: Owner) -> None:
        with pytest.raises(ForbiddenError, check=keyed("role_required", role="manager")):
            grant(owner.workspace, member(owner, "member"))
        with pytest.raises(ForbiddenError, check=keyed("role_required", role="manager")):
            call_console(owner.workspace.id, "grant_access", membership="member", **GRANT)

    @pytest.mark.parametrize("plan", ["free", "start"])
    def test_apps_need_a_plan_with_the_api(
        self, new_owner: Callable[..., Owner], plan: str
    ) -> None:
        with pytest.raises(PlanRequiredError):
            grant(new_owner(plan).workspace)

    def test_disabled_account_connects_no_app(self, owner: Owner) -> None:
        email = accounts.get(owner.workspace.owner_id).email
        call_operator("disable_account", email=email)
        with pytest.raises(ConflictError, match="disabled"):
            grant(owner.workspace)

    def test_ended_session_connects_no_app(self, owner: Owner) -> None:
        row = console_sessions.find(owner.start_session())
        assert row is not None
        person = SessionPrincipal(
            account_id=owner.workspace.owner_id,
            workspace_id=owner.workspace.id,
            membership=Role.OWNER,
            session_id=row.session_id,
            password=PASSWORD,
        )

        def consent() -> Any:
            return invoke(REGISTRY["grant_access"], person, lambda: GRANT, request_id="r")

        assert consent().body
        call_console(owner.workspace.id, "sign_out_everywhere", account_id=person.account_id)
        with pytest.raises(UnauthorizedError, match="session has ended"):
            consent()

    @pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\u202eb", "two\nlines"])
    def test_names_that_cannot_be_shown_are_refused(self, owner: Owner, name: str) -> None:
        with pytest.raises(ValidationError) as refusal:
            grant(owner.workspace, clientName=name)
        assert [error.field for error in refusal.value.errors] == ["clientName"]

    @pytest.mark.parametrize("challenge", ["", "plain", "x" * 42, "x" * 44, "x" * 42 + "="])
    def test_challenges_of_other_methods_than_s256_are_refused(
        self, owner: Owner, challenge: str
    ) -> None:
        with pytest.raises(ValidationError) as refusal:
            grant(owner.workspace, codeChallenge=challenge)
        assert [error.field for error in refusal.value.errors] == ["codeChallenge"]


class TestScopes:
    @pytest.mark.parametrize(
        ("requested", "expected"),
        [
            (["crm:write", "projects:read"], ["projects:read", "crm:write"]),
            (["claudeai", "offline_access", "crm:read", "crm:read"], ["crm:read"]),
            (["crm:read", "blog:write"], ["crm:read"]),
        ],
    )
    def test_unknown_and_ungrantable_scopes_are_left_out(
        self, new_owner: Callable[..., Owner], requested: list[str], expected: list[str]
    ) -> None:
        consent = grant(new_owner().workspace, scopes=requested)
        assert consent["scopes"] == expected
        assert exchange(consent["code"])["scopes"] == expected

    def test_patterns_become_the_users_scopes(self, new_owner: Callable[..., Owner]) -> None:
        by_user = grant(new_owner().workspace, scopes=["*:read"])["scopes"]
        by_admin = grant(new_owner(role="admin").workspace, scopes=["*:read"])["scopes"]
        assert "crm:read" in by_user
        assert set(by_admin) - set(by_user) == {"blog:read"}

    @pytest.mark.parametrize("requested", [[], ["offline_access"], ["blog:read", "blog:write"]])
    def test_consent_without_a_grantable_scope_is_refused(
        self, new_owner: Callable[..., Owner], requested: list[str]
    ) -> None:
        workspace = new_owner().workspace
        with pytest.raises(OAuthError) as caught:
            grant(workspace, scopes=requested)
        assert caught.value.error == "invalid_scope"


OTHER = "https://other.example/oauth/metadata.json"


class TestLimits:
    def test_workspace_has_a_limit_of_live_connections(
        self, owner: Owner, monkeypatch: pytest.MonkeyPatch, time: Time
    ) -> None:
        monkeypatch.setattr(connections, "MAX_LIVE", 2)
        connect(owner.workspace)
        app = connect(owner.workspace, member(owner, "manager"))
        with pytest.raises(ConflictError, check=keyed("too_many_apps", maximum=2)):
            grant(owner.workspace, clientId=OTHER)
        call_console(owner.workspace.id, "end_connection", id=app.id)
        grant(owner.workspace, clientId=OTHER)
        with pytest.raises(ConflictError):
            grant(owner.workspace, clientId=OTHER)
        time.pass_by(seconds=60)  # A code that nobody exchanged no longer counts.
        grant(owner.workspace, clientId=OTHER)

    def test_account_has_a_limit_of_live_connections_in_all_workspaces(
        self, owner: Owner, new_owner: Callable[..., Owner], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other, person = new_owner().workspace, accounts.get(owner.workspace.owner_id)
        call_operator("add_member", workspaceId=other.id, email=person.email, role="manager")
        monkeypatch.setattr(connections, "MAX_LIVE", 2)
        connect(owner.workspace)
        connect(other, person.id)
        with pytest.raises(ConflictError, check=keyed("too_many_apps_of_account", maximum=2)):
            grant(owner.workspace, clientId=OTHER)

    def test_keys_and_connections_have_a_limit_together(
        self, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection_changes, "MAX_LIVE_TOGETHER", 3)  # The owner has one key.
        connect(owner.workspace)
        connect(owner.workspace, clientId="https://third.example/client.json")
        with pytest.raises(ConflictError, check=keyed("too_many_connections", maximum=3)):
            grant(owner.workspace, clientId=OTHER)
        with pytest.raises(ConflictError, check=keyed("too_many_connections", maximum=3)):
            owner.token()


@pytest.mark.store
class TestExchange:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"clientId": "https://other.example/client.json"},
            {"redirectUri": "https://client.example/callback/"},
            {"codeVerifier": "x" * 43},
            {"codeVerifier": ""},
        ],
    )
    def test_wrong_proof_is_refused_and_leaves_the_code_usable(
        self, owner: Owner, wrong: dict[str, str]
    ) -> None:
        code = grant(owner.workspace)["code"]
        assert refusal("exchange_code", **exchange_arguments(code, **wrong)) == "invalid_grant"
        assert works(exchange(code)["accessToken"])

    def test_verifier_that_is_the_challenge_itself_is_refused(self, owner: Owner) -> None:
        code = grant(owner.workspace)["code"]
        plain = exchange_arguments(code, codeVerifier=GRANT["codeChallenge"])
        assert refusal("exchange_code", **plain) == "invalid_grant"

    def test_code_is_valid_for_60_seconds(self, owner: Owner, time: Time) -> None:
        early, late = (grant(owner.workspace)["code"] for _ in "ab")
        time.pass_by(seconds=59)
        assert works(exchange(early)["accessToken"])
        time.pass_by(seconds=1)
        assert refusal("exchange_code", **exchange_arguments(late)) == "invalid_grant"

    @pytest.mark.parametrize("wrong", [{}, {"clientId": "other"}, {"codeVerifier": "stolen"}])
    def test_second_use_of_a_code_ends_the_connection(
        self, owner: Owner, wrong: dict[str, str], time: Time
    ) -> None:
        app = connect(owner.workspace)
        newer = app.refreshed()
        time.pass_by(minutes=5)
        arguments = exchange_arguments(app.code, **wrong)
        assert refusal("exchange_code", **arguments) == "invalid_grant"
        assert not app.works
        assert not newer.works
        assert newer.refresh_refusal() == "invalid_grant"

    def test_forged_codes_of_a_connection_are_refused_and_end_nothing(self, owner: Owner) -> None:
        app = connect(owner.workspace)
        for code in (forged(app.id, tokens.CODE_PREFIX), app.refresh, app.access):
            assert refusal("exchange_code", **exchange_arguments(code)) == "invalid_grant"
        assert app.works

    def test_malformed_codes_are_refused_without_a_read(self, owner: Owner) -> None:
        code = grant(owner.workspace)["code"]
        for wrong_code in (malformed(code), "wsac_", code.lower(), "x", code[:-1], code + "é"):
            with metering() as usage:
                assert refusal("exchange_code", **exchange_arguments(wrong_code)) == "invalid_grant"
            assert usage.reads == 0
        assert works(exchange(code)["accessToken"])

    def test_code_of_a_removed_member_is_refused(self, owner: Owner) -> None:
        manager = member(owner, "manager")
        code = grant(owner.workspace, manager)["code"]
        removal = {"workspaceId": owner.workspace.id, "email": "manager@example.com"}
        assert call_operator("remove_member", **removal)["endedConnections"] == 1
        assert refusal("exchange_code", **exchange_arguments(code)) == "invalid_grant"

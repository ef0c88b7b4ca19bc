"""The operator's commands that create, list and revoke API keys."""

import logging
from datetime import UTC, datetime

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.identity.store import api_keys
from chalicelib.engine import audit
from chalicelib.lib import tokens
from tests.conftest import Api, Time, all_rows
from tests.factories.operator import LIST, Operator, seed_keys

pytestmark = pytest.mark.usefixtures("reload_settings")
"""Commands that connect to a stage change the environment of this process."""


class TestCreateKey:
    def test_create_key_prints_a_token_with_the_granted_scopes_only(
        self, operator: Operator, workspace: str
    ) -> None:
        printed = operator.create_key(workspace, "projects:read, pages:write,projects:read")
        assert list(printed) == ["keyId", "token", "scopes"]
        assert printed["scopes"] == ["projects:read", "pages:write"]
        assert printed["token"].startswith("svc_live_")
        api = Api(printed["token"])
        assert api.get(LIST)["projects"] == []
        assert api.get("/api/workspaces/list")["activeWorkspaceId"] == workspace
        answer = api.call_refused("POST", "/api/projects/create", {"title": "x"})
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")

    def test_token_is_shown_once_and_stored_nowhere(
        self, operator: Operator, workspace: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        printed = operator.create_key(workspace)
        api = Api(printed["token"])
        api.post("/api/projects/create", {"title": "x"})
        operator.run("revoke-key", "--key", printed["keyId"])
        refusal = api.call_refused("GET", LIST)
        secret = printed["token"].removeprefix("svc_live_")
        stored_rows = repr(all_rows())
        assert tokens.digest(printed["token"]) in stored_rows
        assert secret[-4:] in stored_rows
        for text in (stored_rows, caplog.text, refusal.body.decode()):
            assert printed["token"] not in text
            assert secret[:-6] not in text

    def test_create_key_accepts_every_scope_and_both_wildcards(
        self, operator: Operator, workspace: str
    ) -> None:
        areas = ("projects", "pages", "products", "services", "bookings", "crm", "files")
        scopes = [
            f"{area}:{right}" for area in (*areas, "agents", "blog") for right in ("read", "write")
        ]
        all_scopes = [*scopes, "*:read", "*:write"]
        assert set(operator.create_key(workspace, ",".join(all_scopes))["scopes"]) == set(
            all_scopes
        )

    @pytest.mark.parametrize(
        ("scopes", "expected"),
        [
            ("projects:delete", "projects:delete"),
            ("projects", "projects"),
            ("*", "*"),
            ("*:*", "*:*"),
            ("projects:read,nonsense", "nonsense"),
            ("billing:read", "billing:read"),
            ("keys:write", "keys:write"),
            ("", "projects:read"),
            (" , ", "projects:read"),
        ],
    )
    def test_create_key_refuses_an_unknown_scope_and_names_the_valid_ones(
        self, scopes: str, expected: str, operator: Operator, workspace: str
    ) -> None:
        old_rows = all_rows()
        options = ("--workspace", workspace, "--name", "x", "--scopes", scopes)
        line = operator.run_failing("create-key", *options)
        assert expected in line
        assert "*:read" in line
        assert all_rows() == old_rows

    def test_create_key_refuses_a_blank_name_and_an_unknown_workspace(
        self, operator: Operator, workspace: str
    ) -> None:
        options = ("--name", " ", "--scopes", "*:read")
        assert "name" in operator.run_failing("create-key", "--workspace", workspace, *options)
        options = ("--name", "x", "--scopes", "*:read")
        assert "nowhere" in operator.run_failing("create-key", "--workspace", "nowhere", *options)

    @pytest.mark.parametrize(
        "expires",
        [
            "2027-01-15T14:00:00+00:00",
            "2027-01-15T14:00:00Z",
            "2027-01-15T14:00",
            "2027-01-15T17:00:00+03:00",
        ],
    )
    def test_a_key_works_until_it_expires(
        self, expires: str, operator: Operator, workspace: str, time: Time
    ) -> None:
        options = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        api = Api(operator.run("create-key", *options, "--expires", expires)["token"])
        assert time.now == datetime(2027, 1, 15, 12, tzinfo=UTC)
        time.pass_by(hours=1, minutes=59, seconds=59)
        assert api.get(LIST)["projects"] == []
        time.pass_by(seconds=1)
        answer = api.call_refused("GET", LIST)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized")

    @pytest.mark.parametrize(
        "expires",
        ["2027-01-15T11:59:59Z", "2027-01-15T12:00:00Z", "2020-01-01", "2027-01-15T14:00+03:00"],
    )
    def test_create_key_refuses_an_expiry_in_the_past(
        self, expires: str, operator: Operator, workspace: str, time: Time
    ) -> None:
        old_rows = all_rows()
        options = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        assert "future" in operator.run_failing("create-key", *options, "--expires", expires)
        assert all_rows() == old_rows

    def test_create_key_refuses_an_expiry_after_the_year_9999_in_utc(
        self, operator: Operator, workspace: str
    ) -> None:
        options = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        operator.run_failing("create-key", *options, "--expires", "9999-12-31T23:59:59-12:00")

    def test_a_workspace_has_at_most_50_live_keys(
        self, operator: Operator, workspace: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        soon = time.now.replace(hour=13)
        first, *_ = seed_keys(monkeypatch, workspace, 48)
        seed_keys(monkeypatch, workspace, 1, soon)
        operator.create_key(workspace)
        options = ("create-key", "--workspace", workspace, "--name", "x", "--scopes", "*:read")
        assert "50" in operator.run_failing(*options)
        operator.run("revoke-key", "--key", first["keyId"])
        operator.run(*options)
        operator.run_failing(*options)
        time.pass_by(hours=2)
        operator.run(*options)
        operator.run_failing(*options)
        assert len(api_keys.read_all(workspace)) == 52

    def test_blog_scopes_may_be_granted_to_a_key_of_any_account(
        self, operator: Operator, workspace: str
    ) -> None:
        assert operator.create_key(workspace, "blog:read")["scopes"] == ["blog:read"]


class TestRevokeKey:
    def test_revoke_key_takes_effect_on_the_next_request(
        self, operator: Operator, workspace: str, time: Time
    ) -> None:
        key, other = operator.create_key(workspace), operator.create_key(workspace)
        api = Api(key["token"])
        api.get(LIST)
        printed = operator.run("revoke-key", "--key", key["keyId"])
        assert printed == {"keyId": key["keyId"], "revokedAt": "2027-01-15T12:00:00.000Z"}
        answer = api.call_refused("GET", LIST)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert Api(other["token"]).get(LIST)["projects"] == []

    def test_revoke_key_refuses_an_unknown_key_and_a_token(
        self, operator: Operator, workspace: str
    ) -> None:
        key = operator.create_key(workspace)
        for value, expected in ((new_id(), "No key"), ("", "id: "), (key["token"], "No key")):
            assert expected in operator.run_failing("revoke-key", "--key", value)
        assert Api(key["token"]).get(LIST)["projects"] == []

    def test_revoke_key_does_not_echo_a_token(self, operator: Operator, workspace: str) -> None:
        token = operator.create_key(workspace)["token"]
        assert token not in operator.run_failing("revoke-key", "--key", token)

    def test_creation_and_revocation_are_audited(self, operator: Operator, workspace: str) -> None:
        key = operator.create_key(workspace)["keyId"]
        operator.run("revoke-key", "--key", key)
        records = [(r.operation, r.resources[0], r.actor) for r in audit.latest(workspace)]
        assert records == [
            ("revoke_key", f"key:{key}", "operator"),
            ("create_key", f"key:{key}", "operator"),
            ("create_workspace", f"workspace:{workspace}", "operator"),
        ]


class TestListKeys:
    def test_list_keys_prints_the_newest_key_first_and_no_tokens(
        self, operator: Operator, workspace: str
    ) -> None:
        new_keys = [operator.create_key(workspace) for _ in range(2)]
        operator.run("revoke-key", "--key", new_keys[0]["keyId"])
        printed = operator.run("list-keys", "--workspace", workspace)
        listed_keys = [(key["id"], key["state"]) for key in printed["keys"]]
        assert listed_keys == [(new_keys[1]["keyId"], "live"), (new_keys[0]["keyId"], "revoked")]
        assert not any(key["token"] in str(printed) for key in new_keys)

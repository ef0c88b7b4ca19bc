"""The operator's command line: one JSON object on stdout, one line on stderr if it fails."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from chalicelib.core import plans
from chalicelib.core.ids import new_id
from chalicelib.rules import tokens
from chalicelib.store import (
    accounts,
    api_keys,
    audit,
    bot_keys,
    counters,
    transactions,
    workspaces,
)
from infra import admin as command_line
from infra.admin import admin
from tests.conftest import Api, Owner, Time, as_operator, everything
from tests.domains.test_files import kept
from tests.factories.examples import AGENT, FORM, submit

LIST = "/api/projects/list"
COMMANDS = (
    *("create-account", "create-workspace", "add-member"),
    *("list-members", "create-key", "list-keys", "revoke-key"),
    *("set-plan", "audit-log", "suspend-site", "resume-site", "add-file", "erase-client"),
    *("credit", "adjust", "balance", "ledger"),
    *("set-bot", "set-bot-limits", "bot-limits", "create-bot-key", "delete-bot-key"),
    *("import-products", "export", "import"),
)


@dataclass
class Operator:
    """Who types the commands."""

    def types(self, *words: str) -> Result:
        return CliRunner().invoke(admin, words)

    def does(self, *words: str) -> dict[str, Any]:
        """Type a command that must succeed; return what it prints."""
        result = self.types(*words)
        assert result.exit_code == 0, (result.output, result.exception)
        assert result.stdout.count("\n") == 1
        printed: dict[str, Any] = json.loads(result.stdout)
        return printed

    def fails(self, *words: str) -> str:
        """Type a command that must fail; return the line it says."""
        result = self.types(*words)
        assert result.exit_code == 1, (result.output, result.exception)
        assert result.stdout == ""
        assert result.stderr.endswith("\n")
        line = result.stderr[:-1]
        assert line
        assert "\n" not in line
        assert "Traceback" not in line
        return line

    def makes_an_account(self, email: str, **more: str) -> dict[str, Any]:
        options = [word for name, value in more.items() for word in (f"--{name}", value)]
        return self.does("create-account", "--email", email, "--password", "long enough", *options)

    def makes_a_key(self, workspace: str, scopes: str = "*:read,*:write") -> dict[str, Any]:
        words = ("--workspace", workspace, "--name", "A key", "--scopes", scopes)
        return self.does("create-key", *words)

    def sets_plan(self, workspace: str, plan: str) -> dict[str, Any]:
        return self.does("set-plan", "--workspace", workspace, "--plan", plan)


pytestmark = pytest.mark.usefixtures("read_anew")
"""Connecting sets the environment of the process, which is the tests' own."""


@pytest.fixture
def operator(database: None, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """The operator, connected to the database of the tests."""

    def connect(stage: str | None, region: str | None) -> None:
        assert (stage, region) == (None, None)

    monkeypatch.setattr(command_line, "connect", connect)
    return Operator()


@pytest.fixture
def workspace(operator: Operator) -> str:
    """The id of a workspace on Business."""
    operator.makes_an_account("ann@example.com")
    made = operator.does("create-workspace", "--owner", "ann@example.com", "--name", "Пекарня")
    workspace_id: str = made["workspaceId"]
    return workspace_id


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No database to connect to."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("AWS_ENDPOINT_URL_DYNAMODB", "DYNAMODB_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def seed_keys(
    monkeypatch: pytest.MonkeyPatch, workspace: str, count: int, expires: datetime | None = None
) -> list[api_keys.ApiKeyRow]:
    """Make keys without counting those there are, which takes long."""
    home = workspaces.get(workspace)
    with monkeypatch.context() as patched:
        patched.setattr(api_keys, "of_workspace", lambda _: [])
        return [
            as_operator(
                "create_key",
                workspaceId=home.id,
                name="x",
                scopes=["*:read"],
                **({"expires": expires.isoformat()} if expires else {}),
            )
            for _ in range(count)
        ]


class TestCreateAccount:
    def test_prints_the_account(self, operator: Operator) -> None:
        printed = operator.makes_an_account("Ann.Lee@Example.com", name="Ann", role="admin")
        assert list(printed) == ["accountId", "email", "role"]
        assert (printed["email"], printed["role"]) == ("ann.lee@example.com", "admin")
        account = accounts.get(printed["accountId"])
        assert (account.email, account.name, account.role) == (
            "ann.lee@example.com",
            "Ann",
            "admin",
        )

    def test_makes_a_user_unless_asked_otherwise(self, operator: Operator) -> None:
        assert operator.makes_an_account("ann@example.com")["role"] == "user"

    def test_takes_an_address_whose_letters_grow_when_folded(self, operator: Operator) -> None:
        email = "\ufdfa" * 64 + "@example.com"
        printed = operator.makes_an_account(email)
        assert accounts.by_email(email).id == printed["accountId"]

    def test_refuses_an_address_that_has_an_account(self, operator: Operator) -> None:
        operator.makes_an_account("ann@example.com")
        before = everything()
        line = operator.fails(
            "create-account", "--email", "ANN@example.com", "--password", "long enough"
        )
        assert "ann@example.com" in line
        assert everything() == before

    @pytest.mark.parametrize(
        ("email", "password", "says"),
        [
            ("ann", "long enough", "email"),
            ("ann@", "long enough", "email"),
            ("", "long enough", "email"),
            ("ann@example.com", "short", "8 characters"),
            ("ann@example.com", "", "8 characters"),
        ],
    )
    def test_refuses_a_malformed_address_or_a_short_password(
        self, email: str, password: str, says: str, operator: Operator
    ) -> None:
        line = operator.fails("create-account", "--email", email, "--password", password)
        assert says in line
        assert everything() == {}

    def test_keeps_no_password(self, operator: Operator) -> None:
        operator.does("create-account", "--email", "a@example.com", "--password", "pass-word-9")
        assert "pass-word-9" not in repr(everything())


class TestCreateWorkspace:
    def test_prints_the_workspace(self, operator: Operator) -> None:
        operator.makes_an_account("ann@example.com")
        printed = operator.does(
            *("create-workspace", "--owner", "ann@example.com", "--name", "Пекарня"),
            *("--plan", "start", "--timezone", "Asia/Yekaterinburg"),
        )
        assert list(printed) == ["workspaceId", "slug", "plan", "timezone"]
        assert (printed["slug"], printed["plan"]) == ("pekarnya", "start")
        assert printed["timezone"] == "Asia/Yekaterinburg"

    def test_is_on_business_in_moscow_unless_asked_otherwise(self, operator: Operator) -> None:
        operator.makes_an_account("ann@example.com")
        printed = operator.does("create-workspace", "--owner", "ann@example.com", "--name", "x")
        assert (printed["plan"], printed["timezone"]) == ("business", "Europe/Moscow")

    def test_two_of_one_name_get_two_slugs(self, operator: Operator, workspace: str) -> None:
        printed = operator.does(
            "create-workspace", "--owner", "ann@example.com", "--name", "Пекарня"
        )
        assert printed["slug"] == "pekarnya-2"
        assert printed["workspaceId"] != workspace

    @pytest.mark.parametrize("plan", ["free", "start", "business", "enterprise"])
    def test_takes_every_plan(self, plan: str, operator: Operator) -> None:
        operator.makes_an_account("ann@example.com")
        words = ("--owner", "ann@example.com", "--name", "x", "--plan", plan)
        assert operator.does("create-workspace", *words)["plan"] == plan

    @pytest.mark.parametrize(
        ("owner", "name", "more", "says"),
        [
            ("nobody@example.com", "x", (), "nobody@example.com"),
            ("ann@example.com", "  ", (), "name"),
            ("ann@example.com", "x", ("--plan", "gold"), "gold"),
            ("ann@example.com", "x", ("--timezone", "Mars/Base"), "Mars/Base"),
        ],
    )
    def test_refuses_other_values(
        self, owner: str, name: str, more: tuple[str, ...], says: str, operator: Operator
    ) -> None:
        operator.makes_an_account("ann@example.com")
        before = everything()
        line = operator.fails("create-workspace", "--owner", owner, "--name", name, *more)
        assert says in line
        assert everything() == before


class TestAddMember:
    def test_prints_the_membership(self, operator: Operator, workspace: str) -> None:
        account = operator.makes_an_account("bob@example.com")["accountId"]
        words = ("--workspace", workspace, "--email", "bob@example.com")
        assert operator.does("add-member", *words) == {
            "workspaceId": workspace,
            "accountId": account,
            "role": "member",
        }
        assert operator.does("add-member", *words, "--role", "manager")["role"] == "manager"

    def test_the_member_sees_the_workspace_among_its_own(
        self, operator: Operator, workspace: str
    ) -> None:
        operator.makes_an_account("bob@example.com")
        own = operator.does("create-workspace", "--owner", "bob@example.com", "--name", "Bob's")
        api = Api(operator.makes_a_key(own["workspaceId"])["token"])
        assert len(api.get("/api/workspaces/list")["workspaces"]) == 1
        words = ("--workspace", workspace, "--email", "bob@example.com")
        for role in ("member", "manager"):
            operator.does("add-member", *words, "--role", role)
            data = api.get("/api/workspaces/list")
            assert data["activeWorkspaceId"] == own["workspaceId"]
            shown = {w["id"]: (w["role"], w["isOwner"]) for w in data["workspaces"]}
            assert shown == {own["workspaceId"]: ("owner", True), workspace: (role, False)}

    @pytest.mark.parametrize(
        ("email", "more", "says"),
        [
            ("nobody@example.com", (), "nobody@example.com"),
            ("ann@example.com", (), "owns"),
            ("bob@example.com", ("--role", "owner"), "owner"),
            ("bob@example.com", ("--role", "boss"), "boss"),
        ],
    )
    def test_refuses_other_members_and_roles(
        self, email: str, more: tuple[str, ...], says: str, operator: Operator, workspace: str
    ) -> None:
        operator.makes_an_account("bob@example.com")
        before = everything()
        line = operator.fails("add-member", "--workspace", workspace, "--email", email, *more)
        assert says in line
        assert everything() == before

    def test_refuses_an_unknown_workspace(self, operator: Operator) -> None:
        operator.makes_an_account("bob@example.com")
        words = ("--workspace", "nowhere", "--email", "bob@example.com")
        assert "nowhere" in operator.fails("add-member", *words)


class TestOptions:
    def test_are_required_unless_they_have_a_default_which_the_help_tells(
        self, operator: Operator
    ) -> None:
        told = operator.types("create-workspace", "--help").stdout
        lines = {line.split()[0]: line for line in told.splitlines() if line.startswith("  --")}
        assert "[required]" in lines["--owner"]
        for name in ("--plan", "--timezone", "--country"):
            assert "[required]" not in told.split(name)[1].split("--")[0]
        assert "[default: Europe/Moscow]" in " ".join(told.split())


class TestTransfer:
    def test_a_workspace_goes_into_a_file_and_comes_out_of_it(
        self, operator: Operator, workspace: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "bakery.jsonl.gz"
        exported = operator.does("export", "--workspace", workspace, "--out", str(path))
        assert (exported["workspaceId"], exported["file"]) == (workspace, str(path))
        imported = operator.does("import", str(path), "--ids", "new")
        assert imported["workspaceId"] != workspace
        assert imported["slug"].endswith("-2")
        again = operator.types("import", str(path))
        assert (again.exit_code, again.stdout) == (1, "")
        assert "is there already" in again.stderr


class TestCreateKey:
    def test_prints_a_token_that_works_and_nothing_more_than_it_may(
        self, operator: Operator, workspace: str
    ) -> None:
        printed = operator.makes_a_key(workspace, "projects:read, pages:write,projects:read")
        assert list(printed) == ["keyId", "token", "scopes"]
        assert printed["scopes"] == ["projects:read", "pages:write"]
        assert printed["token"].startswith("svc_live_")
        api = Api(printed["token"])
        assert api.get(LIST)["projects"] == []
        assert api.get("/api/workspaces/list")["activeWorkspaceId"] == workspace
        answer = api.refused("POST", "/api/projects/create", {"title": "x"})
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")

    def test_shows_the_token_this_once_and_it_is_nowhere_else(
        self, operator: Operator, workspace: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        printed = operator.makes_a_key(workspace)
        api = Api(printed["token"])
        api.post("/api/projects/create", {"title": "x"})
        operator.does("revoke-key", "--key", printed["keyId"])
        refusal = api.refused("GET", LIST)
        secret = printed["token"].removeprefix("svc_live_")
        kept = repr(everything())
        assert tokens.digest(printed["token"]) in kept
        assert secret[-4:] in kept
        for text in (kept, caplog.text, refusal.body.decode()):
            assert printed["token"] not in text
            assert secret[:-6] not in text

    def test_names_are_not_unique_but_tokens_are(self, operator: Operator, workspace: str) -> None:
        one, two = operator.makes_a_key(workspace), operator.makes_a_key(workspace)
        assert one["token"] != two["token"]
        assert one["keyId"] != two["keyId"]

    def test_takes_every_scope_and_both_patterns(self, operator: Operator, workspace: str) -> None:
        areas = ("projects", "pages", "products", "services", "bookings", "crm", "files")
        scopes = [
            f"{area}:{right}" for area in (*areas, "agents", "blog") for right in ("read", "write")
        ]
        wanted = [*scopes, "*:read", "*:write"]
        assert set(operator.makes_a_key(workspace, ",".join(wanted))["scopes"]) == set(wanted)

    @pytest.mark.parametrize(
        ("scopes", "says"),
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
    def test_refuses_what_is_no_scope_and_names_those_there_are(
        self, scopes: str, says: str, operator: Operator, workspace: str
    ) -> None:
        before = everything()
        words = ("--workspace", workspace, "--name", "x", "--scopes", scopes)
        line = operator.fails("create-key", *words)
        assert says in line
        assert "*:read" in line
        assert everything() == before

    def test_refuses_a_blank_name_and_an_unknown_workspace(
        self, operator: Operator, workspace: str
    ) -> None:
        words = ("--name", " ", "--scopes", "*:read")
        assert "name" in operator.fails("create-key", "--workspace", workspace, *words)
        words = ("--name", "x", "--scopes", "*:read")
        assert "nowhere" in operator.fails("create-key", "--workspace", "nowhere", *words)

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
        words = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        api = Api(operator.does("create-key", *words, "--expires", expires)["token"])
        assert time.now == datetime(2027, 1, 15, 12, tzinfo=UTC)
        time.pass_by(hours=1, minutes=59, seconds=59)
        assert api.get(LIST)["projects"] == []
        time.pass_by(seconds=1)
        answer = api.refused("GET", LIST)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized")

    @pytest.mark.parametrize(
        "expires",
        ["2027-01-15T11:59:59Z", "2027-01-15T12:00:00Z", "2020-01-01", "2027-01-15T14:00+03:00"],
    )
    def test_refuses_an_expiry_in_the_past(
        self, expires: str, operator: Operator, workspace: str, time: Time
    ) -> None:
        before = everything()
        words = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        assert "future" in operator.fails("create-key", *words, "--expires", expires)
        assert everything() == before

    @pytest.mark.parametrize("expires", ["tomorrow", "", "31.01.2030", "2030-13-01"])
    def test_refuses_an_expiry_that_is_no_moment(
        self, expires: str, operator: Operator, workspace: str
    ) -> None:
        words = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        assert "ISO 8601" in operator.fails("create-key", *words, "--expires", expires)

    def test_refuses_an_expiry_that_no_calendar_holds(
        self, operator: Operator, workspace: str
    ) -> None:
        words = ("--workspace", workspace, "--name", "x", "--scopes", "*:read")
        operator.fails("create-key", *words, "--expires", "9999-12-31T23:59:59-12:00")

    def test_a_workspace_has_at_most_50_live_keys(
        self, operator: Operator, workspace: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        soon = time.now.replace(hour=13)
        first, *_ = seed_keys(monkeypatch, workspace, 48)
        seed_keys(monkeypatch, workspace, 1, soon)
        operator.makes_a_key(workspace)
        words = ("create-key", "--workspace", workspace, "--name", "x", "--scopes", "*:read")
        assert "50" in operator.fails(*words)
        operator.does("revoke-key", "--key", first["keyId"])
        operator.does(*words)
        operator.fails(*words)
        time.pass_by(hours=2)
        operator.does(*words)
        operator.fails(*words)
        assert len(api_keys.of_workspace(workspace)) == 52

    def test_blog_scopes_may_be_granted_to_any_accounts_key(
        self, operator: Operator, workspace: str
    ) -> None:
        assert operator.makes_a_key(workspace, "blog:read")["scopes"] == ["blog:read"]


class TestRevokeKey:
    def test_takes_effect_on_the_next_request(
        self, operator: Operator, workspace: str, time: Time
    ) -> None:
        key, other = operator.makes_a_key(workspace), operator.makes_a_key(workspace)
        api = Api(key["token"])
        api.get(LIST)
        printed = operator.does("revoke-key", "--key", key["keyId"])
        assert printed == {"keyId": key["keyId"], "revokedAt": "2027-01-15T12:00:00.000Z"}
        answer = api.refused("GET", LIST)
        assert (answer.status, answer.data["code"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert Api(other["token"]).get(LIST)["projects"] == []

    def test_revoking_again_keeps_the_first_time(
        self, operator: Operator, workspace: str, time: Time
    ) -> None:
        key = operator.makes_a_key(workspace)["keyId"]
        first = operator.does("revoke-key", "--key", key)
        time.pass_by(hours=1)
        assert operator.does("revoke-key", "--key", key) == first

    def test_refuses_an_unknown_key_even_by_its_token(
        self, operator: Operator, workspace: str
    ) -> None:
        key = operator.makes_a_key(workspace)
        for value in (new_id(), "", key["token"]):
            assert ("No key" if value else "id: ") in operator.fails("revoke-key", "--key", value)
        assert Api(key["token"]).get(LIST)["projects"] == []

    def test_does_not_echo_a_token_given_by_mistake(
        self, operator: Operator, workspace: str
    ) -> None:
        token = operator.makes_a_key(workspace)["token"]
        assert token not in operator.fails("revoke-key", "--key", token)

    def test_making_and_revoking_are_audited(self, operator: Operator, workspace: str) -> None:
        key = operator.makes_a_key(workspace)["keyId"]
        operator.does("revoke-key", "--key", key)
        records = [(r.operation, r.resources[0], r.actor) for r in audit.latest(workspace)]
        assert records == [
            ("revoke_key", f"key:{key}", "operator"),
            ("create_key", f"key:{key}", "operator"),
            ("create_workspace", f"workspace:{workspace}", "operator"),
        ]


class TestListKeys:
    def test_prints_them_newest_first_without_tokens(
        self, operator: Operator, workspace: str
    ) -> None:
        made = [operator.makes_a_key(workspace) for _ in range(2)]
        operator.does("revoke-key", "--key", made[0]["keyId"])
        printed = operator.does("list-keys", "--workspace", workspace)
        shown = {key["id"]: key["state"] for key in printed["keys"]}
        assert shown == {made[1]["keyId"]: "live", made[0]["keyId"]: "revoked"}
        assert not any(key["token"] in str(printed) for key in made)

    def test_of_no_workspace_is_refused(self, operator: Operator) -> None:
        assert "No workspace has the id" in operator.fails("list-keys", "--workspace", "nobody")


class TestSetPlan:
    @pytest.mark.parametrize("lower", ["free", "start"])
    def test_takes_effect_on_the_next_request(
        self, lower: str, operator: Operator, workspace: str
    ) -> None:
        keys = [operator.makes_a_key(workspace) for _ in range(3)]
        assert operator.sets_plan(workspace, lower) == {"workspaceId": workspace, "plan": lower}
        keys.append(operator.makes_a_key(workspace))
        for key in keys:
            for path in (LIST, "/api/workspaces/list"):
                answer = Api(key["token"]).refused("GET", path)
                assert (answer.status, answer.data["code"]) == (403, "plan_required")
                assert lower in answer.data["message"]
        for plan in ("enterprise", "business"):
            operator.sets_plan(workspace, plan)
            for key in keys:
                assert Api(key["token"]).get(LIST)["projects"] == []

    def test_leaves_other_workspaces_alone(
        self, operator: Operator, workspace: str, owner: Owner
    ) -> None:
        api = owner.api()
        operator.sets_plan(workspace, "free")
        assert api.get(LIST)["projects"] == []

    def test_does_not_bring_a_revoked_key_back(self, operator: Operator, workspace: str) -> None:
        key = operator.makes_a_key(workspace)
        operator.does("revoke-key", "--key", key["keyId"])
        operator.sets_plan(workspace, "enterprise")
        assert Api(key["token"]).refused("GET", LIST).status == 401

    def test_is_audited_as_the_operators(self, operator: Operator, workspace: str) -> None:
        operator.sets_plan(workspace, "free")
        (record,) = [r for r in audit.latest(workspace) if r.operation == "set_plan"]
        assert record.actor == "operator"

    def test_refuses_other_plans_and_workspaces(self, operator: Operator, workspace: str) -> None:
        before = everything()
        words = ("--workspace", workspace, "--plan", "gold")
        assert "gold" in operator.fails("set-plan", *words)
        words = ("--workspace", "nowhere", "--plan", "free")
        assert "nowhere" in operator.fails("set-plan", *words)
        assert everything() == before

    def test_works_however_many_keys_have_expired(
        self, operator: Operator, workspace: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transactions, "MAX_ITEMS", 20)
        seed_keys(monkeypatch, workspace, 20, time.now.replace(minute=59))
        time.pass_by(hours=1)
        live = operator.makes_a_key(workspace)["token"]
        operator.sets_plan(workspace, "free")
        assert Api(live).refused("GET", LIST).data["code"] == "plan_required"

    def test_reaches_a_key_that_is_made_at_the_same_moment(
        self, operator: Operator, workspace: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = api_keys.of_workspace
        made: list[str] = []

        def of_workspace(workspace_id: str) -> list[api_keys.ApiKeyRow]:
            keys = real(workspace_id)
            if not made:
                made.append("")
                made[0] = operator.makes_a_key(workspace)["token"]
            return keys

        monkeypatch.setattr(api_keys, "of_workspace", of_workspace)
        operator.sets_plan(workspace, "free")
        assert Api(made[0]).refused("GET", LIST).data["code"] == "plan_required"


class TestSuspendAndResumeSite:
    def test_print_the_status_and_the_next_list_shows_it(
        self, operator: Operator, owner: Owner
    ) -> None:
        api = owner.api()
        site = api.post("/api/projects/create", {"title": "x"})["project"]["id"]
        for command, status in (
            ("suspend-site", "suspended"),
            ("suspend-site", "suspended"),
            ("resume-site", "active"),
            ("resume-site", "active"),
        ):
            assert operator.does(command, "--site", site) == {"id": site, "status": status}
            assert api.get(LIST)["projects"][0]["status"] == status
            assert counters.read(owner.workspace.id, "SITE")[f"status:{status}"] == 1

    def test_refuse_an_unknown_or_deleted_site(self, operator: Operator, owner: Owner) -> None:
        api = owner.api()
        site = api.post("/api/projects/create", {"title": "x"})["project"]["id"]
        api.post("/api/projects/delete", {"id": site})
        for command in ("suspend-site", "resume-site"):
            for value in (site, new_id(), "", owner.workspace.id):
                assert ("No site" if value else "id: ") in operator.fails(command, "--site", value)


class TestEveryFailure:
    @pytest.mark.parametrize(
        "words",
        [
            ("create-account", "--email", "ann@example.com"),
            ("create-account", "--email", "a@b.de", "--password", "long enough", "--role", "boss"),
            ("create-key", "--workspce", "x"),
            ("no-such-command",),
        ],
    )
    def test_a_mistyped_call_is_one_line_too(
        self, words: tuple[str, ...], operator: Operator
    ) -> None:
        operator.fails(*words)

    def test_a_crash_is_one_line_too(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(*_: object) -> None:
            raise RuntimeError("broken\nin two lines")

        monkeypatch.setattr(accounts, "email_claim", crash)
        operator.fails("create-account", "--email", "a@b.de", "--password", "long enough")

    @pytest.mark.usefixtures("nowhere")
    def test_no_local_database_is_said_in_one_line(self) -> None:
        line = Operator().fails("revoke-key", "--key", "x")
        assert "make dev" in line
        assert "--stage" in line

    @pytest.mark.usefixtures("nowhere")
    def test_the_list_of_commands_needs_no_database(self) -> None:
        result = Operator().types("--help")
        assert result.exit_code == 0
        assert all(command in result.stdout for command in COMMANDS)

    @pytest.mark.usefixtures("nowhere")
    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_commands_help_needs_no_database(self, command: str) -> None:
        assert Operator().types(command, "--help").exit_code == 0


def test_what_the_operator_makes_is_what_the_product_uses(
    operator: Operator, new_owner: Callable[..., Owner]
) -> None:
    """A workspace made by the command line and one made by the tests behave alike."""
    operator.makes_an_account("ann@example.com")
    made = operator.does("create-workspace", "--owner", "ann@example.com", "--name", "Workspace")
    one = Api(operator.makes_a_key(made["workspaceId"])["token"])
    two = new_owner().api()
    shapes = [set(api.get("/api/workspaces/list")["workspaces"][0]) for api in (one, two)]
    assert shapes[0] == shapes[1]


class TestAddFile:
    @pytest.fixture
    def paper(self, tmp_path: Path) -> Path:
        """A file of this machine."""
        path = tmp_path / "Отчёт.pdf"
        path.write_bytes(b"%PDF-1.7 \x00\xff")
        return path

    @staticmethod
    def words(workspace: str, path: Path, folder: str = "Бумаги") -> tuple[str, ...]:
        return "add-file", "--workspace", workspace, "--folder", folder, "--path", str(path)

    def test_prints_the_file_as_the_list_shows_it(
        self, operator: Operator, workspace: str, paper: Path
    ) -> None:
        printed = operator.does(*self.words(workspace, paper))
        api = Api(operator.makes_a_key(workspace)["token"])
        (folder,) = api.get("/api/files/list")["folders"]
        (file,) = api.get(f"/api/files/list?folderId={folder['id']}")["files"]
        assert printed == file
        assert (file["name"], file["mimeType"]) == ("Отчёт.pdf", "application/pdf")
        assert (folder["name"], folder["filesCount"]) == ("Бумаги", 1)
        (entry,) = [e for e in audit.latest(workspace) if e.operation == "add_file"]
        assert entry.actor == "operator"
        assert f"file:{file['id']}" in entry.resources

    def test_uses_the_folder_that_is_there(
        self, operator: Operator, workspace: str, paper: Path
    ) -> None:
        first = operator.does(*self.words(workspace, paper))
        again = operator.does(*self.words(workspace, paper, "БУМАГИ"))
        assert first["folderId"] == again["folderId"]

    @pytest.mark.parametrize("folder", ["", "a/b", "x" * 101])
    def test_refuses_a_folders_name_that_misleads(
        self, folder: str, operator: Operator, workspace: str, paper: Path
    ) -> None:
        before = everything()
        assert "folder: expected" in operator.fails(*self.words(workspace, paper, folder))
        assert everything() == before

    def test_keeps_to_the_quota(
        self, operator: Operator, workspace: str, paper: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 5)
        before, objects = everything(), kept()
        assert "plan" in operator.fails(*self.words(workspace, paper))
        assert everything() == before
        assert kept() == objects

    def test_refuses_what_is_no_file_or_too_large(
        self, operator: Operator, workspace: str, tmp_path: Path
    ) -> None:
        empty, damaged, large = (tmp_path / name for name in ("empty", "damaged", "large"))
        empty.touch()
        damaged.write_bytes(b"\x89PNG\r\n\x1a\n")
        large.write_bytes(b"x" * 20_000_001)
        for path in (tmp_path, tmp_path / "none", empty, damaged, large):
            assert operator.fails(*self.words(workspace, path))

    def test_refuses_a_workspace_that_is_not_there(self, operator: Operator, paper: Path) -> None:
        assert "workspace" in operator.fails(*self.words(new_id(), paper)).lower()


class TestEraseClient:
    def test_prints_what_was_removed(self, operator: Operator, workspace: str) -> None:
        api = Api(operator.makes_a_key(workspace)["token"])
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        lead = submit(form, name="Ada", phone="8 (495) 123-45-67")
        client = api.get(f"/api/forms/collection/{lead}")["lead"]["clientId"]
        words = ("erase-client", "--workspace", workspace)
        printed = operator.does(*words, "--phone", "+7 495 123 45 67")
        assert printed == {
            "clientId": client,
            "leads": 1,
            "bookings": 0,
            "dialogs": 0,
            "storedAnswers": 0,
        }
        assert api.get(f"/api/forms/collection/{lead}")["lead"]["phone"] is None
        (entry,) = [e for e in audit.latest(workspace) if e.operation == "erase_client"][-1:]
        assert entry.actor == "operator"
        assert "495" not in str(entry.attribute_values)

    def test_says_whom_to_name(self, operator: Operator, workspace: str) -> None:
        assert "client" in operator.fails("erase-client", "--workspace", workspace)
        words = ("erase-client", "--workspace", workspace, "--email", "nobody@example.com")
        assert "Nobody" in operator.fails(*words)


class TestMoney:
    @pytest.fixture(autouse=True)
    def _account(self, operator: Operator) -> None:
        operator.makes_an_account("ann@example.com")

    def changes(self, operator: Operator, command: str, kopecks: int, key: str) -> Any:
        words = ("--account", "ann@example.com", "--kopecks", str(kopecks), "--reason", "Paid")
        return operator.does(command, *words, "--idempotency-key", key)

    def test_is_credited_once_a_key(self, operator: Operator) -> None:
        first = self.changes(operator, "credit", 500, "a")
        assert first == {"accountId": accounts.by_email("ann@example.com").id, "balance": 500}
        self.changes(operator, "credit", 1, "b")
        assert self.changes(operator, "credit", 500, "a") == first

    def test_is_adjusted_but_never_below_zero(self, operator: Operator) -> None:
        self.changes(operator, "credit", 500, "a")
        assert self.changes(operator, "adjust", -200, "b")["balance"] == 300
        words = ("--account", "ann@example.com", "--kopecks", "-301", "--reason", "x")
        line = operator.fails("adjust", *words, "--idempotency-key", "c")
        assert "cannot fall below 0" in line

    def test_is_printed_with_its_entries(self, operator: Operator) -> None:
        self.changes(operator, "credit", 500, "a")
        self.changes(operator, "adjust", 50, "b")
        assert operator.does("balance", "--account", "ann@example.com") == {
            "accountId": accounts.by_email("ann@example.com").id,
            "available": 550,
            "reserved": 0,
            "entries": 2,
        }
        printed = operator.does("ledger", "--account", "ann@example.com")["entries"]
        assert [(e["kind"], e["amount"], e["balanceAfter"]) for e in printed] == [
            ("adjust", 50, 550),
            ("topup", 500, 500),
        ]
        assert list(printed[0]) == [
            *("id", "kind", "amount", "held", "balanceAfter", "requestId", "agentId", "at")
        ]
        last = operator.does("ledger", "--account", "ann@example.com", "--limit", "1")
        assert last["entries"] == printed[:1]


class TestBots:
    @pytest.fixture
    def agent(self, workspace: str, operator: Operator) -> str:
        api = Api(operator.makes_a_key(workspace)["token"])
        made: str = api.post("/api/agents/create", AGENT)["agent"]["id"]
        return made

    def test_are_switched(self, operator: Operator, agent: str) -> None:
        printed = operator.does("set-bot", "--agent", agent, "--active", "false")
        assert printed == {"agentId": agent, "isActive": False, "isPrivate": False}
        printed = operator.does("set-bot", "--agent", agent, "--private", "true")
        assert printed == {"agentId": agent, "isActive": False, "isPrivate": True}
        assert "send at least one of" in operator.fails("set-bot", "--agent", agent)

    def test_have_limits_that_none_lifts(self, operator: Operator, agent: str) -> None:
        words = ("--daily", "100", "--weekly", "0")
        printed = operator.does("set-bot-limits", "--agent", agent, *words)
        assert printed == {"agentId": agent, "daily": 100, "weekly": 0, "monthly": None}
        words = ("--daily", "none", "--monthly", "900")
        printed = operator.does("set-bot-limits", "--agent", agent, *words)
        assert printed == {"agentId": agent, "daily": None, "weekly": 0, "monthly": 900}
        shown = operator.does("bot-limits", "--agent", agent)
        windows = ("daily", "weekly", "monthly")
        assert [shown[each]["limit"] for each in windows] == [None, 0, 900]
        assert [shown[each]["remaining"] for each in windows] == [None, 0, 900]
        result = operator.types("set-bot-limits", "--agent", agent, "--daily", "many")
        assert (result.exit_code, "many" in result.stderr) == (1, True)

    def test_have_keys(self, operator: Operator, agent: str) -> None:
        made = operator.does("create-bot-key", "--agent", agent, "--name", "Site")
        assert made.keys() == {"keyId", "token"}
        assert bot_keys.is_key_of(agent, made["token"])
        gone = operator.does("delete-bot-key", "--agent", agent, "--key", made["keyId"])
        assert gone == {"keyId": made["keyId"]}
        assert not bot_keys.is_key_of(agent, made["token"])

    @pytest.mark.parametrize(
        "words",
        [
            ("set-bot", "--active", "true"),
            ("set-bot-limits", "--daily", "1"),
            ("bot-limits",),
            ("create-bot-key", "--name", "x"),
            ("delete-bot-key", "--key", "x"),
        ],
    )
    def test_that_there_are_none_of_are_not_found(
        self, operator: Operator, words: tuple[str, ...]
    ) -> None:
        assert "No bot has this id" in operator.fails(*words, "--agent", new_id())

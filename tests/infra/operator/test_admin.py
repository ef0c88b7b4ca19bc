"""The operator's command line.

A successful command prints one JSON object to stdout. A failed one prints one line to stderr.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.domains.identity.store import accounts, api_keys
from chalicelib.engine import audit, transactions
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.operator import LIST, Operator, seed_keys
from tests.support.sweep import sweep

pytestmark = pytest.mark.usefixtures("reload_settings")
"""The fixture restores the environment, which commands change to connect to a stage."""


class TestCreateAccount:
    def test_create_account_prints_the_account(self, operator: Operator) -> None:
        printed = operator.create_account("Ann.Lee@Example.com", name="Ann", role="admin")
        assert list(printed) == ["accountId", "email", "role"]
        assert (printed["email"], printed["role"]) == ("Ann.Lee@example.com", "admin")
        account = accounts.get(printed["accountId"])
        assert (account.email, account.name, account.role) == (
            "Ann.Lee@example.com",
            "Ann",
            "admin",
        )

    def test_create_account_accepts_an_email_that_case_folding_lengthens(
        self, operator: Operator
    ) -> None:
        email = "\ufdfa" * 64 + "@example.com"
        printed = operator.create_account(email)
        assert accounts.require_by_email(email).id == printed["accountId"]

    def test_create_account_refuses_an_email_in_use(self, operator: Operator) -> None:
        operator.create_account("ann@example.com")
        old_rows = all_rows()
        line = operator.run_failing(
            "create-account", "--email", "ANN@example.com", "--password", "long enough"
        )
        assert line.endswith("(conflict: account_exists)")
        assert "ANN@example.com" in line
        assert all_rows() == old_rows

    @pytest.mark.parametrize(
        ("email", "password", "expected"),
        [
            ("ann", "long enough", "email"),
            ("ann@", "long enough", "email"),
            ("", "long enough", "email"),
            ("ann@example.com", "short", "8 characters"),
            ("ann@example.com", "", "8 characters"),
        ],
    )
    def test_create_account_refuses_a_malformed_email_or_a_short_password(
        self, email: str, password: str, expected: str, operator: Operator
    ) -> None:
        line = operator.run_failing("create-account", "--email", email, "--password", password)
        assert expected in line
        assert all_rows() == {}

    def test_create_account_stores_no_plain_password(self, operator: Operator) -> None:
        operator.run("create-account", "--email", "a@example.com", "--password", "pass-word-9")
        assert "pass-word-9" not in repr(all_rows())


class TestCreateWorkspace:
    def test_create_workspace_prints_the_workspace(self, operator: Operator) -> None:
        operator.create_account("ann@example.com")
        printed = operator.run(
            *("create-workspace", "--owner", "ann@example.com", "--name", "Пекарня"),
            *("--plan", "start", "--timezone", "Asia/Yekaterinburg"),
        )
        assert list(printed) == ["workspaceId", "slug", "plan", "timezone"]
        assert (printed["slug"], printed["plan"]) == ("pekarnya", "start")
        assert printed["timezone"] == "Asia/Yekaterinburg"

    def test_create_workspace_defaults_to_business_and_moscow(self, operator: Operator) -> None:
        operator.create_account("ann@example.com")
        printed = operator.run("create-workspace", "--owner", "ann@example.com", "--name", "x")
        assert (printed["plan"], printed["timezone"]) == ("business", "Europe/Moscow")

    @sweep(
        ("country", "zone"),
        [
            ("GB", "Europe/London"),
            ("DE", "Europe/Berlin"),
            ("BY", "Europe/Minsk"),
            ("KZ", "Asia/Almaty"),
            ("AR", "America/Argentina/Buenos_Aires"),
            ("RU", "Europe/Moscow"),
        ],
    )
    def test_a_new_workspace_has_the_zone_of_its_country(
        self, operator: Operator, country: str, zone: str
    ) -> None:
        operator.create_account(f"{country}@example.com")
        owner = ("--owner", f"{country}@example.com")
        printed = operator.run("create-workspace", *owner, "--name", "x", "--country", country)
        assert printed["timezone"] == zone

    @sweep(
        ("country", "zones"),
        [
            ("US", ["America/New_York", "Pacific/Honolulu"]),
            ("ES", ["Europe/Madrid", "Atlantic/Canary"]),
            ("AU", ["Australia/Sydney", "Australia/Perth"]),
            ("XK", ["IANA name"]),
        ],
    )
    def test_country_with_several_zones_asks_for_one_of_them(
        self, operator: Operator, country: str, zones: list[str]
    ) -> None:
        operator.create_account(f"{country}@example.com")
        words = ("create-workspace", "--owner", f"{country}@example.com", "--name", "x")
        line = operator.run_failing(*words, "--country", country)
        assert "timezone" in line
        assert all(zone in line for zone in zones)
        chosen = operator.run(*words, "--country", country, "--timezone", "Europe/Rome")
        assert chosen["timezone"] == "Europe/Rome"

    def test_two_workspaces_with_the_same_name_get_different_slugs(
        self, operator: Operator, workspace: str
    ) -> None:
        printed = operator.run(
            "create-workspace", "--owner", "ann@example.com", "--name", "Пекарня"
        )
        assert printed["slug"] == "pekarnya-2"
        assert printed["workspaceId"] != workspace


class TestSetWorkspace:
    def test_set_workspace_prints_the_changed_workspace(
        self, operator: Operator, workspace: str
    ) -> None:
        words = ("set-workspace", "--workspace", workspace)
        assert operator.run(*words, "--name", "Salon") == {
            "workspaceId": workspace,
            "name": "Salon",
            "timezone": "Europe/Moscow",
            "country": "RU",
            "currency": "RUB",
            **dict.fromkeys(("address", "phone", "logoUrl", "accent", "privacyUrl")),
        }
        printed = operator.run(*words, "--timezone", "Europe/Berlin", "--country", "DE")
        assert list(printed)[:5] == ["workspaceId", "name", "timezone", "country", "currency"]
        assert list(printed.values())[:4] == [workspace, "Salon", "Europe/Berlin", "DE"]
        events = [r for r in audit.latest(workspace) if r.operation == "set_workspace"]
        assert (events[-1].actor, list(events[-1].fields)) == ("operator", ["name"])

    def test_set_workspace_warns_that_resources_keep_their_time_zones(
        self, operator: Operator, workspace: str
    ) -> None:
        words = ("set-workspace", "--workspace", workspace, "--timezone", "Europe/Berlin")
        assert "The time zone of resources" in operator.invoke(*words).stderr
        assert operator.invoke(*words).stderr == ""

    def test_set_workspace_affects_later_phones_and_days(
        self, operator: Operator, owner: Owner, time: Time
    ) -> None:
        api, phone = owner.api(), "0170 7654321"
        body = {
            "title": "Contact",
            "fields": [
                {"name": "name", "label": "Name", "type": "text"},
                {"name": "phone", "label": "Phone", "type": "phone"},
            ],
        }
        form = api.post("/api/forms/create", body)["form"]["id"]
        submit = f"/api/public/forms/{form}/submit"
        api.post(submit, {"phone": phone, "name": "Before"})
        words = ("set-workspace", "--workspace", owner.workspace.id)
        operator.run(*words, "--country", "DE", "--timezone", "Pacific/Kiritimati")
        api.post(submit, {"phone": phone, "name": "After"})
        leads = api.get("/api/forms/collection-list")["collections"]
        assert [lead["phone"] for lead in leads] == ["+491707654321", None]
        assert api.get("/api/forms/collection-find?phone=01707654321")["total"] == 1
        days = [day["date"] for day in api.get("/api/crm/stats")["series"]]
        assert time.now.date().isoformat() == "2027-01-15"
        assert days[-1] == "2027-01-16"


class TestAddMember:
    def test_add_member_prints_the_membership(self, operator: Operator, workspace: str) -> None:
        account = operator.create_account("bob@example.com")["accountId"]
        words = ("--workspace", workspace, "--email", "bob@example.com")
        assert operator.run("add-member", *words) == {
            "workspaceId": workspace,
            "accountId": account,
            "role": "member",
        }
        assert operator.run("add-member", *words, "--role", "manager")["role"] == "manager"

    def test_added_member_sees_the_workspace(self, operator: Operator, workspace: str) -> None:
        operator.create_account("bob@example.com")
        new_workspace = operator.run(
            "create-workspace", "--owner", "bob@example.com", "--name", "Bob's"
        )
        api = Api(operator.create_key(new_workspace["workspaceId"])["token"])
        assert len(api.get("/api/workspaces/list")["workspaces"]) == 1
        words = ("--workspace", workspace, "--email", "bob@example.com")
        for role in ("member", "manager"):
            operator.run("add-member", *words, "--role", role)
            data = api.get("/api/workspaces/list")
            assert data["activeWorkspaceId"] == new_workspace["workspaceId"]
            workspaces_shown = {w["id"]: (w["role"], w["isOwner"]) for w in data["workspaces"]}
            assert workspaces_shown == {
                new_workspace["workspaceId"]: ("owner", True),
                workspace: (role, False),
            }

    @pytest.mark.parametrize(
        ("email", "more", "expected"),
        [
            ("nobody@example.com", (), "nobody@example.com"),
            ("ann@example.com", (), "owns"),
            ("bob@example.com", ("--role", "owner"), "owner"),
            ("bob@example.com", ("--role", "boss"), "boss"),
        ],
    )
    def test_add_member_refuses_unknown_members_and_roles(
        self, email: str, more: tuple[str, ...], expected: str, operator: Operator, workspace: str
    ) -> None:
        operator.create_account("bob@example.com")
        old_rows = all_rows()
        line = operator.run_failing("add-member", "--workspace", workspace, "--email", email, *more)
        assert expected in line
        assert all_rows() == old_rows


class TestTransfer:
    def test_workspace_is_exported_and_imported(
        self, operator: Operator, workspace: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "bakery.zip"
        exported = operator.run("export", "--workspace", workspace, "--out", str(path))
        assert (exported["workspaceId"], exported["file"]) == (workspace, str(path))
        imported = operator.run("import", str(path), "--ids", "new")
        assert imported["workspaceId"] != workspace
        assert imported["slug"].endswith("-2")
        second_import = operator.invoke("import", str(path))
        assert (second_import.exit_code, second_import.stdout) == (1, "")
        assert "already exists" in second_import.stderr


class TestSetPlan:
    @pytest.mark.parametrize("lower", ["free", "start"])
    def test_set_plan_takes_effect_on_the_next_request(
        self, lower: str, operator: Operator, workspace: str
    ) -> None:
        keys = [operator.create_key(workspace) for _ in range(3)]
        assert operator.set_plan(workspace, lower) == {"workspaceId": workspace, "plan": lower}
        keys.append(operator.create_key(workspace))
        for key in keys:
            for path in (LIST, "/api/workspaces/list"):
                response = Api(key["token"]).call_refused("GET", path)
                assert (response.status, response.data["code"]) == (403, "plan_required")
                assert lower in response.data["message"]
        for plan in ("enterprise", "business"):
            operator.set_plan(workspace, plan)
            for key in keys:
                assert Api(key["token"]).get(LIST)["projects"] == []

    def test_set_plan_does_not_restore_a_revoked_key(
        self, operator: Operator, workspace: str
    ) -> None:
        key = operator.create_key(workspace)
        operator.run("revoke-key", "--key", key["keyId"])
        operator.set_plan(workspace, "enterprise")
        assert Api(key["token"]).call_refused("GET", LIST).status == 401

    def test_set_plan_is_audited_with_the_operator_as_actor(
        self, operator: Operator, workspace: str
    ) -> None:
        operator.set_plan(workspace, "free")
        (record,) = [r for r in audit.latest(workspace) if r.operation == "set_plan"]
        assert record.actor == "operator"

    def test_set_plan_refuses_unknown_plans_and_workspaces(
        self, operator: Operator, workspace: str
    ) -> None:
        old_rows = all_rows()
        words = ("--workspace", workspace, "--plan", "gold")
        assert "gold" in operator.run_failing("set-plan", *words)
        words = ("--workspace", "nowhere", "--plan", "free")
        assert "nowhere" in operator.run_failing("set-plan", *words)
        assert all_rows() == old_rows

    def test_set_plan_works_with_many_expired_keys(
        self, operator: Operator, workspace: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transactions, "MAX_ITEMS", 20)
        seed_keys(monkeypatch, workspace, 20, time.now.replace(minute=59))
        time.pass_by(hours=1)
        live = operator.create_key(workspace)["token"]
        operator.set_plan(workspace, "free")
        assert Api(live).call_refused("GET", LIST).data["code"] == "plan_required"

    def test_set_plan_applies_to_a_key_created_concurrently(
        self, operator: Operator, workspace: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = api_keys.read_all
        created_ids: list[str] = []

        def stored_keys(workspace_id: str) -> list[api_keys.ApiKeyRow]:
            keys = real(workspace_id)
            if not created_ids:
                created_ids.append("")  # create_key also lists the keys
                created_ids[0] = operator.create_key(workspace)["token"]
            return keys

        monkeypatch.setattr(api_keys, "read_all", stored_keys)
        operator.set_plan(workspace, "free")
        assert Api(created_ids[0]).call_refused("GET", LIST).data["code"] == "plan_required"


def test_workspaces_that_the_operator_created_are_listed_with_all_fields(
    operator: Operator, new_owner: Callable[..., Owner]
) -> None:
    operator.create_account("ann@example.com")
    created = operator.run("create-workspace", "--owner", "ann@example.com", "--name", "Workspace")
    by_operator = Api(operator.create_key(created["workspaceId"])["token"])
    by_tests = new_owner().api()
    first, second = (
        set(api.get("/api/workspaces/list")["workspaces"][0]) for api in (by_operator, by_tests)
    )
    assert first == second


class TestDemoBalance:
    """The balance that new workspaces receive in development, to try bots."""

    def test_new_workspace_credits_its_owner_if_an_amount_is_set(
        self,
        operator: Operator,
        reload_settings: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        email = operator.create_account("ann@example.com")["email"]
        monkeypatch.setenv("DEMO_BALANCE", "0")
        operator.run("create-workspace", "--owner", email, "--name", "Without")
        assert operator.run("ledger", "--account", email)["entries"] == []
        monkeypatch.setenv("DEMO_BALANCE", "700")
        reload_settings()
        for number in (1, 2):
            operator.run("create-workspace", "--owner", email, "--name", "With")
            entries = operator.run("ledger", "--account", email)["entries"]
            assert len(entries) == number
            assert operator.run("balance", "--account", email)["available"] == 700 * number
            assert entries[0]["kind"] == "topup"

"""Settings of a workspace and of the caller's account, changed in the console."""

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import audit
from tests.conftest import Owner, call_console, call_operator
from tests.factories.people import Account

pytestmark = pytest.mark.store


class TestWorkspace:
    def test_a_manager_changes_name_zone_and_country(self, owner: Owner) -> None:
        home, manager = owner.workspace.id, Account.create("manager")
        manager.joins(home, "manager")
        changes = {"name": "Salon", "timezone": "Europe/Berlin", "country": "DE"}
        assert manager.call(home, "set_workspace", **changes)["workspace"]["name"] == "Salon"
        settings = manager.call(home, "get_workspace")["workspace"]
        assert {name: settings[name] for name in changes} == changes
        assert settings["slug"] == owner.workspace.slug
        (entry, *_) = audit.latest(home)
        assert (entry.operation, entry.actor) == ("set_workspace", manager.id)

    @pytest.mark.parametrize(
        ("plan", "has_api", "gigabytes"),
        [
            ("free", False, 0.1),
            ("start", False, 1),
            ("business", True, 10),
            ("enterprise", True, 100),
        ],
    )
    def test_settings_list_the_plans_allowances(
        self, owner: Owner, plan: str, has_api: bool, gigabytes: float
    ) -> None:
        call_operator("set_plan", workspaceId=owner.workspace.id, plan=plan)
        settings = call_console(owner.workspace.id, "get_workspace")["workspace"]
        assert (settings["plan"], settings["includes"]["hasApi"]) == (plan, has_api)
        assert settings["includes"]["storageBytes"] == gigabytes * 10**9


class TestAccount:
    def test_user_changes_name_and_language(self, owner: Owner) -> None:
        account = Account(owner.workspace.owner_id, "")
        response = account.call(owner.workspace.id, "update_account", name=" Ada ", language="en")
        assert (response["account"]["name"], response["account"]["language"]) == ("Ada", "en")
        assert (accounts.get(account.id).name, accounts.get(account.id).language) == ("Ada", "en")

    @pytest.mark.parametrize("change", [{}, {"language": "de"}, {"name": " "}, {"name": "x" * 201}])
    def test_invalid_changes_are_refused(self, owner: Owner, change: dict[str, str]) -> None:
        account = Account(owner.workspace.owner_id, "")
        with pytest.raises(ValidationError):
            account.call(owner.workspace.id, "update_account", **change)

    def test_messages_default_to_the_accounts_language(self, owner: Owner) -> None:
        home, account = owner.workspace.id, Account(owner.workspace.owner_id, "")

        def language() -> str:
            return str(account.call(home, "get_notifications")["language"])

        assert language() == "ru"  # the language of the workspace's country
        account.call(home, "update_account", language="en")
        assert language() == "en"
        account.call(home, "set_notifications", language="ru")
        assert language() == "ru"

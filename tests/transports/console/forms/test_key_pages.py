"""The pages of a key, of a connected app and of usage: failed calls, rights, limit and counts."""

import re

import pytest

from chalicelib.core.areas import SCOPED
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.store import workspaces
from chalicelib.transports.web import texts
from chalicelib.transports.web.texts import LANGUAGES
from tests.conftest import Api, Time, call_console, call_operator
from tests.factories.console import Person, World
from tests.factories.oauth import connect
from tests.transports.console.forms.helpers import error_beside, text, value_of


@pytest.fixture
def boss(world: World) -> Person:
    return world.person("boss")


@pytest.fixture
def key(world: World) -> dict[str, str]:
    """Create a key that may read and write, and return its id and token."""
    arguments = {"workspaceId": world.here.workspace_id, "scopes": ["*:read", "*:write"]}
    return dict(call_operator("create_key", name="Script", **arguments))


@pytest.fixture
def page(world: World, key: dict[str, str]) -> str:
    return f"{world.here.path}/keys/{key['keyId']}"


@pytest.fixture
def api(key: dict[str, str]) -> Api:
    return Api(key["token"])


class TestFailedCalls:
    def test_the_page_of_a_key_shows_its_failed_calls(
        self, boss: Person, page: str, api: Api
    ) -> None:
        assert "No call has failed" in text(boss.get(page))
        answer = api.call_refused("GET", "/api/products/unknown")
        api.tool("svc_get_page", id="unknown")
        shown = text(boss.get(page))
        for words in (
            *("404", "not_found", "GET /api/products/{id}", answer.data["requestId"]),
            "svc_get_page",
        ):
            assert words in shown

    def test_the_list_of_keys_leads_to_the_page(
        self, boss: Person, page: str, world: World
    ) -> None:
        assert f'href="{page}"' in text(boss.get(f"{world.here.path}/keys"))

    def test_older_calls_are_on_the_next_page(
        self, time: Time, world: World, page: str, api: Api
    ) -> None:
        boss, ids = world.person("boss"), []
        for _ in range(25):
            ids.append(api.call_refused("GET", "/api/products/unknown").data["requestId"])
            time.pass_by(seconds=1)
        first = text(boss.get(page))
        (older,) = re.findall(r'href="(\?before=[^"]*)"', first)
        second = text(boss.get(page + older))
        assert [request_id in first for request_id in ids] == 5 * [False] + 20 * [True]
        assert [request_id in second for request_id in ids] == 5 * [True] + 20 * [False]
        assert "Newest" in second

    def test_a_revoked_key_shows_calls_but_no_form(
        self, boss: Person, page: str, api: Api, key: dict[str, str]
    ) -> None:
        call_operator("revoke_key", id=key["keyId"])
        api.call_refused("GET", "/api/products/list")
        shown = text(boss.get(page))
        assert "401" in shown
        assert 'name="callsPerMinute"' not in shown

    def test_the_page_of_an_app_shows_its_failed_calls(
        self, boss: Person, world: World, page: str
    ) -> None:
        workspace = world.here
        connection = connect(workspaces.get(workspace.workspace_id))
        Api(connection.access).tool("svc_get_lead", id="unknown")
        path = f"{workspace.path}/apps/{connection.id}"
        assert f'href="{path}"' in text(boss.get(f"{workspace.path}/apps"))
        assert "svc_get_lead" in text(boss.get(path))

    def test_an_unknown_key_is_not_found(self, boss: Person, world: World) -> None:
        assert boss.get(f"{world.here.path}/keys/unknown").status == 404
        assert boss.get(f"{world.here.path}/apps/unknown").status == 404


class TestLimit:
    def test_a_limit_is_saved_and_removed(
        self, boss: Person, page: str, world: World, key: dict[str, str]
    ) -> None:
        assert boss.post(page, {"name": "Laptop", "callsPerMinute": "120"}).status == 303
        answer = boss.get(page)
        assert (value_of(answer, "callsPerMinute"), value_of(answer, "name")) == ("120", "Laptop")
        assert boss.post(page, {"name": "Laptop", "callsPerMinute": ""}).status == 303
        keys = call_console(world.here.workspace_id, "list_keys")["keys"]
        assert [each["callsPerMinute"] for each in keys if each["id"] == key["keyId"]] == [None]

    @pytest.mark.parametrize("typed", ["0", "60001", "many", "1.5"])
    def test_a_wrong_limit_is_explained_beside_its_field(
        self, boss: Person, page: str, typed: str
    ) -> None:
        answer = boss.post(page, {"name": "Laptop", "callsPerMinute": typed})
        assert answer.status == 400
        assert error_beside(answer, "callsPerMinute").startswith("Enter a whole number")


class TestRights:
    @pytest.mark.parametrize("language", LANGUAGES)
    def test_each_scope_has_a_text_of_what_it_lets_do(self, language: texts.Language) -> None:
        for scope in Scope:
            area, _, right = scope.partition(":")
            assert texts.has(language, SCOPED[area].meaning(right)), scope

    def test_the_form_and_the_page_of_a_key_say_that_clients_can_be_erased(
        self, boss: Person, page: str, world: World
    ) -> None:
        words = "erase clients for good"
        assert words in text(boss.get(f"{world.here.path}/keys/new"))
        assert words in text(boss.get(page))


class TestUsage:
    def test_the_page_counts_by_caller_day_and_change(
        self, boss: Person, world: World, api: Api, page: str
    ) -> None:
        api.post("/api/categories/create", {"name": "Bread"})
        shown = text(boss.get(f"{world.here.path}/usage"))
        assert "create_category" in shown
        assert f'href="{page}"' in shown

    def test_days_without_changes_are_said_to_be_empty(self, boss: Person, world: World) -> None:
        path = f"{world.here.path}/usage?from=2026-12-01&to=2026-12-02"
        assert "Nothing in these days" in text(boss.get(path))

    def test_a_wrong_period_is_explained_and_the_last_days_are_shown(
        self, boss: Person, world: World, api: Api
    ) -> None:
        api.post("/api/categories/create", {"name": "Bread"})
        answer = boss.get(f"{world.here.path}/usage?from=2026-01-01&to=2026-12-02")
        assert answer.status == 400
        assert "create_category" in text(answer)
        assert value_of(answer, "from") == "2026-01-01"

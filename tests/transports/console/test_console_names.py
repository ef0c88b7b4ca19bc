"""The console shows names of changed records and of the users who saved a version."""

import html
from typing import Any

import pytest

from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, call_console, call_operator
from tests.factories.console import Person, World, person
from tests.factories.examples import FORM, submit
from tests.factories.oauth import connect
from tests.transports.console.forms.helpers import text


@pytest.fixture
def console_owner(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}"


@pytest.fixture
def ivan(api: Api) -> dict[str, str]:
    """The ids of a lead and its client."""
    form = api.post("/api/forms/create", FORM)["form"]["id"]
    lead = submit(form, name="Ivan Petrov", email="ivan@example.com")
    return {"lead": lead, "client": api.get("/api/clients/list")["clients"][0]["id"]}


class TestAuditLog:
    def test_an_entry_says_who_did_what_to_whom(
        self, api: Api, ivan: dict[str, str], console_owner: Person, path: str
    ) -> None:
        api.post("/api/clients/update", {"id": ivan["client"], "notes": "Rye"})
        page = text(console_owner.get(f"{path}/audit"))
        name = "Ivan Petrov"
        link = f'<a href="{path}/clients/{ivan["client"]}" title="{name}"><bdi>{name}</bdi></a>'
        assert f"</strong> updated a client: {link}" in page
        assert "key “test”" in page
        assert " · notes<" in page
        assert f"<code>{ivan['client']}</code>" in page

    def test_an_entry_is_in_the_readers_language(
        self, api: Api, ivan: dict[str, str], console_owner: Person, path: str
    ) -> None:
        api.post("/api/clients/update", {"id": ivan["client"], "notes": "Rye"})
        page = html.unescape(console_owner.get(f"{path}/audit", accept_language="ru").body.decode())
        assert "</strong> · Изменён клиент: <a" in page
        assert "ключ «test»" in page
        assert "заметки" in page

    def test_an_erased_client_is_not_named(
        self, ivan: dict[str, str], console_owner: Person, path: str
    ) -> None:
        console_owner.post(f"{path}/clients/{ivan['client']}/erase")
        page = text(console_owner.get(f"{path}/audit"))
        assert "erased a client" in page
        assert "Ivan" not in page

    def test_a_deleted_record_has_no_link(self, api: Api, console_owner: Person, path: str) -> None:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        assert f'href="{path}/sites/{site}"' in text(console_owner.get(f"{path}/audit"))
        api.post("/api/projects/delete", {"id": site})
        page = text(console_owner.get(f"{path}/audit"))
        assert f'href="{path}/sites/{site}"' not in page
        assert f"<code>{site}</code>" in page

    def test_keys_apps_and_people_are_named_as_what_was_changed(
        self, owner: Owner, console_owner: Person, path: str
    ) -> None:
        scopes = ["crm:read"]
        call_operator("create_key", workspaceId=owner.workspace.id, name="Laptop", scopes=scopes)
        connect(owner.workspace, clientName="Claude")
        page = text(console_owner.get(f"{path}/audit"))
        assert "created an API key: <span" in page
        assert ">Laptop</bdi>" in page
        assert ">Claude</bdi>" in page

    def test_long_names_are_cut_and_shown_in_full_as_titles(
        self, api: Api, console_owner: Person, path: str
    ) -> None:
        api.post(
            "/api/agents/create", {"name": "ب" * 90, "systemPrompt": "x" * 30, "model": "demo"}
        )
        page = text(console_owner.get(f"{path}/audit"))
        assert f'title="{"ب" * 90}"' in page
        assert f">{'ب' * 79}…<" in page

    def test_the_names_of_a_page_are_read_in_few_requests(
        self, owner: Owner, api: Api, ivan: dict[str, str]
    ) -> None:
        for number in range(30):
            api.post("/api/projects/create", {"title": f"Site {number}"})
        with metering() as usage:
            audit_log = call_console(owner.workspace.id, "list_audit_log", limit=100)
        assert len(audit_log["entries"]) > 30
        assert len(usage.calls) <= 5


class TestVersions:
    def test_a_version_names_the_key_that_saved_it(
        self, api: Api, console_owner: Person, path: str
    ) -> None:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        page = api.post("/api/pages/create", {"projectId": site, "title": "Home"})["page"]["id"]
        for html_text in ("<p>1</p>", "<p>2</p>"):
            api.post("/api/pages/save-html", {"id": page, "html": html_text})
        page_text = text(console_owner.get(f"{path}/sites/{site}/pages/{page}"))
        assert "key “test”" in page_text
        assert 'title="key:' in page_text

    def test_names_of_savers_are_for_managers(self, world: World) -> None:
        here = world.here

        def savers(role: str) -> Any:
            return call_console(
                here.workspace_id, "list_page_savers", membership=role, id=here.page
            )["savers"]

        assert [saver["kind"] for saver in savers("manager")] == ["key"]

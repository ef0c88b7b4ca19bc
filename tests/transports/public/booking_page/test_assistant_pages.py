"""Pages that the assistant of a visitor shows beside free times and products."""

import json
from typing import Any

import pytest

from chalicelib.core.settings import settings
from chalicelib.transports import mcp_apps
from tests.conftest import call_console
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import BookingPage


@pytest.fixture
def assistant(page: BookingPage) -> Assistant:
    return Assistant.admitted(page)


def result_of(assistant: Assistant, method: str, **params: Any) -> Any:
    return json.loads(assistant.send(method, **params).body)["result"]


def test_the_tools_name_their_pages(assistant: Assistant) -> None:
    tools = result_of(assistant, "tools/list")["tools"]
    pages = {tool["name"]: tool["_meta"]["ui"]["resourceUri"] for tool in tools if "_meta" in tool}
    assert pages == {tool: app.uri for app in mcp_apps.FOR_VISITORS for tool in app.tools}
    listed = result_of(assistant, "resources/list")["resources"]
    assert [resource["uri"] for resource in listed] == [app.uri for app in mcp_apps.FOR_VISITORS]


@pytest.mark.parametrize("method", ["resources/list", "resources/read", "resources/templates/list"])
def test_pages_do_not_exist_until_the_owner_switches_the_tools_on(
    page: BookingPage, method: str
) -> None:
    assert Assistant(page).send(method, uri=mcp_apps.TIMES.uri).status == 404


def test_a_page_looks_like_the_business(assistant: Assistant) -> None:
    workspace = assistant.page.owner.workspace.id
    call_console(workspace, "set_workspace", accent="teal")
    (contents,) = result_of(assistant, "resources/read", uri=mcp_apps.TIMES.uri)["contents"]
    assert "--accent:#0b6b70" in contents["text"].replace(" ", "")
    assert '"currency":"RUB"' in contents["text"]


def test_only_pictures_of_products_are_loaded(assistant: Assistant) -> None:
    listed = result_of(assistant, "resources/list")["resources"]
    loaded = {each["name"]: each["_meta"]["ui"]["csp"]["resourceDomains"] for each in listed}
    assert loaded == {"times": [], "products": [settings().public_url]}


def test_members_pages_are_not_for_visitors(assistant: Assistant) -> None:
    for uri in (mcp_apps.DAY.uri, mcp_apps.BOOKINGS.uri):
        answer = json.loads(assistant.send("resources/read", uri=uri).body)
        assert answer["error"]["code"] == -32602

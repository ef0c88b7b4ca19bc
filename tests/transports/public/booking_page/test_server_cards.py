"""The cards by which programs find the tool servers before they connect."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from chalicelib import VERSION
from tests.conftest import Answer, call_console, call_operator
from tests.factories import pages
from tests.factories.console import HOSTILE
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import BookingPage, visitor

CARD_TYPE = "application/mcp-server-card+json"
PLATFORM_CATALOG = "/.well-known/ai-catalog.json"


def check_card(answer: Answer) -> Any:
    """Check a card by what its schema demands, and return it."""
    assert answer.status == 200
    assert answer.headers["Content-Type"] == CARD_TYPE
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "max-age" in answer.headers["Cache-Control"]
    card = json.loads(answer.body)
    assert card["$schema"].endswith("/schemas/v1/server-card.schema.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", card["name"])
    assert 3 <= len(card["name"]) <= 200
    assert card["version"] == VERSION
    assert 1 <= len(card["description"]) <= 100
    assert 1 <= len(card.get("title", "-")) <= 100
    (remote,) = card["remotes"]
    assert remote["type"] == "streamable-http"
    assert "2026-07-28" in remote["supportedProtocolVersions"]
    return card


def check_catalog(answer: Answer) -> list[str]:
    """Return the paths of the cards in a catalogue."""
    assert answer.headers["Content-Type"] == "application/ai-catalog+json"
    catalog = json.loads(answer.body)
    assert catalog["specVersion"] == "1.0"
    for entry in catalog["entries"]:
        assert entry.keys() == {"identifier", "type", "url"}
        assert re.fullmatch(r"urn:air:[a-z0-9.-]+:mcp:[\w.-]+", entry["identifier"])
        assert entry["type"] == CARD_TYPE
    return [urlsplit(entry["url"]).path for entry in catalog["entries"]]


def endpoint(card: Any) -> str:
    path: str = urlsplit(card["remotes"][0]["url"]).path
    return path


def test_the_catalogue_of_the_service_leads_to_the_endpoint_for_all(page: BookingPage) -> None:
    cards = check_catalog(visitor.call("GET", PLATFORM_CATALOG))
    assert cards == ["/assistants/mcp/server-card"]
    endpoints = [endpoint(check_card(visitor.call("GET", path))) for path in cards]
    assert endpoints == ["/assistants/mcp"]
    assert Assistant(page, endpoints[0]).send("ping").status == 200


def test_a_booking_page_has_a_card_while_its_tools_are_on(page: BookingPage) -> None:
    path = f"{page.home}/mcp/server-card"
    home = page.owner.workspace.id

    def code() -> tuple[int, str]:
        card, tools = visitor.call("GET", path), Assistant(page).send("ping")
        assert (card.status, card.data["message"]) == (tools.status, tools.data["message"])
        return card.status, card.data["code"]

    unknown = visitor.call("GET", "/book/no-such-business/mcp/server-card")
    assert code() == (404, "not_found") == (unknown.status, unknown.data["code"])
    Assistant.admitted(page)
    card = check_card(visitor.call("GET", path))
    assert card["title"] == page.owner.workspace.name
    assert endpoint(card) == f"{page.home}/mcp"
    assert Assistant(page, endpoint(card)).call("get_business")
    page.set(isOn=False)
    assert code() == (404, "not_found")
    page.set(isOn=True)
    call_operator("suspend_workspace", workspaceId=home)
    assert visitor.call("GET", path).status == 404
    call_operator("suspend_workspace", workspaceId=home, lift=True)
    call_console(home, "admit_assistants", isOn=False)
    assert code() == (404, "not_found")


def test_a_card_that_has_not_changed_is_not_sent_again(page: BookingPage) -> None:
    Assistant.admitted(page)
    path = f"{page.home}/mcp/server-card"
    first = visitor.call("GET", path)
    tag = {"If-None-Match": first.headers["ETag"]}
    again = visitor.call("GET", path, headers=tag)
    assert (again.status, again.body) == (304, b"")
    call_console(page.owner.workspace.id, "set_workspace", name="Another name")
    changed = visitor.call("GET", path, headers=tag)
    assert check_card(changed)["title"] == "Another name"
    assert changed.headers["ETag"] != first.headers["ETag"]


def test_pages_of_any_origin_may_read_a_card_and_its_tag(page: BookingPage) -> None:
    Assistant.admitted(page)
    origin = {"Origin": "https://assistant.example"}
    path = f"{page.home}/mcp/server-card"
    assert (
        "ETag" in visitor.call("GET", path, None, origin).headers["Access-Control-Expose-Headers"]
    )
    preflight = visitor.call("OPTIONS", path, None, origin)
    assert preflight.headers["Access-Control-Allow-Methods"] == "GET"
    assert "If-None-Match" in preflight.headers["Access-Control-Allow-Headers"]
    assert visitor.call("POST", path, {}).status == 405


def test_a_site_has_a_catalogue_with_the_card_of_its_tools(page: BookingPage) -> None:
    api = page.salon.api
    site = pages.new_site(api, "Salon")
    pages.save(api, pages.create(api, site, "About us"), "<h1>About us</h1>")
    (project,) = api.get("/api/projects/list")["projects"]
    base = f"/s/{project['slug']}"
    # On the host of the site, the edge puts the path into one segment.
    catalog, card = f"{base}/.well-known%2Fai-catalog.json", f"{base}/mcp%2Fserver-card"
    for path in (catalog, card):
        assert visitor.call("GET", path).status == 404
    Assistant.admitted(page)
    assert check_catalog(visitor.call("GET", catalog)) == [f"{base}/mcp/server-card"]
    found = check_card(visitor.call("GET", card))
    assert Assistant(page, endpoint(found)).call("get_business")
    own = check_card(visitor.call("GET", f"{page.home}/mcp/server-card"))
    assert own["name"] != found["name"]
    call_operator("suspend_workspace", workspaceId=page.owner.workspace.id)
    for path in (catalog, card):
        assert visitor.call("GET", path).status == 404


def test_the_title_of_a_card_is_one_line_of_the_name(page: BookingPage) -> None:
    Assistant.admitted(page)
    name = f"{HOSTILE} {'x' * 100}"[:120]
    call_console(page.owner.workspace.id, "set_workspace", name=name)
    card = check_card(visitor.call("GET", f"{page.home}/mcp/server-card"))
    assert card["title"] == name[:100].rstrip()

"""The agent of a visitor's browser uses the tools of a booking page (WebMCP)."""

import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from chalicelib.core import clock
from chalicelib.transports.assistants import TOOLS
from tests.conftest import Api, Owner, call_console
from tests.e2e.conftest import FLAGS, ROOT, SCREENS, STILL, Site, findings, save_screenshot
from tests.factories.salon import Salon
from tests.factories.widget import document, launcher
from tests.support.patience import PATIENCE, wait_for

Opened = Callable[..., Any]


@pytest.fixture
def agent_browser(browser: Browser) -> Iterator[Browser]:
    """A Chromium with an agent, which is an experiment of the browser."""
    chromium = subprocess.run(
        [ROOT / "infra" / "local" / "find-chromium"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with_agent = browser.browser_type.launch(
        executable_path=Path(chromium), args=[*FLAGS, "--enable-features=WebMCP"]
    )
    yield with_agent
    with_agent.close()


@pytest.fixture
def booking_url(service: str, api: Api, owner: Owner) -> str:
    """The URL of a booking page that serves assistants."""
    salon = Salon.opened(api, resources=[{"name": "Grace"}])
    where = owner.workspace
    call_console(where.id, "set_booking_page", isOn=True, offer=[salon.service])
    call_console(where.id, "admit_assistants", isOn=True)
    return f"{service}/book/{where.slug}"


def test_a_browsers_agent_asks_and_prepares_and_the_visitor_books(
    agent_browser: Browser, booking_url: str, owner: Owner
) -> None:
    context = agent_browser.new_context(**SCREENS["phone"], **STILL)
    page: Page = context.new_page()
    page.set_default_timeout(PATIENCE * 1_000)
    page.goto(booking_url)
    wait_for(lambda: len(page.webmcp.tools()) == len(TOOLS), pause=0.1)
    names = {tool["name"] for tool in page.webmcp.tools()}
    assert names == {tool.name for tool in TOOLS}
    (service,) = page.webmcp.call_tool("list_services")["structuredContent"]["services"]
    assert service["name"] == "Haircut"
    tomorrow = (clock.now() + timedelta(days=1)).date().isoformat()
    search = {"serviceId": service["id"], "firstDay": tomorrow}
    free_times = page.webmcp.call_tool("find_free_times", search)["structuredContent"]
    start = free_times["times"][0]["startAt"]
    request = {"serviceId": service["id"], "startAt": start}
    prepared = page.webmcp.call_tool("prepare_booking", request)["structuredContent"]
    page.wait_for_url(prepared["url"])
    assert findings(page) == []
    save_screenshot(page, "webmcp-prepared")
    page.locator("#name").fill("Grace")
    page.locator("#email").fill("grace@example.com")
    page.locator("form button").click()
    expect(page.locator(".result")).to_be_visible()
    (booking,) = owner.api().get("/api/bookings/list")["bookings"]
    assert booking["source"] == "agent"
    context.close()


def test_an_agent_on_a_page_with_a_widget_gets_a_link_and_the_page_stays(
    agent_browser: Browser, service: str, booking_url: str, api: Api, owner: Owner, site: Site
) -> None:
    bot = {"name": "Bot", "systemPrompt": "Help.", "model": "demo"}
    bot_id = api.post("/api/agents/create", bot)["agent"]["id"]
    script = f'<script src="{service}/widget.js" data-agent="{bot_id}" async></script>'
    # A second widget adds no second set of tools.
    other_id = api.post("/api/agents/create", bot)["agent"]["id"]
    site.pages["/"] = document(script, script.replace(bot_id, other_id))
    context = agent_browser.new_context(**SCREENS["phone"], **STILL)
    page: Page = context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.set_default_timeout(PATIENCE * 1_000)
    page.goto(f"{site.url}/")
    wait_for(lambda: len(page.webmcp.tools()) == len(TOOLS), pause=0.1)
    (salon_service,) = page.webmcp.call_tool("list_services")["structuredContent"]["services"]
    tomorrow = (clock.now() + timedelta(days=1)).date().isoformat()
    search = {"serviceId": salon_service["id"], "firstDay": tomorrow}
    free_times = page.webmcp.call_tool("find_free_times", search)["structuredContent"]
    request = {"serviceId": salon_service["id"], "startAt": free_times["times"][0]["startAt"]}
    prepared = page.webmcp.call_tool("prepare_booking", request)["structuredContent"]
    assert prepared["url"].startswith(f"{booking_url}/")
    assert page.url == f"{site.url}/"
    call_console(owner.workspace.id, "admit_assistants", isOn=False)
    page.reload()
    expect(launcher(page).first).to_be_visible()
    page.goto(prepared["url"])  # The link ended with the switch, so the page has no form.
    expect(page.locator("form")).to_have_count(0)
    assert failures == []
    context.close()


def test_a_browser_without_an_agent_loads_no_tools(open_url: Opened, booking_url: str) -> None:
    with open_url(booking_url, **STILL) as page:
        assert page.evaluate("document.modelContext") is None
        expect(page.get_by_role("link", name="Haircut")).to_be_visible()

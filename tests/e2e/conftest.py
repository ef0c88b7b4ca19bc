"""Fixtures of the browser tests, with the service and pages of another origin on loopback."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Response, expect, sync_playwright
from turbohtml import parse

import app as application
from infra.local import devserver
from tests.conftest import ALL_SCOPES, PASSWORD, Api, call_operator
from tests.factories.console import Place
from tests.factories.examples import Things
from tests.factories.widget import AGENT, GREETING, NAME, Opened, document, tag
from tests.fakes.chat_server import (
    FakeChat,
    serving_chat,
)
from tests.support.patience import PATIENCE
from tests.support.restoring import Snapshots
from tests.transports.conftest import serving

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "e2e"
HOSTS = "MAP *.localhost 127.0.0.1, MAP *.example.com 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""Customers' domains lead to this machine, and no other host is found."""
FLAGS = [
    "--no-sandbox",  # The browser runs as root in a container, and opens only pages of these tests.
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    f"--host-resolver-rules={HOSTS}",
]

SCREENS = {
    "phone": {"viewport": {"width": 360, "height": 740}, "locale": "ru-RU"},
    "desktop": {"viewport": {"width": 1440, "height": 900}, "locale": "en-US"},
}
STILL = {"reduced_motion": "reduce"}
"""Animated colours have no contrast that could be measured."""
EMAIL, COMPANY = "anna@example.com", "Пекарня «Колосок»"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that ``make e2e`` runs it and a plain run does not."""
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    finder = ROOT / "infra" / "local" / "find-chromium"
    finder_output = subprocess.run([finder], capture_output=True, text=True, check=False)
    chromium = finder_output.stdout.strip()
    assert chromium, "no Chromium was found: install Debian's package chromium"
    expect.set_options(timeout=PATIENCE * 1_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def service(database: None, reload_settings: Callable[[], None]) -> Iterator[str]:
    """The service's base URL."""
    with serving(application.app, *devserver.ROUTES) as server:
        os.environ["PUBLIC_URL"] = f"http://127.0.0.1:{server.port}"
        reload_settings()
        yield os.environ["PUBLIC_URL"]


@dataclass
class Site:
    """A web site of another origin: HTML by path."""

    url: str
    pages: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site of another origin than the service's."""
    pages: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            html = pages.get(urlsplit(self.path).path)
            body = (html or "").encode()
            self.send_response(200 if html is not None else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Site(f"http://127.0.0.1:{server.server_port}", pages)
        server.shutdown()
        thread.join()


@pytest.fixture
def open_url(browser: Browser) -> Callable[..., "contextmanager[Page]"]:
    """Return a function that opens a page in a new browser context, with Playwright's options."""

    @contextmanager
    def open_in_new_tab(url: str, **options: object) -> Iterator[Page]:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1_000)
        if options.get("java_script_enabled", True):
            page.clock.install()
        page.goto(url)
        yield page
        context.close()

    return open_in_new_tab


def save_screenshot(page: Page, name: str) -> None:
    """Save a screenshot of a page, for manual review."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_load_state()
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


_INVALID = """() => [...document.querySelectorAll(`
  pre[aria-label]:not([role]), [hidden][aria-hidden], section:not(:has(h1, h2, h3, h4, h5, h6)),
  :is(span, p, strong, button, label) :is(ul, ol, dl, div, p, table, section, h2, h3),
  :is(ul, ol) > :not(li, script, template), a a, a button, button a, img:not([alt]), [id=""]`)]
  .map((node) => node.outerHTML.slice(0, 120))"""
_LEVELS = """() => [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')]
  .filter((h, i, all) => i && Number(h.tagName[1]) > Number(all[i - 1].tagName[1]) + 1)
  .map((h) => `it skips a level: ${h.outerHTML.slice(0, 120)}`)"""


def markup_errors(page: Page) -> list[str]:
    """Return wrong nesting, roles and headings, which the Nu HTML checker reports most often.

    A browser repairs wrong nesting of some elements, so the source is checked.
    """
    source = page.request.get(page.url).text()
    syntax = [f"line {error.line}: {error.code}" for error in parse(source).errors]
    return syntax + elements(page, _INVALID) + elements(page, _LEVELS)


@pytest.fixture
def chat() -> Iterator[FakeChat]:
    """A server with a public bot."""
    with serving_chat() as chat:
        chat.agents[AGENT] = {
            "id": AGENT,
            "name": NAME,
            "welcomeMessage": GREETING,
            "allowedOrigins": [],
            "isPrivate": False,
        }
        yield chat


@pytest.fixture
def open_page(chat: FakeChat, site: Site, open_url: Opened) -> Callable[..., Any]:
    """Return a function that opens a page of a site that has the widget."""

    @contextmanager
    def open_with_widget(
        attributes: str = "", *, head: str = "", **options: object
    ) -> Iterator[Page]:
        site.pages["/"] = document(tag(chat, attributes), head=head)
        with open_url(f"{site.url}/?utm=mail#top", **options) as page:
            yield page

    return open_with_widget


@dataclass
class ConsoleTab:
    """A browser tab with the console, and its errors."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    def open(self, path: str) -> Response:
        """Open a page of the console, and record requests and errors from here."""
        self.responses.clear()
        response = self.page.goto(self.base + path)
        assert response
        return response

    def start_session(self, email: str = EMAIL) -> None:
        """Sign in on the page that is open."""
        self.open("/console")
        self.page.get_by_label(re.compile("E-mail|Эл. почта")).fill(email)
        self.page.get_by_label(re.compile("Password|Пароль")).fill(PASSWORD)
        self.page.keyboard.press("Enter")
        # The sign-in page has a heading, too, so the next page is recognized by its address.
        self.page.wait_for_url(lambda url: "/sign-in" not in url)
        expect(self.page.locator("header nav a, .rows, h1").first).to_be_visible()

    @property
    def path(self) -> str:
        return urlsplit(self.page.url).path


OpenConsole = Callable[..., "contextmanager[ConsoleTab]"]


@pytest.fixture
def open_console(service: str, browser: Browser) -> OpenConsole:
    """Open the console in a new browser context. Any error fails the test."""

    @contextmanager
    def open_tab(**options: object) -> Iterator[ConsoleTab]:
        context = browser.new_context(**STILL, **{**SCREENS["desktop"], **options})
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1_000)
        tab = ConsoleTab(page, service)
        page.on("console", lambda m: tab.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: tab.errors.append(str(error)))
        page.on("response", lambda response: tab.responses.append(response))  # noqa: PLW0108  Playwright requires a function
        page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
        yield tab
        context.close()
        assert tab.errors == []

    return open_tab


@pytest.fixture
def workspace(service: str, snapshots: Snapshots) -> Place:
    """A workspace with records of every type."""

    def make() -> Place:
        call_operator("create_account", email=EMAIL, password=PASSWORD, name="Анна Соколова")
        workspace = Place.made_by(EMAIL, COMPANY)
        token = call_operator(
            "create_key",
            workspaceId=workspace.workspace_id,
            name="Things",
            scopes=ALL_SCOPES,
        )["token"]
        Things.made_with(Api(token))
        return workspace

    workspace: Place = snapshots.once("workspace in a browser", make)
    return workspace


def elements(page: Page, script: str) -> list[str]:
    """Return the elements of a loaded page that a script lists."""
    page.wait_for_load_state()  # After a click, the next document may still be empty.
    problems: list[str] = page.evaluate(script)
    return problems


def findings(page: Page, *rules: str) -> list[str]:
    """Return the findings of axe-core, with all its rules or only these."""
    page.wait_for_load_state()  # After a click, the next document may still be empty.
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Axe().axe_script)
    violations = page.evaluate(
        "options => axe.run(options).then((each) => each.violations)", options
    )
    return [
        f"{violation['id']}: {at['html'][:160]}"
        for violation in violations
        for at in violation["nodes"]
    ]
